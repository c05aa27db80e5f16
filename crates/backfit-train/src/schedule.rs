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
    /// Up a straight line over the first `warmup` steps, then constant.
    Warmup {
        /// Steps on the way up.
        warmup: u64,
    },
    /// Up half a cosine wave from 1/25 over the first `share` of the steps, then down another to 1/250,000 at step
    /// `total` − 1, from where it stays (Smith & Topin 2018, as `torch.optim.lr_scheduler.OneCycleLR`). The optimizer's
    /// learning rate is the largest.
    OneCycle {
        /// Steps in all.
        total: u64,
        /// The share of them on the way up; 0.3 in PyTorch.
        share: f64,
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
            Schedule::Warmup { warmup } | Schedule::WarmupCosine { warmup, .. } if step < warmup => {
                base * (step + 1) as f64 / warmup as f64
            }
            Schedule::Warmup { .. } => base,
            Schedule::OneCycle { total, share } => one_cycle(base, step as f64, total as f64, share),
            Schedule::WarmupCosine { warmup, total, min } => {
                cosine(base, min, progress(step - warmup, total.saturating_sub(warmup)))
            }
        }
    }
}

fn one_cycle(base: f64, step: f64, total: f64, share: f64) -> f64 {
    let (start, last) = (base / 25.0, (total - 1.0).max(0.0));
    let top = (share * total - 1.0).clamp(0.0, last);
    let between = |from: f64, to: f64, share: f64| to + (from - to) / 2.0 * (1.0 + (PI * share).cos());
    match step {
        step if step < top => between(start, base, step / top),
        step if step < last => between(base, start / 1e4, (step - top) / (last - top)),
        _ => start / 1e4,
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

    /// Values of PyTorch 2.15 for a learning rate of 0.4: `OneCycleLR(total_steps=20)`, `CosineAnnealingLR(10, 0.05)`,
    /// `StepLR(3, 0.3)`, `LinearLR(0.2, total_iters=4)`, `LinearLR(1.0, 0.25, total_iters=8)`, `ExponentialLR(0.9)`, and
    /// the third before the second.
    #[test]
    fn rates_are_those_of_pytorch() {
        let one_cycle = [
            (0, 0.016000000000000014),
            (1, 0.05266873708001013),
            (5, 0.4),
            (6, 0.39498560249403497),
            (12, 0.2000008),
            (18, 0.005015997505965022),
            (19, 1.6e-06),
        ];
        let cosine = [(0, 0.4), (1, 0.3914348903516519), (3, 0.3278624191511828), (7, 0.12213758084881725), (10, 0.05)];
        let steps = [(0, 0.4), (2, 0.4), (3, 0.12), (6, 0.036), (9, 0.0108)];
        let warmup = [(0, 0.08), (1, 0.16), (3, 0.32), (4, 0.4), (6, 0.4)];
        let linear = [(0, 0.4), (1, 0.3625), (5, 0.2125), (8, 0.1), (9, 0.1)];
        let exponential = [(0, 0.4), (1, 0.36), (4, 0.26244)];
        let both = [(0, 0.08), (4, 0.4), (5, 0.4), (6, 0.3914348903516519), (12, 0.12213758084881725)];
        let check = |schedule: Schedule, expected: &[(u64, f64)]| {
            for &(step, rate) in expected {
                let found = schedule.learning_rate(0.4, step);
                assert!((found - rate).abs() < 1e-12, "{schedule:?} at {step}: {found}, not {rate}");
            }
        };
        check(Schedule::OneCycle { total: 20, share: 0.3 }, &one_cycle);
        check(Schedule::Cosine { total: 10, min: 0.05 }, &cosine);
        check(Schedule::Step { every: 3, gamma: 0.3 }, &steps);
        check(Schedule::Warmup { warmup: 5 }, &warmup);
        check(Schedule::Linear { total: 8, min: 0.1 }, &linear);
        check(Schedule::Exponential { gamma: 0.9 }, &exponential);
        check(Schedule::WarmupCosine { warmup: 5, total: 15, min: 0.05 }, &both);
    }

    #[test]
    fn borders_of_zero_are_no_division_by_zero() {
        assert_eq!(Schedule::Step { every: 0, gamma: 1.0 }.learning_rate(1.0, 5), 1.0);
        assert_eq!(Schedule::WarmupCosine { warmup: 0, total: 0, min: 0.2 }.learning_rate(1.0, 0), 0.2);
        assert_eq!(Schedule::Warmup { warmup: 0 }.learning_rate(1.0, 0), 1.0);
        for (total, share) in [(0, 0.3), (1, 0.3), (2, 0.0), (9, 1.0)] {
            let rates = (0..12).map(|step| Schedule::OneCycle { total, share }.learning_rate(1.0, step));
            assert!(rates.into_iter().all(|rate| (0.0..=1.0).contains(&rate)), "{total} {share}");
        }
        assert_eq!(Schedule::WarmupCosine { warmup: 9, total: 3, min: 0.2 }.learning_rate(1.0, 9), 0.2);
    }
}
