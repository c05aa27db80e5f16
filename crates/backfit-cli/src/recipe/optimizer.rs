//! The tables `[optimizer]`, `[schedule]` and `[early_stop]`.

use super::Checks;
use super::model::Loss;
use super::range::{NOT_NEGATIVE, POSITIVE, SHARE, is_not_negative, is_positive, is_share};
use serde::{Deserialize, Serialize};

/// The table `[optimizer]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Which.
    pub name: OptimizerName,
    /// The learning rate before any schedule.
    pub learning_rate: f64,
    /// λ of weight decay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// μ of `sgd` and `rmsprop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// The look-ahead of `sgd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nesterov: Option<bool>,
    /// Divides by the deviation of gradients instead of their root mean square, of `rmsprop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub centered: Option<bool>,
    /// β₁ and β₂ of `adam`, `adamw` and `lion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betas: Option<[f64; 2]>,
    /// ε of `adam`, `adamw` and `rmsprop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// The decay rate of `rmsprop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// The gradients' common norm is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// The decay of averages of the weights, which evaluation and prediction then use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ema: Option<f64>,
    /// Weights that are treated differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<Group>>,
}

/// A table of `[[optimizer.groups]]`. Of several whose pattern fits a weight, the last one counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Names of weights; `*` stands for any characters, `?` for one.
    pub pattern: String,
    /// A factor of the learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// A factor of the weight decay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// Whether the weights stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<bool>,
}

/// The key `loss_scale`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LossScale {
    /// The same number throughout.
    Static(f64),
    /// `dynamic`.
    Named(String),
}

/// An optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names of the field
pub enum OptimizerName {
    Sgd,
    Adam,
    #[serde(rename = "adamw")]
    AdamW,
    #[serde(rename = "rmsprop")]
    RmsProp,
    Lion,
    Adafactor,
}

/// The table `[schedule]`. A schedule that ends does so at the end of the last epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Which.
    pub name: ScheduleName,
    /// Steps on the way up, of `warmup` and `warmup_cosine`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u64>,
    /// The learning rate at the end, of `linear`, `cosine` and `warmup_cosine`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Steps between two changes, of `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The factor of `step` and `exponential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// The share of the steps on the way up, of `one_cycle`; 0.3 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names of the field
pub enum ScheduleName {
    Constant,
    Step,
    Exponential,
    Linear,
    Cosine,
    Warmup,
    WarmupCosine,
    OneCycle,
}

/// The table `[early_stop]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStop {
    /// `loss` or `accuracy`, of the held-back samples where there are any.
    #[serde(default = "loss")]
    pub monitor: String,
    /// Epochs without improvement.
    pub patience: u64,
}

fn loss() -> String {
    "loss".to_owned()
}

impl Optimizer {
    /// Checks every value.
    pub fn check(&self, c: &mut Checks) {
        use OptimizerName::{Adafactor, Adam, AdamW, Lion, RmsProp, Sgd};
        let (name, by, help) = (self.name, "this optimizer", "remove it, or choose another optimizer.name");
        if matches!(name, Adam | AdamW) {
            c.unused(&self.momentum, "optimizer.momentum", "adam", "set optimizer.betas instead");
        } else if !matches!(name, Sgd | RmsProp) {
            c.unused(&self.momentum, "optimizer.momentum", by, help);
        }
        if !matches!(name, Adam | AdamW | Lion) {
            c.unused(&self.betas, "optimizer.betas", by, help);
        }
        if matches!(name, Sgd | Lion | Adafactor) {
            c.unused(&self.epsilon, "optimizer.epsilon", by, help);
        }
        if name == Sgd {
            let moves = self.nesterov != Some(true) || self.momentum.is_some_and(|m| m > 0.0);
            c.require(moves, "optimizer.nesterov", "it needs a momentum", "set optimizer.momentum, such as 0.9");
        } else {
            c.unused(&self.nesterov, "optimizer.nesterov", by, help);
        }
        if name != RmsProp {
            c.unused(&self.alpha, "optimizer.alpha", by, help);
            c.unused(&self.centered, "optimizer.centered", by, help);
        }
        self.check_numbers(c);
    }

    /// Numbers that are told to a step, which computes with f32.
    fn check_numbers(&self, c: &mut Checks) {
        let rate = self.learning_rate;
        let what = format_args!("{rate:?} is not {POSITIVE}");
        c.require(is_positive(rate), "optimizer.learning_rate", what, "give a rate such as 0.001");
        let shares = [
            ("optimizer.momentum", self.momentum.is_none_or(is_share), "0.9"),
            ("optimizer.alpha", self.alpha.is_none_or(is_share), "0.9"),
            ("optimizer.betas", self.betas.is_none_or(|b| b.into_iter().all(is_share)), "0.9"),
            ("optimizer.ema", self.ema.is_none_or(is_share), "0.999"),
        ];
        for (key, ok, such) in shares {
            c.require(ok, key, format_args!("it must be {SHARE}"), &format!("give a number such as {such}"));
        }
        let decay = self.weight_decay.is_none_or(is_not_negative);
        c.require(decay, "optimizer.weight_decay", format_args!("it must be {NOT_NEGATIVE}"), "give 0.01");
        let (epsilon, clip) = (self.epsilon.is_none_or(is_positive), self.clip_norm.is_none_or(is_positive));
        let what = format_args!("it must be {POSITIVE}");
        c.require(epsilon, "optimizer.epsilon", what, "give a number such as 1e-8");
        c.require(clip, "optimizer.clip_norm", what, "give a number such as 1.0");
        for Group { pattern, rate: factor, decay, .. } in self.groups.iter().flatten() {
            let factors = [factor, decay].into_iter().flatten().all(|v| is_not_negative(*v));
            let what = format_args!("rate and decay of '{pattern}' are factors, and must be {NOT_NEGATIVE}");
            c.require(factors, "optimizer.groups", what, "give numbers such as 0.1");
            let product = factor.is_none_or(|factor| is_not_negative(factor * rate));
            let what = format_args!("the learning rate times the rate of '{pattern}' must be {NOT_NEGATIVE}");
            c.require(product || !factors, "optimizer.groups", what, "give a rate such as 0.1");
        }
    }
}

