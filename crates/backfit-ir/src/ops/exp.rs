//! `exp(x) = eˣ`, elementwise over floats.
//!
//! NaN gives NaN; −∞ gives 0, +∞ gives +∞. Overflows to +∞ and underflows to 0.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// eˣ. exp(−∞) = 0, exp(+∞) = +∞.
    #[track_caller]
    pub fn exp(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Exp), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = eˣ",
    parse: |_| Ok(Op::Unary(Unary::Exp)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::exp, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |_, y| y.clone())),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Exp"],
    samples: || samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::exp),
}
.define("exp");
