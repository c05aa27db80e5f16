//! `floor(x) = ⌊x⌋`, elementwise over floats.
//!
//! The greatest whole number that is not above x. NaN, ±0 and ±∞ are kept.
//! The derivative is zero: nothing flows.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// The greatest whole number that is not above x.
    #[track_caller]
    pub fn floor(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Floor), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = ⌊x⌋",
    parse: |_| Ok(Op::Unary(Unary::Floor)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::floor, |v| v)],
    derivative: Derivative::Zero,
    tolerance: Tolerance::Exact,
    onnx: &["Floor"],
    samples: || samples::steps(Tensor::floor),
}
.define("floor");
