//! Stochastic gradient descent.

use super::{Optimizer, Updated};
use crate::host::HostUpdate;
use backfit_ir::Tensor;
use backfit_ir::ops::sgd_update::{SgdUpdate, sgd_update};
use std::sync::Arc;

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
