//! `sqrt(x) = √x`, elementwise over floats.
//!
//! Correctly rounded. NaN and numbers below 0 give NaN; ±0 is kept, +∞ gives +∞. The slope at ±0 is infinite.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The square root. sqrt(−0) = −0; NaN below 0.
    #[track_caller]
    pub fn sqrt(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Sqrt), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = √x",
    parse: |_| Ok(Op::Unary(Unary::Sqrt)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::sqrt, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |_, y| 0.5 / y)),
    tolerance: Tolerance::Exact,
    onnx: &["Sqrt"],
    samples: || samples::unary(values::tensor([3, 5], 0.25, 4.0, 1), Tensor::sqrt),
}
.define("sqrt");
