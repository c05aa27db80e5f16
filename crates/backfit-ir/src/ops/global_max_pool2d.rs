//! `global_max_pool2d(x)`: the largest element of every channel of images, `[N, C, H, W]` → `[N, C, 1, 1]`.
//!
//! ONNX: `GlobalMaxPool`. Where elements tie, they share the gradient.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::pooling::check_images;
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The largest element of every channel; both spatial axes stay with extent 1.
    #[track_caller]
    pub fn global_max_pool2d(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "global_max_pool2d",
    formula: "y = max x over H and W",
    kind: rules(
        |types, _| check_images(types),
        |b| {
            let x = &b.operands[0];
            vec![x.max(&[2, 3]).reshape([x.dim(0), x.dim(1), 1, 1])]
        },
    ),
    derivative: Derivative::Body,
    tolerance: Tolerance::Exact,
    onnx: &["GlobalMaxPool"],
    samples: || {
        let pool = |_: &_, x: &[Tensor]| vec![x[0].global_max_pool2d()];
        vec![
            Sample::floats("images", vec![values::tensor([2, 3, 4, 5], -4.0, 4.0, 1)], pool),
            Sample::floats("one position", vec![values::tensor([2, 3, 1, 1], -4.0, 4.0, 1)], pool),
        ]
    },
};
