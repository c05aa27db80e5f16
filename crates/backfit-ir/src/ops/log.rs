//! `log(x) = ln x`, elementwise over floats.
//!
//! The natural logarithm. NaN and numbers below 0 give NaN; ±0 gives −∞, +∞ gives +∞.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The natural logarithm. log(±0) = −∞; NaN below 0.
    #[track_caller]
    pub fn log(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Log), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ln x",
    parse: |_| Ok(Op::Unary(Unary::Log)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::log, |v| v)],
    derivative: Derivative::Rule(|vjp| vec![Some(vjp.cotangent() / &vjp.operands[0])]),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Log"],
    samples: || samples::unary(values::tensor([3, 5], 0.25, 4.0, 1), Tensor::log),
}
.define("log");
