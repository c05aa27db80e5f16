//! `cos(x) = cos x`, elementwise over floats.
//!
//! x is in radians. NaN and ±∞ give NaN. Arguments of any size are reduced exactly.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The cosine of radians. NaN for ±∞.
    #[track_caller]
    pub fn cos(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Cos), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = cos x",
    parse: |_| Ok(Op::Unary(Unary::Cos)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::cos, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| -x.sin())),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Cos"],
    samples: || samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::cos),
}
.define("cos");
