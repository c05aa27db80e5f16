//! Optimizers: which state they keep per weight, which scalars a step is fed, and how they update.

use crate::host::HostUpdate;
use backfit_ir::Tensor;
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use backfit_ir::ops::rmsprop_update::{RmspropUpdate, rmsprop_update};
use backfit_ir::ops::sgd_update::{SgdUpdate, sgd_update};
use std::fmt::Debug;
use std::sync::Arc;

/// A weight and its optimizer state after a step.
pub struct Updated {
    /// The new weight.
    pub weight: Tensor,
    /// The new state, in the order of [`Optimizer::slots`].
    pub slots: Vec<Tensor>,
}

impl Updated {
    /// From the results of an update: the weight, then the state.
    fn of(mut results: Vec<Tensor>) -> Self {
        Updated { weight: results.remove(0), slots: results }
    }
}

/// An update rule. Users may write their own; the update is built of graph operators like everything else.
pub trait Optimizer: Debug + Send + Sync {
    /// Names of the tensors kept per weight, each of the weight's type, starting at zero.
    fn slots(&self) -> Vec<&'static str>;

    /// Names of the scalars that every step is fed; the first is the learning rate.
    fn hypers(&self) -> Vec<&'static str> {
        vec!["learning_rate"]
    }

    /// Writes their values at a step (counted from 1) with this learning rate, in the order of [`Optimizer::hypers`].
    fn hyper_values(&self, _step: u64, learning_rate: f64, values: &mut [f64]) {
        values.fill(learning_rate);
    }

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// The new weight and state. `hypers` have the weight's dtype.
    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated;

    /// The same rule with its weight decay multiplied by this; `None` where it has none to multiply.
    fn with_decay(&self, _factor: f64) -> Option<Arc<dyn Optimizer>> {
        None
    }

    /// The update in plain f32, bit-equal to [`Optimizer::update`]; `false` where there is no such form.
    fn update_on_host(&self, _host: &mut HostUpdate) -> bool {
        false
    }
}

/// Stochastic gradient descent, as `torch.optim.SGD`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    learning_rate: f64,
    rule: SgdUpdate,
}

impl Sgd {
    /// Plain gradient descent.
    pub fn new(learning_rate: f64) -> Self {
        Sgd { learning_rate, rule: SgdUpdate::default() }
    }

    /// With momentum μ: v ← μv + g; w ← w − lr·v.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.rule.momentum = momentum;
        self
    }

    /// With Nesterov's look-ahead: w ← w − lr·(g + μv).
    pub fn nesterov(mut self) -> Self {
        self.rule.nesterov = true;
        self
    }

    /// Adds λw to the gradient.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
        self
    }
}

impl Optimizer for Sgd {
    fn slots(&self) -> Vec<&'static str> {
        if self.rule.momentum == 0.0 && !self.rule.nesterov { vec![] } else { vec!["velocity"] }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        Updated::of(sgd_update(weight, gradient, slots.first(), &hypers[0], self.rule))
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        let mut new = *self;
        new.rule.weight_decay *= factor;
        Some(Arc::new(new))
    }

    fn update_on_host(&self, host: &mut HostUpdate) -> bool {
        host.sgd(&self.rule);
        true
    }
}

/// Adam (Kingma & Ba 2015), as `torch.optim.Adam`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    learning_rate: f64,
    rule: AdamUpdate,
}

impl Adam {
    /// With β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
    pub fn new(learning_rate: f64) -> Self {
        Adam { learning_rate, rule: AdamUpdate::default() }
    }

    /// Other decay rates of the moments.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        (self.rule.beta1, self.rule.beta2) = (beta1, beta2);
        self
    }

    /// Another ε.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.rule.epsilon = epsilon;
        self
    }

    /// Adds λw to the gradient.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
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

    fn hyper_values(&self, step: u64, learning_rate: f64, values: &mut [f64]) {
        let corrections = [self.rule.beta1, self.rule.beta2].map(|beta| 1.0 - beta.powf(step as f64));
        for (value, new) in values.iter_mut().zip([learning_rate, corrections[0], corrections[1]]) {
            *value = new;
        }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let scalars = [&hypers[0], &hypers[1], &hypers[2]];
        Updated::of(adam_update(weight, &slots[0], &slots[1], gradient, scalars, self.rule))
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        let mut new = *self;
        new.rule.weight_decay *= factor;
        Some(Arc::new(new))
    }

    fn update_on_host(&self, host: &mut HostUpdate) -> bool {
        host.adam(&self.rule);
        true
    }
}

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019), as `torch.optim.AdamW`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW(Adam);

impl AdamW {
    /// As [`Adam::new`], with weight decay 0.01.
    pub fn new(learning_rate: f64) -> Self {
        let mut adam = Adam::new(learning_rate).weight_decay(0.01);
        adam.rule.decoupled = true;
        AdamW(adam)
    }

    /// Other decay rates of the moments.
    pub fn betas(self, beta1: f64, beta2: f64) -> Self {
        AdamW(self.0.betas(beta1, beta2))
    }

    /// Another ε.
    pub fn epsilon(self, epsilon: f64) -> Self {
        AdamW(self.0.epsilon(epsilon))
    }

    /// Shrinks weights by lr·λ at every step.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        AdamW(self.0.weight_decay(weight_decay))
    }
}

impl Optimizer for AdamW {
    fn slots(&self) -> Vec<&'static str> {
        self.0.slots()
    }

    fn hypers(&self) -> Vec<&'static str> {
        self.0.hypers()
    }

    fn hyper_values(&self, step: u64, learning_rate: f64, values: &mut [f64]) {
        self.0.hyper_values(step, learning_rate, values);
    }

    fn learning_rate(&self) -> f64 {
        self.0.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        self.0.update(weight, slots, gradient, hypers)
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        let mut new = *self;
        new.0.rule.weight_decay *= factor;
        Some(Arc::new(new))
    }

    fn update_on_host(&self, host: &mut HostUpdate) -> bool {
        host.adam(&self.0.rule);
        true
    }
}

/// RMSprop (Hinton 2012), as `torch.optim.RMSprop`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    learning_rate: f64,
    rule: RmspropUpdate,
}

impl RmsProp {
    /// With α = 0.99, ε = 1e-8.
    pub fn new(learning_rate: f64) -> Self {
        RmsProp { learning_rate, rule: RmspropUpdate::default() }
    }

    /// Another decay rate of the mean square.
    pub fn alpha(mut self, alpha: f64) -> Self {
        self.rule.alpha = alpha;
        self
    }

    /// Another ε.
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.rule.epsilon = epsilon;
        self
    }

    /// Divides by the deviation instead of the root mean square.
    pub fn centered(mut self) -> Self {
        self.rule.centered = true;
        self
    }

    /// With momentum.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.rule.momentum = momentum;
        self
    }

    /// Adds λw to the gradient.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
        self
    }
}

impl Optimizer for RmsProp {
    fn slots(&self) -> Vec<&'static str> {
        let mut slots = vec!["mean_square"];
        slots.extend(self.rule.centered.then_some("mean"));
        slots.extend((self.rule.momentum != 0.0).then_some("velocity"));
        slots
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let mut rest = slots[1..].iter();
        let mean = if self.rule.centered { rest.next() } else { None };
        Updated::of(rmsprop_update(weight, &slots[0], mean, rest.next(), gradient, &hypers[0], self.rule))
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        let mut new = *self;
        new.rule.weight_decay *= factor;
        Some(Arc::new(new))
    }

    fn update_on_host(&self, host: &mut HostUpdate) -> bool {
        host.rmsprop(&self.rule);
        true
    }
}
