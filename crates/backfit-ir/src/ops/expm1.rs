//! `expm1(x) = eˣ − 1`, elementwise over floats.
//!
//! Accurate near 0, where eˣ rounds to 1. NaN gives NaN; ±0 is kept; −∞ gives −1, +∞ gives +∞. Overflows to +∞.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// eˣ − 1, accurate near 0.
    #[track_caller]
    pub fn expm1(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Expm1), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = eˣ − 1",
    parse: |_| Ok(Op::Unary(Unary::Expm1)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::expm1, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| x.exp())),
    tolerance: Tolerance::Element(4.0),
    onnx: &[],
    samples: || samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::expm1),
}
.define("expm1");
