//! `shift_left(a, b) = a · 2ᵇ`, elementwise over integers; bits that leave at the top are lost.
//!
//! Shifting by the width of the dtype or more gives 0, and so does shifting by a negative number.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::op::{Binary, Op};

impl Tensor {
    /// Bits moved up by `places`, after broadcasting; nothing of an element is left where that is negative or at
    /// least the width.
    #[track_caller]
    pub fn shift_left(&self, places: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::ShiftLeft), places)
    }
}

/// The unwrapped result; a negative number of places is a huge unsigned one.
fn shift(dtype: DType, a: i64, places: i64) -> i64 {
    if (places as u64) < dtype.bits() as u64 { a << places } else { 0 }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a · 2ᵇ",
    parse: |_| Ok(Op::Binary(Binary::ShiftLeft)),
    infer: |_, types| infer_binary(types, Takes::Integers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, _| a, |a, b| shift(ty[0].dtype, a, b))],
    derivative: Derivative::NotDifferentiable("it takes no floats"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || vec![samples::binary_integers(Tensor::shift_left)],
}
.define("shift_left");
