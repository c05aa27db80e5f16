//! `neg(x) = −x`, elementwise over numbers.
//!
//! Floats flip the sign, of zeros, infinities and NaN too. Integers wrap: the smallest number is its own negative,
//! and an unsigned x gives 2ⁿ − x.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};
use std::ops::Neg;

impl Neg for &Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Neg), &[self])
    }
}

impl Neg for Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        -&self
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = −x",
    parse: |_| Ok(Op::Unary(Unary::Neg)),
    infer: |_, types| infer_unary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), |v| -v, i64::wrapping_neg)],
    derivative: Derivative::Rule(|vjp| vec![Some(-vjp.cotangent())]),
    tolerance: Tolerance::Exact,
    onnx: &["Neg"],
    samples: || {
        let mut all = samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), |x| -x);
        all.push(samples::unary_integers(|x| -x));
        all
    },
}
.define("neg");
