//! `ceil(x) = ⌈x⌉`, elementwise over floats.
//!
//! The least whole number that is not below x. NaN, ±0 and ±∞ are kept; above −1 and below 0 it is −0.
//! The derivative is zero: nothing flows.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The least whole number that is not below x.
    #[track_caller]
    pub fn ceil(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Ceil), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ⌈x⌉",
    parse: |_| Ok(Op::Unary(Unary::Ceil)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::ceil, |v| v)],
    derivative: Derivative::Zero,
    tolerance: Tolerance::Exact,
    onnx: &["Ceil"],
    samples: || samples::steps(Tensor::ceil),
}
.define("ceil");
