//! How the learning rate changes from step to step.

use std::f64::consts::PI;

/// The learning rate as a function of the steps done.
///
/// ```
/// use backfit_train::Schedule;
/// let schedule = Schedule::WarmupCosine { warmup: 10, total: 110, min: 0.0 };
/// assert_eq!(schedule.learning_rate(1.0, 4), 0.5);
/// assert_eq!(schedule.learning_rate(1.0, 10), 1.0);
/// assert!((schedule.learning_rate(1.0, 60) - 0.5).abs() < 1e-12);
/// assert_eq!(schedule.learning_rate(1.0, 1000), 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Schedule {
    /// The learning rate of the optimizer throughout.
    #[default]
    Constant,
    /// Multiplied by `gamma` after every `every` steps.
    Step {
        /// Steps between two changes.
        every: u64,
        /// The factor.
        gamma: f64,
    },
    /// Multiplied by `gamma` after every step.
    Exponential {
        /// The factor.
        gamma: f64,
    },
    /// Down a straight line to `min` at step `total`, from where it stays.
    Linear {
        /// The step of the end.
        total: u64,
        /// The learning rate at the end.
        min: f64,
    },
    /// Down half a cosine wave to `min` at step `total`, from where it stays (Loshchilov & Hutter 2017).
    Cosine {
        /// The step of the end.
        total: u64,
        /// The learning rate at the end.
        min: f64,
    },
    /// Up a straight line over the first `warmup` steps, then as [`Schedule::Cosine`].
    WarmupCosine {
        /// Steps on the way up.
        warmup: u64,
        /// The step of the end.
        total: u64,
        /// The learning rate at the end.
        min: f64,
    },
}

impl Schedule {
    /// The learning rate of the step after `step` others; `base` is the optimizer's.
    pub fn learning_rate(&self, base: f64, step: u64) -> f64 {
        match *self {
            Schedule::Constant => base,
            Schedule::Step { every, gamma } => base * gamma.powf((step / every.max(1)) as f64),
            Schedule::Exponential { gamma } => base * gamma.powf(step as f64),
            Schedule::Linear { total, min } => min + (base - min) * (1.0 - progress(step, total)),
            Schedule::Cosine { total, min } => cosine(base, min, progress(step, total)),
            Schedule::WarmupCosine { warmup, .. } if step < warmup => base * (step + 1) as f64 / warmup as f64,
            Schedule::WarmupCosine { warmup, total, min } => {
                cosine(base, min, progress(step - warmup, total.saturating_sub(warmup)))
            }
        }
    }
}

fn progress(step: u64, total: u64) -> f64 {
    if step >= total { 1.0 } else { step as f64 / total as f64 }
}

fn cosine(base: f64, min: f64, progress: f64) -> f64 {
    min + (base - min) * 0.5 * (1.0 + (PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_begin_at_the_base_and_end_at_the_minimum() {
        let total = 50;
        for schedule in [Schedule::Linear { total, min: 0.1 }, Schedule::Cosine { total, min: 0.1 }] {
            assert_eq!(schedule.learning_rate(2.0, 0), 2.0);
            assert!((schedule.learning_rate(2.0, 25) - 1.05).abs() < 1e-12);
            assert_eq!(schedule.learning_rate(2.0, 50), 0.1);
            assert_eq!(schedule.learning_rate(2.0, u64::MAX), 0.1);
        }
    }

    #[test]
    fn steps_multiply_at_their_borders() {
        let schedule = Schedule::Step { every: 10, gamma: 0.5 };
        let rates = [0, 9, 10, 20].map(|step| schedule.learning_rate(1.0, step));
        assert_eq!(rates, [1.0, 1.0, 0.5, 0.25]);
        assert_eq!(Schedule::Exponential { gamma: 0.5 }.learning_rate(1.0, 3), 0.125);
    }

    #[test]
    fn borders_of_zero_are_no_division_by_zero() {
        assert_eq!(Schedule::Step { every: 0, gamma: 1.0 }.learning_rate(1.0, 5), 1.0);
        assert_eq!(Schedule::WarmupCosine { warmup: 0, total: 0, min: 0.2 }.learning_rate(1.0, 0), 0.2);
        assert_eq!(Schedule::WarmupCosine { warmup: 9, total: 3, min: 0.2 }.learning_rate(1.0, 9), 0.2);
    }
}
