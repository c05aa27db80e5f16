//! The order of samples within an epoch: a pure function of (number of samples, seed, epoch).
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014)
//! used by counter: draw `i` of a key is `mix(key + (i + 1)·γ)`. Nothing is carried from one epoch to the
//! next, so any epoch can be entered directly and a resumed run sees the order of an uninterrupted one.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A random sequence addressed by counter.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// The sequence of a seed and a stream number; different streams of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        Draws { key: mix(mix(seed.wrapping_add(GAMMA)) ^ mix(stream.wrapping_add(1).wrapping_mul(GAMMA))) }
    }

    /// Draw number `i`, uniform over all 64-bit values.
    pub fn bits(&self, i: u64) -> u64 {
        mix(self.key.wrapping_add(i.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// Draw number `i`, uniform over `0..n` but for a bias below n/2⁶⁴. Zero where `n` is zero.
    pub fn below(&self, i: u64, n: usize) -> usize {
        ((u128::from(self.bits(i)) * n as u128) >> 64) as usize
    }
}

/// Fills `order` with `0..order.len()` in the order of (`seed`, `epoch`): Fisher–Yates from the end,
/// position `i` swapped with draw `i` below `i + 1`.
///
/// ```
/// let mut order = [0; 6];
/// backfit_train::data::order::shuffle(&mut order, 7, 0);
/// let first = order;
/// backfit_train::data::order::shuffle(&mut order, 7, 1);
/// assert_ne!(order, first);
/// backfit_train::data::order::shuffle(&mut order, 7, 0);
/// assert_eq!(order, first);
/// ```
pub fn shuffle(order: &mut [usize], seed: u64, epoch: u64) {
    let draws = Draws::new(seed, epoch);
    for (i, place) in order.iter_mut().enumerate() {
        *place = i;
    }
    for i in (1..order.len()).rev() {
        order.swap(i, draws.below(i as u64, i + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_occurs_once_an_epoch() {
        for n in [0, 1, 2, 3, 17, 1000] {
            let mut order = vec![0; n];
            shuffle(&mut order, 3, 5);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
    }

    #[test]
    fn the_order_is_the_same_in_every_version() {
        let mut order = [0; 10];
        shuffle(&mut order, 0, 0);
        assert_eq!(order, [5, 8, 4, 3, 0, 7, 1, 6, 2, 9]);
    }

    #[test]
    fn every_permutation_of_four_is_about_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for epoch in 0..24_000 {
            let mut order = [0; 4];
            shuffle(&mut order, 11, epoch);
            *counts.entry(order).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|&c: &i32| (c - 1000).abs() < 160), "{counts:?}");
    }

    #[test]
    fn seeds_and_epochs_do_not_share_orders() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            for epoch in 0..40 {
                let mut order = [0; 30];
                shuffle(&mut order, seed, epoch);
                assert!(seen.insert(order), "seed {seed}, epoch {epoch}");
            }
        }
    }
}
