//! `sin(x) = sin x`, elementwise over floats.
//!
//! x is in radians. NaN and ±∞ give NaN; ±0 is kept. Arguments of any size are reduced exactly.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The sine of radians. NaN for ±∞.
    #[track_caller]
    pub fn sin(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Sin), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = sin x",
    parse: |_| Ok(Op::Unary(Unary::Sin)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::sin, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| x.cos())),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Sin"],
    samples: || samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::sin),
}
.define("sin");
