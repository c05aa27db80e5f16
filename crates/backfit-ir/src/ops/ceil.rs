//! `ceil(x) = ⌈x⌉`, elementwise over floats.
//!
//! The least whole number that is not below x. NaN, ±0 and ±∞ are kept; above −1 and below 0 it is −0.
//! The derivative is zero: nothing flows.

use super::definition::{Derivative, OpDef, Tolerance, values};
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
    derivative: Derivative::Rule(|_| vec![None]),
    tolerance: Tolerance::Exact,
    onnx: &["Ceil"],
    samples: || {
        let mut all = samples::unary(
            values::floats([2, 5], &[-3.75, -2.5, -1.125, -0.625, -0.25, 0.125, 0.375, 1.625, 2.375, 100.75]),
            Tensor::ceil,
        );
        all.push(samples::kinks(
            &[-2.5, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.5, 3.5, 1e10, -1e30, 4503599627370495.5],
            Tensor::ceil,
        ));
        all
    },
}
.define("ceil");