impl Group {
    /// The same in the library.
    pub fn settings(&self) -> backfit::Group {
        let Group { rate, decay, frozen, .. } = self;
        backfit::Group { rate: rate.unwrap_or(1.0), decay: decay.unwrap_or(1.0), frozen: frozen.unwrap_or(false) }
    }
}

impl LossScale {
    /// Checks the value.
    pub fn check(&self, c: &mut Checks) {
        let what = match self {
            LossScale::Static(scale) => format!("{scale} is not between 1 and 2^100"),
            LossScale::Named(name) => format!("nothing is known of '{name}'"),
        };
        let ok = match self {
            LossScale::Static(scale) => (1.0..=2f64.powi(100)).contains(scale),
            LossScale::Named(name) => name == "dynamic",
        };
        c.require(ok, "loss_scale", what, "give a number such as 1024, or \"dynamic\"");
    }

    /// The same in the library.
    pub fn settings(&self) -> backfit::LossScale {
        match self {
            LossScale::Static(scale) => backfit::LossScale::Static(*scale),
            LossScale::Named(_) => backfit::LossScale::dynamic(),
        }
    }
}

impl Schedule {
    /// Checks every value.
    pub fn check(&self, c: &mut Checks) {
        use ScheduleName::{Cosine, Exponential, Linear, OneCycle, Step, Warmup, WarmupCosine};
        let (by, help) = ("this schedule", "remove it, or choose another schedule.name");
        if matches!(self.name, Warmup | WarmupCosine) {
            c.require(self.warmup.is_some(), "schedule.warmup", "this schedule needs it", "give a number of steps");
        } else {
            c.unused(&self.warmup, "schedule.warmup", by, help);
        }
        if self.name != OneCycle {
            c.unused(&self.share, "schedule.share", by, help);
        }
        let share = self.share.is_none_or(|share| (0.0..=1.0).contains(&share));
        c.require(share, "schedule.share", "it must be between 0 and 1", "give a share such as 0.3");
        if !matches!(self.name, Linear | Cosine | WarmupCosine) {
            c.unused(&self.min, "schedule.min", by, help);
        }
        if self.name != Step {
            c.unused(&self.every, "schedule.every", by, help);
        } else {
            let ok = self.every.is_some_and(|e| e > 0);
            c.require(ok, "schedule.every", "the schedule 'step' needs a number of steps", "such as every = 1000");
        }
        if !matches!(self.name, Step | Exponential) {
            c.unused(&self.gamma, "schedule.gamma", by, help);
        } else {
            let ok = self.gamma.is_some_and(is_positive);
            let what = format_args!("this schedule needs {POSITIVE}");
            c.require(ok, "schedule.gamma", what, "such as gamma = 0.5");
        }
        let min = self.min.is_none_or(is_not_negative);
        c.require(min, "schedule.min", format_args!("it must be {NOT_NEGATIVE}"), "give 0");
    }

    /// The schedule of a run with `total` steps.
    pub fn over(&self, total: u64) -> backfit::Schedule {
        use backfit::Schedule as S;
        let (min, gamma) = (self.min.unwrap_or(0.0), self.gamma.unwrap_or(1.0));
        match self.name {
            ScheduleName::Constant => S::Constant,
            ScheduleName::Step => S::Step { every: self.every.unwrap_or(1), gamma },
            ScheduleName::Exponential => S::Exponential { gamma },
            ScheduleName::Linear => S::Linear { total, min },
            ScheduleName::Cosine => S::Cosine { total, min },
            ScheduleName::Warmup => S::Warmup { warmup: self.warmup.unwrap_or(0) },
            ScheduleName::OneCycle => S::OneCycle { total, share: self.share.unwrap_or(0.3) },
            ScheduleName::WarmupCosine => S::WarmupCosine { warmup: self.warmup.unwrap_or(0), total, min },
        }
    }
}

impl EarlyStop {
    /// Checks every value.
    pub fn check(&self, loss: &Loss, c: &mut Checks) {
        let known = self.monitor == "loss" || (self.monitor == "accuracy" && loss.is_of_classes());
        let names = if loss.is_of_classes() { "\"loss\" or \"accuracy\"" } else { "\"loss\"" };
        let what = format!("nothing named '{}' is reported", self.monitor);
        c.require(known, "early_stop.monitor", what, &format!("give {names}"));
        c.require(self.patience > 0, "early_stop.patience", "no patience at all", "give at least 1");
    }
}
