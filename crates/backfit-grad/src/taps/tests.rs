//! Choices against all choices, by another definition of what a choice is.

use super::problem::{Recomputation, Source, Step, Value};
use super::{cut, exhaustive};

/// Numbers that repeat: Knuth's linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Inputs, weights, and up to ten steps, some with two results, of which later ones and the backward pass read.
fn problem(seed: u64) -> Recomputation {
    let mut random = Random(seed);
    let bytes = |random: &mut Random| 4u64 << random.below(8);
    let mut values = Vec::new();
    for _ in 0..1 + random.below(3) {
        let source = if random.below(3) == 0 { Source::Free } else { Source::Input };
        values.push(Value { bytes: bytes(&mut random), source });
    }
    let mut steps = Vec::new();
    for step in 0..2 + random.below(9) {
        let operands = (0..1 + random.below(2)).map(|_| random.below(values.len())).collect();
        let flops = [0, 10, 100, 1000][random.below(4)] * (1 + random.below(9) as u64);
        steps.push(Step { operands, flops });
        for _ in 0..1 + usize::from(random.below(5) == 0) {
            values.push(Value { bytes: bytes(&mut random), source: Source::Step(step) });
        }
    }
    let required: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(values.len())).collect();
    Recomputation::new(values, steps.into_iter(), required.into_iter())
}

/// (bytes, operations) where exactly these steps are run again: all that they and the backward pass read and do not make is kept.
fn price(p: &Recomputation, again: u32) -> (u64, u64) {
    let runs = |s: usize| again >> s & 1 == 1;
    let steps = (0..p.steps.len()).filter(|&s| runs(s));
    let mut read = p.required.clone();
    read.extend(steps.clone().flat_map(|s| p.steps[s].operands.iter().copied()));
    read.sort_unstable();
    read.dedup();
    let kept = read.into_iter().filter(|&v| match p.values[v].source {
        Source::Free => false,
        Source::Input => true,
        Source::Step(s) => !runs(s),
    });
    (kept.map(|v| p.values[v].bytes).sum(), steps.map(|s| p.steps[s].flops).sum())
}

/// The fewest operations within the budget, or the fewest bytes.
fn best(p: &Recomputation, budget: u64) -> Result<u64, u64> {
    let all: Vec<(u64, u64)> = (0..1 << p.steps.len()).map(|again| price(p, again)).collect();
    let fitting = all.iter().filter(|(bytes, _)| *bytes <= budget).map(|(_, flops)| *flops).min();
    fitting.ok_or_else(|| all.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0))
}

#[test]
fn few_candidates_get_the_best_choice_and_many_one_at_most_a_tenth_worse() {
    let (mut worst, mut same, mut count) = (1.0f64, 0, 0);
    for seed in 0..400 {
        let p = problem(seed);
        let most = p.follow(|_| true).bytes;
        for share in [0, 1, 2, 3, 5, 8] {
            let budget = most * share / 8;
            let expected = best(&p, budget);
            let exact = exhaustive::best(&p, budget).expect("few candidates").map(|c| {
                assert!(c.bytes <= budget, "seed {seed}");
                assert_eq!(price(&p, c.again.iter().map(|s| 1 << s).sum()), (c.bytes, c.flops), "seed {seed}");
                c.flops
            });
            assert_eq!(exact, expected, "seed {seed}, budget {budget}");
            let found = cut::best(&p, budget).map(|c| {
                assert!(c.bytes <= budget, "seed {seed}");
                c.flops
            });
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    let ratio = (found as f64).max(1.0) / (expected as f64).max(1.0);
                    (worst, same, count) = (worst.max(ratio), same + usize::from(found == expected), count + 1);
                }
                (found, expected) => assert_eq!(found, expected, "seed {seed}, budget {budget}"),
            }
        }
    }
    println!("the cuts found the best choice {same} times of {count}; the worst was {worst:.3} of the best");
    assert!(worst <= 1.1, "{worst}");
}
