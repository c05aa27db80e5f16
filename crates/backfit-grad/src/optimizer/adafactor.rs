//! Adafactor.

use super::{Optimizer, Updated};
use backfit_ir::ops::adafactor_update::{AdafactorUpdate, adafactor_update, state_shapes};
use backfit_ir::{DType, Tensor, Type};
use std::sync::Arc;

/// Adafactor (Shazeer & Stern 2018), as `torch.optim.Adafactor`: of a matrix `[R, C]` it keeps R + C numbers instead of
/// the R · C of Adam's second moment, and no first moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adafactor {
    learning_rate: f64,
    beta2_decay: f64,
    epsilon1: Option<f64>,
    epsilon2: f64,
    d: f64,
    weight_decay: f64,
}

impl Adafactor {
    /// At most min(this, 1/√t) at step t, relative to the size of a weight. With ε₁ of the dtype, ε₂ = 1e-3, d = 1.
    pub fn new(learning_rate: f64) -> Self {
        Adafactor { learning_rate, beta2_decay: -0.8, epsilon1: None, epsilon2: 1e-3, d: 1.0, weight_decay: 0.0 }
    }

    /// The newest squared gradient has the share t^this in the mean at step t; a negative number.
    pub fn beta2_decay(self, beta2_decay: f64) -> Self {
        Adafactor { beta2_decay, ..self }
    }

    /// ε₁, whose square bounds the mean square from below, and ε₂, the least size of a weight that counts.
    pub fn epsilons(self, epsilon1: f64, epsilon2: f64) -> Self {
        Adafactor { epsilon1: Some(epsilon1), epsilon2, ..self }
    }

    /// The largest root mean square of a step before the rate; at least 1.
    pub fn clip(self, d: f64) -> Self {
        Adafactor { d, ..self }
    }

    /// Shrinks weights by lr·λ at every step.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Adafactor { weight_decay, ..self }
    }

    fn rule(&self, dtype: DType) -> AdafactorUpdate {
        let own = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let Adafactor { epsilon2, d, weight_decay, .. } = *self;
        AdafactorUpdate { epsilon1: self.epsilon1.unwrap_or(own), epsilon2, d, weight_decay }
    }
}

impl Optimizer for Adafactor {
    fn slots(&self) -> Vec<&'static str> {
        vec!["row", "column", "v"]
    }

    fn slot_type(&self, slot: &str, weight: &Type) -> Option<Type> {
        let shapes = state_shapes(&weight.shape);
        let place = match (slot, shapes.len()) {
            ("row", 2) | ("v", 1) => 0,
            ("column", 2) => 1,
            _ => return None,
        };
        Some(weight.with_shape(shapes[place].clone()))
    }

    fn hypers(&self) -> Vec<&'static str> {
        vec!["learning_rate", "inverse_root", "share"]
    }

    fn hyper_values(&self, step: u64, learning_rate: f64, values: &mut [f64]) {
        let step = step as f64;
        for (value, new) in values.iter_mut().zip([learning_rate, 1.0 / step.sqrt(), step.powf(self.beta2_decay)]) {
            *value = new;
        }
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let scalars = [&hypers[0], &hypers[1], &hypers[2]];
        Updated::of(adafactor_update(weight, slots, gradient, scalars, self.rule(weight.dtype())))
    }

    fn with_decay(&self, factor: f64) -> Option<Arc<dyn Optimizer>> {
        Some(Arc::new(self.weight_decay(self.weight_decay * factor)))
    }
}
