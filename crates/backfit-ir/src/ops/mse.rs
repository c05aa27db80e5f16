//! `mse(x, t)`: the mean squared error, mean (x − t)².
//!
//! PyTorch: `mse_loss`. Weights and reductions as in [`super::reduction`].
//! Predictions are of a float dtype, targets of their shape; half precision is computed in f32, and the loss is f32.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Tolerance};
use super::reduction::{LossOptions, check_elementwise, elementwise, elementwise_samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The mean of (x − t)² over all elements.
    #[track_caller]
    pub fn mse(&self, target: &Tensor) -> Tensor {
        self.mse_with(target, LossOptions::default())
    }

    /// [`mse`](Tensor::mse) with weights and another reduction.
    #[track_caller]
    pub fn mse_with(&self, target: &Tensor, options: LossOptions) -> Tensor {
        self.loss(&DEF, target, options, Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "mse",
    formula: "y = mean (x − t)²",
    kind: rules(check_elementwise, |b| elementwise(b, |x, t| (x - t).square())),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || elementwise_samples(-3.0, 3.0, Tensor::mse_with),
};
