//! The best choice of what to keep by trying all, where they are few.

use super::problem::{Choice, Recomputation};

/// As many candidates are tried in all combinations.
const MOST: usize = 14;

/// The choice with the fewest operations within the budget, or the fewest bytes that can be kept.
/// `None` where there are too many choices to try.
pub(super) fn best(recomputation: &Recomputation, budget: u64) -> Option<Result<Choice, u64>> {
    let candidates = recomputation.candidates();
    if candidates.len() > MOST {
        return None;
    }
    let mut best: Option<Choice> = None;
    let mut least = u64::MAX;
    for set in 0..1u32 << candidates.len() {
        let chosen = |v| candidates.binary_search(&v).is_ok_and(|bit| set >> bit & 1 == 1);
        let choice = recomputation.follow(chosen);
        least = least.min(choice.bytes);
        if choice.bytes <= budget && best.as_ref().is_none_or(|b| choice.is_better_than(b)) {
            best = Some(choice);
        }
    }
    Some(best.ok_or(least))
}
