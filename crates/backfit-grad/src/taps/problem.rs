//! Recomputation as a problem of its own: values that can be kept at a price of bytes, or computed again at one of FLOPs.

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// It is there anyway: a weight, a constant.
    Free,
    /// It can only be kept.
    Input,
    /// A step makes it.
    Step(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub bytes: u64,
    pub source: Source,
}

/// Something that can be run again. Steps stand in an order in which they can run.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub operands: Vec<usize>,
    pub flops: u64,
}

/// Which values are wanted, and all from which they can be had.
#[derive(Clone, Debug)]
pub(super) struct Recomputation {
    pub values: Vec<Value>,
    pub steps: Vec<Step>,
    pub required: Vec<usize>,
}

/// What is kept and what is run again; together they give all that is required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Values, least first.
    pub kept: Vec<usize>,
    /// Steps, in order.
    pub again: Vec<usize>,
    pub bytes: u64,
    pub flops: u64,
}

impl Choice {
    /// Fewer operations, or as many with fewer bytes.
    pub fn is_better_than(&self, other: &Choice) -> bool {
        (self.flops, self.bytes) < (other.flops, other.bytes)
    }
}

impl Recomputation {
    pub fn new(
        values: Vec<Value>,
        steps: impl Iterator<Item = Step>,
        required: impl Iterator<Item = usize>,
    ) -> Recomputation {
        Recomputation { values, steps: steps.collect(), required: required.collect() }
    }

    /// What has to be kept and run again where the results of steps for which `keep` says so are kept.
    pub fn follow(&self, keep: impl Fn(usize) -> bool) -> Choice {
        let mut seen = vec![false; self.values.len()];
        let mut again = vec![false; self.steps.len()];
        let mut kept = Vec::new();
        let mut wanted = self.required.clone();
        while let Some(value) = wanted.pop() {
            if std::mem::replace(&mut seen[value], true) {
                continue;
            }
            match self.values[value].source {
                Source::Free => {}
                Source::Step(step) if !keep(value) => {
                    if !std::mem::replace(&mut again[step], true) {
                        wanted.extend(&self.steps[step].operands);
                    }
                }
                Source::Input | Source::Step(_) => kept.push(value),
            }
        }
        // What is computed again for another result need not be kept.
        kept.retain(|&v| !matches!(self.values[v].source, Source::Step(step) if again[step]));
        kept.sort_unstable();
        let again: Vec<usize> = (0..self.steps.len()).filter(|&s| again[s]).collect();
        Choice {
            bytes: kept.iter().map(|&v| self.values[v].bytes).sum(),
            flops: again.iter().fold(0, |sum, &s| sum.saturating_add(self.steps[s].flops)),
            kept,
            again,
        }
    }

    /// All results of steps that computing everything again would meet: what it may pay to keep.
    pub fn candidates(&self) -> Vec<usize> {
        let everything = self.follow(|_| false);
        let made =
            |v: &usize| matches!(self.values[*v].source, Source::Step(s) if everything.again.binary_search(&s).is_ok());
        let operands = everything.again.iter().flat_map(|&s| self.steps[s].operands.iter().copied());
        let mut all: Vec<usize> = operands.chain(self.required.iter().copied()).filter(made).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
