//! `exp(x) = eˣ`, elementwise over floats.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary};
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
    samples: || {
        vec![
            Sample::floats("ordinary", vec![values::tensor([3, 5], -4.0, 4.0, 1)], |_, x| vec![x[0].exp()]),
            Sample::floats("danger values", vec![values::danger()], |_, x| vec![x[0].exp()]).not_smooth(),
        ]
    },
}
.define("exp");
