//! `reciprocal(x) = 1 / x`, elementwise over floats.
//!
//! Correctly rounded. NaN gives NaN; ±0 gives ±∞, ±∞ gives ±0.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// 1 / x. reciprocal(±0) = ±∞.
    #[track_caller]
    pub fn reciprocal(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Reciprocal), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = 1 / x",
    parse: |_| Ok(Op::Unary(Unary::Reciprocal)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), |v| 1.0 / v, |v| v)],
    derivative: Derivative::Rule(|vjp| {
        let y = &vjp.results[0];
        vec![Some(-(vjp.cotangent() * y * y))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Reciprocal"],
    samples: || samples::unary(values::tensor([3, 5], 0.5, 4.0, 1), Tensor::reciprocal),
}
.define("reciprocal");
