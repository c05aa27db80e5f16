//! `log1p(x) = ln(1 + x)`, elementwise over floats.
//!
//! Accurate near 0, where 1 + x rounds to 1. NaN and numbers below −1 give NaN; ±0 is kept; −1 gives −∞, +∞ gives +∞.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// ln(1 + x), accurate near 0.
    #[track_caller]
    pub fn log1p(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Log1p), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ln(1 + x)",
    parse: |_| Ok(Op::Unary(Unary::Log1p)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::log1p, |v| v)],
    derivative: Derivative::Rule(|vjp| vec![Some(vjp.cotangent() / (1.0 + &vjp.operands[0]))]),
    tolerance: Tolerance::Element(4.0),
    onnx: &[],
    samples: || samples::unary(values::tensor([3, 5], -0.75, 4.0, 1), Tensor::log1p),
}
.define("log1p");
