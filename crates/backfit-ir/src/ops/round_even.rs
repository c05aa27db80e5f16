//! `round_even(x) = the whole number nearest to x`, elementwise over floats.
//!
//! Halfway between two, the even one. NaN, ±0 and ±∞ are kept; the sign is kept where the result is 0.
//! The derivative is zero: nothing flows.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The nearest whole number; halfway between two, the even one.
    #[track_caller]
    pub fn round_even(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::RoundEven), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = the whole number nearest to x",
    parse: |_| Ok(Op::Unary(Unary::RoundEven)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::rint, |v| v)],
    derivative: Derivative::Zero,
    tolerance: Tolerance::Exact,
    onnx: &["Round"],
    samples: || samples::steps(Tensor::round_even),
}
.define("round_even");
