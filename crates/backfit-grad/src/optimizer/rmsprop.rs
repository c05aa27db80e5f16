//! RMSprop.

use super::{Optimizer, Updated};
use crate::host::HostUpdate;
use backfit_ir::Tensor;
use backfit_ir::ops::rmsprop_update::{RmspropUpdate, rmsprop_update};
use std::sync::Arc;

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
