//! `sign(x) = the sign of x`, elementwise over numbers.
//!
//! −1, 0 or 1. Floats: NaN gives NaN, ±0 is kept. Unsigned integers: 0 or 1.
//! The derivative is zero: nothing flows.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, order, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// −1, 0 or 1; NaN, −0 and +0 give themselves.
    #[track_caller]
    pub fn sign(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Sign), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = the sign of x",
    parse: |_| Ok(Op::Unary(Unary::Sign)),
    infer: |_, types| infer_unary(types, Takes::Numbers),
    eval: |_, x, ty| {
        vec![x[0].map(
            ty[0].clone(),
            |v| if v == 0.0 || v.is_nan() { v } else { 1f64.copysign(v) },
            |v| order(ty[0].dtype, v, 0) as i64,
        )]
    },
    derivative: Derivative::Zero,
    tolerance: Tolerance::Exact,
    onnx: &["Sign"],
    samples: || {
        let mut all =
            samples::unary(values::floats([2, 4], &[-4.0, -1.25, -0.5, -6.2e-5, 6.2e-5, 0.5, 1.25, 4.0]), Tensor::sign);
        all.push(samples::unary_integers(Tensor::sign));
        all
    },
}
.define("sign");
