//! Lion.

use super::{Optimizer, Updated};
use crate::host::HostUpdate;
use backfit_ir::Tensor;
use backfit_ir::ops::lion_update::{LionUpdate, lion_update};
use std::sync::Arc;

/// Lion (Chen et al. 2023), as `optax.lion`: steps of one size in the direction of a mean gradient's signs. Its learning
/// rate is three to ten times smaller than Adam's, and its weight decay as many times larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lion {
    learning_rate: f64,
    rule: LionUpdate,
}

impl Lion {
    /// With β₁ = 0.9, β₂ = 0.99.
    pub fn new(learning_rate: f64) -> Self {
        Lion { learning_rate, rule: LionUpdate::default() }
    }

    /// Other shares of the mean gradient: in the step's direction, and from step to step.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        (self.rule.beta1, self.rule.beta2) = (beta1, beta2);
        self
    }

    /// Shrinks weights by lr·λ at every step.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
        self
    }
}

impl Optimizer for Lion {
    fn slots(&self) -> Vec<&'static str> {
        vec!["m"]
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        Updated::of(lion_update(weight, &slots[0], gradient, &hypers[0], self.rule))
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        let mut new = *self;
        new.rule.weight_decay *= factor;
        Some(Arc::new(new))
    }

    fn update_on_host(&self, host: &mut HostUpdate) -> bool {
        host.lion(&self.rule);
        true
    }
}
