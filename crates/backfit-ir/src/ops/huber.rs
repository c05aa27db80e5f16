//! `huber(x, t)`: the mean of d²/2 where d = |x − t| ≤ delta, else delta · (d − delta/2).
//!
//! Huber 1964. PyTorch: `huber_loss`. Weights and reductions as in [`super::reduction`].
//! Predictions are of a float dtype, targets of their shape; half precision is computed in f32, and the loss is f32.

use super::composite::{accepted, number, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use super::reduction::{LossOptions, check_elementwise, elementwise, elementwise_samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The mean of d²/2 where d = |x − t| ≤ `delta`, else `delta` · (d − `delta`/2), over all elements.
    #[track_caller]
    pub fn huber(&self, target: &Tensor, delta: f64) -> Tensor {
        self.huber_with(target, delta, LossOptions::default())
    }

    /// [`huber`](Tensor::huber) with weights and another reduction.
    #[track_caller]
    pub fn huber_with(&self, target: &Tensor, delta: f64, options: LossOptions) -> Tensor {
        self.loss(&DEF, target, options, Attributes::new().with("delta", delta))
    }
}

/// With c = min(d, delta) both branches are c (d − c/2).
fn element(x: &Tensor, t: &Tensor, delta: f64) -> Tensor {
    let d = (x - t).abs();
    let c = d.minimum(&d.like(delta));
    &c * (&d - &c * 0.5)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "huber",
    formula: "y = mean d²/2 where d = |x − t| ≤ delta, else delta · (d − delta/2)",
    kind: rules(
        |types, a| {
            number(a, "delta", "finite and positive", |v| v.is_finite() && v > 0.0)?;
            check_elementwise(types, a)
        },
        |b| elementwise(b, |x, t| element(x, t, accepted(b.attributes.float("delta")))),
    ),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || elementwise_samples(-3.0, 3.0, |x, t, options| x.huber_with(t, 1.0, options)),
};
