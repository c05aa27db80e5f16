//! `not(x)`: every bit flipped, elementwise over integers; on bool the opposite truth value.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::op::{Op, Unary};

impl Tensor {
    /// Every bit flipped; on bool the opposite truth value.
    #[track_caller]
    pub fn not(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Not), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ¬x",
    parse: |_| Ok(Op::Unary(Unary::Not)),
    infer: |_, types| infer_unary(types, Takes::Bits),
    eval: |_, x, ty| {
        let flip = if ty[0].dtype == DType::Bool { 1 } else { -1 };
        vec![x[0].map(ty[0].clone(), |v| v, |v| v ^ flip)]
    },
    derivative: Derivative::NotDifferentiable("it takes no floats"),
    tolerance: Tolerance::Exact,
    onnx: &["Not", "BitwiseNot"],
    samples: || vec![samples::unary_integers(Tensor::not), samples::unary_bools(Tensor::not)],
}
.define("not");
