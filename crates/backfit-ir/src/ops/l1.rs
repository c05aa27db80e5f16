//! `l1(x, t)`: the mean absolute error, mean |x − t|.
//!
//! PyTorch: `l1_loss`. The derivative where x = t is 0. Weights and reductions as in [`super::reduction`].
//! Predictions are of a float dtype, targets of their shape; half precision is computed in f32, and the loss is f32.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Tolerance};
use super::reduction::{LossOptions, check_elementwise, elementwise, elementwise_samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The mean of |x − t| over all elements.
    #[track_caller]
    pub fn l1(&self, target: &Tensor) -> Tensor {
        self.l1_with(target, LossOptions::default())
    }

    /// [`l1`](Tensor::l1) with weights and another reduction.
    #[track_caller]
    pub fn l1_with(&self, target: &Tensor, options: LossOptions) -> Tensor {
        self.loss(&DEF, target, options, Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "l1",
    formula: "y = mean |x − t|",
    kind: rules(check_elementwise, |b| elementwise(b, |x, t| (x - t).abs())),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || elementwise_samples(-3.0, 3.0, Tensor::l1_with),
};
