//! `tan(x) = tan x`, elementwise over floats.
//!
//! x is in radians. NaN and ±∞ give NaN; ±0 is kept. No float is a pole. Arguments of any size are reduced exactly.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The tangent of radians. NaN for ±∞.
    #[track_caller]
    pub fn tan(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Tan), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = tan x",
    parse: |_| Ok(Op::Unary(Unary::Tan)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::tan, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |_, y| 1.0 + y * y)),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Tan"],
    samples: || samples::unary(values::tensor([3, 5], -1.25, 1.25, 1), Tensor::tan),
}
.define("tan");
