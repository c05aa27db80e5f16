//! The stages between a differentiated graph and a target's own code, in their fixed order.
//!
//! differentiate (done by the caller) → precision → decompose → simplify → layout → fuse (the target's own) → plan.

use crate::passes::{cse, fold, layout, pack, simplify, unroll};
use crate::precision::{self, Policy};
use backfit_ir::rewrite::{canonical, dead_code, inline_calls, live_functions};
use backfit_ir::{Error, FuncId, Function, Module};

/// What a target asks of the stages.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the composites that the target takes whole.
    pub claims: &'static [&'static str],
    /// Whether arithmetic flushes subnormals to zero.
    pub flush_subnormals: bool,
    /// Whether the target has no loops, so that every step of a scan becomes a call.
    pub without_loops: bool,
    /// Whether all results of a called function that have one dtype are packed into one, for targets whose functions
    /// have a single output.
    pub packed_results: bool,
    /// In which dtypes the program computes.
    pub precision: Policy,
}

/// What a stage did.
#[derive(Clone, Debug, PartialEq)]
pub struct StageReport {
    /// The stage's name.
    pub name: &'static str,
    /// Nodes over all functions after it.
    pub nodes: usize,
    /// What it did, in words.
    pub notes: Vec<String>,
    /// The module after it.
    pub module: Module,
}

/// A module after all common stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// Only functions that the roots reach.
    pub module: Module,
    /// The roots, in the order in which they were given.
    pub roots: Vec<FuncId>,
    /// What every stage did.
    pub stages: Vec<StageReport>,
    /// Composites that stay calls.
    claims: &'static [&'static str],
}

/// Takes the functions `roots` and all that they call through the stages.
///
/// # Errors
/// Where a stage leaves something that its successor does not accept: a defect of Backfit, reported with the stage's name.
pub fn lower(module: &Module, roots: &[FuncId], options: &Options) -> Result<Lowered, Error> {
    let (module, roots) = live_functions(module, roots);
    let mut lowered = Lowered { module, roots, stages: Vec::new(), claims: options.claims };
    lowered.record("differentiate", vec![])?;
    lowered.precision(&options.precision)?;
    lowered.decompose(options)?;
    lowered.simplify(options.flush_subnormals)?;
    lowered.layout()?;
    Ok(lowered)
}

impl Lowered {
    fn record(&mut self, name: &'static str, notes: Vec<String>) -> Result<(), Error> {
        let stage = stage(name);
        let claimed = |f: &Function| f.composite.as_ref().is_some_and(|c| self.claims.contains(&c.name.as_str()));
        backfit_ir::verify::verify_claimed(&self.module, stage, claimed)
            .map_err(|e| e.because(format!("the stage '{name}' left an invalid module; please report this")))?;
        let nodes = self.module.functions.iter().map(|f| f.nodes.len()).sum();
        self.stages.push(StageReport { name, nodes, notes, module: self.module.clone() });
        Ok(())
    }

    fn rewrite(&mut self, mut pass: impl FnMut(&Function) -> Function) {
        for function in &mut self.module.functions {
            *function = pass(function);
        }
    }

    fn precision(&mut self, policy: &Policy) -> Result<(), Error> {
        let (module, roots, notes) = precision::apply(&self.module, &self.roots, policy);
        (self.module, self.roots) = (module, roots);
        self.record("precision", notes)
    }

    /// Inlines every composite that the target does not claim, turns loops into calls where it has none, and packs
    /// results where functions have few outputs.
    fn decompose(&mut self, options: &Options) -> Result<(), Error> {
        let claims = options.claims;
        let mut unrolled = 0;
        if options.without_loops {
            self.rewrite(|f| {
                let (next, count) = unroll::run(f);
                unrolled += count;
                next
            });
        }
        let mut claimed: Vec<String> = Vec::new();
        for index in 0..self.module.functions.len() {
            let flat = inline_calls(&self.module, FuncId(index as u32), |callee| match &callee.composite {
                Some(composite) => !claims.contains(&composite.name.as_str()),
                None => false,
            });
            self.module.functions[index] = flat;
        }
        let (module, roots) = live_functions(&self.module, &self.roots);
        (self.module, self.roots) = (module, roots);
        claimed.extend(self.module.functions.iter().filter_map(|f| f.composite.as_ref()).map(|c| c.name.clone()));
        let mut notes = vec![if claimed.is_empty() {
            "all composites decomposed".to_owned()
        } else {
            format!("claimed: {}", claimed.join(", "))
        }];
        if unrolled > 0 {
            notes.push(format!("{unrolled} loops became calls"));
        }
        if options.packed_results {
            let (module, packed) = pack::run(&self.module, &self.roots);
            self.module = module;
            notes.extend(packed);
        }
        self.record("decompose", notes)
    }

    fn simplify(&mut self, flush_subnormals: bool) -> Result<(), Error> {
        let (mut folded, mut merged, mut dead) = (0, 0, 0);
        let mut rules: Vec<(&'static str, usize)> = Vec::new();
        self.rewrite(|f| {
            let mut current = f.clone();
            loop {
                let (next, applied) = simplify::run(&current);
                let (next, new_folded) = fold::run(&next, flush_subnormals);
                let (next, new_merged) = cse::run(&next);
                let before = next.nodes.len();
                let next = dead_code(&next);
                dead += before - next.nodes.len();
                folded += new_folded;
                merged += new_merged;
                let quiet = applied.is_empty() && new_folded == 0 && new_merged == 0;
                for (name, count) in applied {
                    match rules.iter_mut().find(|(n, _)| *n == name) {
                        Some((_, total)) => *total += count,
                        None => rules.push((name, count)),
                    }
                }
                current = next;
                if quiet {
                    return current;
                }
            }
        });
        let mut notes = vec![format!("{folded} folded, {merged} merged, {dead} dead")];
        notes.extend(rules.into_iter().map(|(name, count)| format!("{count} × {name}")));
        self.record("simplify", notes)
    }

    fn layout(&mut self) -> Result<(), Error> {
        let mut total = 0;
        self.rewrite(|f| {
            let mut current = f.clone();
            loop {
                let (next, folded) = layout::run(&current);
                current = next;
                total += folded;
                if folded == 0 {
                    return canonical(&current);
                }
            }
        });
        self.record("layout", vec![format!("{total} transposes folded into products")])
    }
}

fn stage(name: &str) -> backfit_ir::verify::Stage {
    use backfit_ir::verify::Stage;
    match name {
        "differentiate" => Stage::Differentiated,
        "precision" => Stage::Precise,
        "decompose" => Stage::Decomposed,
        _ => Stage::Simplified,
    }
}
