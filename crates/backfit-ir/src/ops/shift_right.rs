//! `shift_right(a, b) = ⌊a / 2ᵇ⌋`, elementwise over integers: arithmetic (copies of the sign move in) on signed
//! dtypes, logical (zeros move in) on unsigned ones.
//!
//! Shifting by the width of the dtype or more, or by a negative number, leaves only what moves in:
//! 0, or −1 where a is negative.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::op::{Binary, Op};

impl Tensor {
    /// Bits moved down by `places`, after broadcasting; nothing of an element is left where that is negative or at
    /// least the width.
    #[track_caller]
    pub fn shift_right(&self, places: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::ShiftRight), places)
    }
}

/// Values are extended to 64 bits as their dtype says; a negative number of places is a huge unsigned one.
fn shift(dtype: DType, a: i64, places: i64) -> i64 {
    let inside = (places as u64) < dtype.bits() as u64;
    match dtype.class() {
        Class::Signed => a >> if inside { places } else { 63 },
        _ if inside => (a as u64 >> places) as i64,
        _ => 0,
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ⌊a / 2ᵇ⌋",
    parse: |_| Ok(Op::Binary(Binary::ShiftRight)),
    infer: |_, types| infer_binary(types, Takes::Integers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, _| a, |a, b| shift(ty[0].dtype, a, b))],
    derivative: Derivative::NotDifferentiable("it takes no floats"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || vec![samples::binary_integers(Tensor::shift_right)],
}
.define("shift_right");
