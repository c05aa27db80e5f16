//! Named numbers: what a step, an epoch or an evaluation reports.

use std::ops::Index;
use std::sync::Arc;

/// Numbers by name, in a fixed order. `scalars["loss"]` reads one; [`Scalars::get`] where the name may be wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scalars {
    names: Arc<[String]>,
    values: Vec<f64>,
}

impl Scalars {
    pub(crate) fn new(names: Arc<[String]>) -> Self {
        Scalars { values: vec![0.0; names.len()], names }
    }

    pub(crate) fn names(&self) -> Arc<[String]> {
        self.names.clone()
    }

    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The number with this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.names.iter().position(|n| n == name).map(|i| self.values[i])
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.names.iter().map(String::as_str).zip(self.values.iter().copied())
    }
}

impl Index<&str> for Scalars {
    type Output = f64;

    /// # Panics
    /// Where there is no number with this name.
    fn index(&self, name: &str) -> &f64 {
        match self.names.iter().position(|n| n == name) {
            Some(i) => &self.values[i],
            None => panic!("there is no '{name}'; there are: {}", self.names.join(", ")),
        }
    }
}

/// A mean of scalars, each weighted by the samples it stems from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mean {
    sums: Scalars,
    samples: u64,
}

impl Mean {
    pub fn new(names: Arc<[String]>) -> Self {
        Mean { sums: Scalars::new(names), samples: 0 }
    }

    /// The mean that goes on from these sums, a number for each name.
    pub fn of(names: Arc<[String]>, sums: Vec<f64>, samples: u64) -> Self {
        Mean { sums: Scalars { names, values: sums }, samples }
    }

    /// Each number, times the samples it stems from, added up.
    pub fn sums(&self) -> &Scalars {
        &self.sums
    }

    /// How many samples they stem from.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Starts anew.
    pub fn clear(&mut self) {
        self.sums.values.fill(0.0);
        self.samples = 0;
    }

    pub fn add(&mut self, scalars: &Scalars, samples: usize) {
        for (sum, value) in self.sums.values.iter_mut().zip(&scalars.values) {
            *sum += value * samples as f64;
        }
        self.samples += samples as u64;
    }

    pub fn finish(&self) -> Scalars {
        let mut means = self.sums.clone();
        // Where there are no samples, 0/0 says so.
        means.values.iter_mut().for_each(|sum| *sum /= self.samples as f64);
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(values: [f64; 2]) -> Scalars {
        let mut scalars = Scalars::new(Arc::new(["loss".to_owned(), "accuracy".to_owned()]));
        scalars.values_mut().copy_from_slice(&values);
        scalars
    }

    #[test]
    fn numbers_are_found_by_name() {
        let found = scalars([2.0, 0.5]);
        assert_eq!((found["loss"], found["accuracy"], found.get("f1")), (2.0, 0.5, None));
        assert_eq!(found.iter().collect::<Vec<_>>(), [("loss", 2.0), ("accuracy", 0.5)]);
    }

    #[test]
    fn means_weigh_by_samples() {
        let mut mean = Mean::new(scalars([0.0; 2]).names);
        mean.add(&scalars([1.0, 0.0]), 3);
        mean.add(&scalars([5.0, 1.0]), 1);
        assert_eq!(mean.finish(), scalars([2.0, 0.25]));
    }
}
