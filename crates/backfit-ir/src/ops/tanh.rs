//! `tanh(x) = tanh x`, elementwise over floats.
//!
//! NaN gives NaN; ±0 is kept; ±∞ gives ±1. Never beyond ±1.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The hyperbolic tangent. tanh(±∞) = ±1.
    #[track_caller]
    pub fn tanh(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Tanh), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = tanh x",
    parse: |_| Ok(Op::Unary(Unary::Tanh)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::tanh, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |_, y| 1.0 - y * y)),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Tanh"],
    samples: || samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::tanh),
}
.define("tanh");
