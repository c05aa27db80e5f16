//! Optimizers: which state they keep per weight, which scalars a step is fed, and how they update.

use backfit_ir::Tensor;
use backfit_ir::ops::{adam_update, rmsprop_update, sgd_update};
use std::fmt::Debug;

/// A weight and its optimizer state after a step.
pub struct Updated {
    /// The new weight.
    pub weight: Tensor,
    /// The new state, in the order of [`Optimizer::slots`].
    pub slots: Vec<Tensor>,
}

/// An update rule. Users may write their own; the update is built of graph operators like everything else.
pub trait Optimizer: Debug + Send + Sync {
    /// Names of the tensors kept per weight, each of the weight's type, starting at zero.
    fn slots(&self) -> Vec<&'static str>;

    /// Names of the scalars that every step is fed; the first is the learning rate.
    fn hypers(&self) -> Vec<&'static str>;

    /// Their values at a step (counted from 1) with this learning rate.
    fn hyper_values(&self, step: u64, learning_rate: f64) -> Vec<f64>;

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// The new weight and state. `hypers` have the weight's dtype.
    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated;
}

/// Stochastic gradient descent, as `torch.optim.SGD`: v ← μv + g; w ← w − lr·v (Nesterov: g + μv).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    learning_rate: f64,
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
}

impl Sgd {
    /// Plain gradient descent.
    pub fn new(learning_rate: f64) -> Self {
        Sgd { learning_rate, momentum: 0.0, nesterov: false, weight_decay: 0.0 }
    }

    /// With momentum μ.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// With Nesterov's look-ahead.
    pub fn nesterov(mut self) -> Self {
        self.nesterov = true;
        self
    }

    /// Adds λw to the gradient.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }
}

impl Optimizer for Sgd {
    fn slots(&self) -> Vec<&'static str> {
        if self.momentum == 0.0 { vec![] } else { vec!["velocity"] }
    }

    fn hypers(&self) -> Vec<&'static str> {
        vec!["learning_rate"]
    }

    fn hyper_values(&self, _: u64, learning_rate: f64) -> Vec<f64> {
        vec![learning_rate]
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let mut new =
            sgd_update::sgd_update(weight, gradient, slots.first(), &hypers[0], self.momentum, self.nesterov, self.weight_decay);
        Updated { weight: new.remove(0), slots: new }
    }
}

/// Adam (Kingma & Ba 2015), as `torch.optim.Adam`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    learning_rate: f64,
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    weight_decay: f64,
    decoupled: bool,
}

impl Adam {
    /// With β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
    pub fn new(learning_rate: f64) -> Self {
        Adam { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decoupled: false }
    }

    /// Other decay rates of the moments.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        (self.beta1, self.beta2) = (beta1, beta2);
        self
    }

    /// Another ε.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.epsilon = epsilon;
        self
    }

    /// Adds λw to the gradient.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }
}

impl Optimizer for Adam {
    fn slots(&self) -> Vec<&'static str> {
        vec!["m", "v"]
    }

    fn hypers(&self) -> Vec<&'static str> {
        vec!["learning_rate", "bias_correction1", "bias_correction2"]
    }

    fn hyper_values(&self, step: u64, learning_rate: f64) -> Vec<f64> {
        let t = step as f64;
        vec![learning_rate, 1.0 - self.beta1.powf(t), 1.0 - self.beta2.powf(t)]
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let rule = adam_update::AdamUpdate {
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled,
        };
        let mut new = adam_update::adam_update(weight, &slots[0], &slots[1], gradient, [&hypers[0], &hypers[1], &hypers[2]], rule);
        Updated { weight: new.remove(0), slots: new }
    }
}
