//! `or(a, b) = a ∨ b`: bit by bit, elementwise over integers and bool.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

impl Tensor {
    /// Bits set in either or both, after broadcasting; on bool the logical operation.
    #[track_caller]
    pub fn or(&self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Or), other)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a ∨ b",
    parse: |_| Ok(Op::Binary(Binary::Or)),
    infer: |_, types| infer_binary(types, Takes::Bits),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, _| a, |a, b| a | b)],
    derivative: Derivative::NotDifferentiable("it takes no floats"),
    tolerance: Tolerance::Exact,
    onnx: &["Or", "BitwiseOr"],
    samples: || vec![samples::binary_integers(Tensor::or), samples::binary_bools(Tensor::or)],
}
.define("or");
