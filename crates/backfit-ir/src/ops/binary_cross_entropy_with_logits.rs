//! `binary_cross_entropy_with_logits(x, t) = mean softplus(x) − x t`, for targets between 0 and 1.
//!
//! This is −t log σ(x) − (1 − t) log(1 − σ(x)) in a form that never overflows; its derivative is σ(x) − t.
//! PyTorch: the function of this name. Weights and reductions as in [`super::reduction`].
//! Predictions are of a float dtype, targets of their shape; half precision is computed in f32, and the loss is f32.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Tolerance};
use super::reduction::{LossOptions, check_elementwise, elementwise, elementwise_samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The mean cross-entropy of independent yes-or-no predictions, given as logits, over all elements.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(&self, target: &Tensor) -> Tensor {
        self.binary_cross_entropy_with_logits_with(target, LossOptions::default())
    }

    /// [`binary_cross_entropy_with_logits`](Tensor::binary_cross_entropy_with_logits) with weights and another reduction.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits_with(&self, target: &Tensor, options: LossOptions) -> Tensor {
        self.loss(&DEF, target, options, Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "binary_cross_entropy_with_logits",
    formula: "y = mean softplus(x) − x t",
    kind: rules(check_elementwise, |b| elementwise(b, |x, t| x.softplus() - x * t)),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || elementwise_samples(0.0, 1.0, Tensor::binary_cross_entropy_with_logits_with),
};
