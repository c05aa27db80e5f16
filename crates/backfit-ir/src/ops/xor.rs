//! `xor(a, b) = a ⊕ b`: bit by bit, elementwise over integers and bool.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

impl Tensor {
    /// Bits set in exactly one of the two, after broadcasting; on bool the logical operation.
    #[track_caller]
    pub fn xor(&self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Xor), other)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a ⊕ b",
    parse: |_| Ok(Op::Binary(Binary::Xor)),
    infer: |_, types| infer_binary(types, Takes::Bits),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, _| a, |a, b| a ^ b)],
    derivative: Derivative::NotDifferentiable("it takes no floats"),
    tolerance: Tolerance::Exact,
    onnx: &["Xor", "BitwiseXor"],
    samples: || vec![samples::binary_integers(Tensor::xor), samples::binary_bools(Tensor::xor)],
}
.define("xor");
