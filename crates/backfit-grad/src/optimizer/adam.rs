//! Adam and AdamW.

use super::{Optimizer, Updated};
use crate::host::HostUpdate;
use backfit_ir::Tensor;
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use std::sync::Arc;

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
