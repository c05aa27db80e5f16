//! `mul(a, b) = a · b`, elementwise over numbers; integers wrap.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_binary};
use crate::builder::Tensor;
use crate::op::{Binary, Op};
use std::ops::Mul;

impl Mul for &Tensor {
    type Output = Tensor;

    /// The product, after broadcasting.
    #[track_caller]
    fn mul(self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Mul), other)
    }
}

impl Mul<f64> for &Tensor {
    type Output = Tensor;

    /// The product with a number of this tensor's dtype.
    #[track_caller]
    fn mul(self, number: f64) -> Tensor {
        self * &self.graph().scalar(self.dtype(), number)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a · b",
    parse: |_| Ok(Op::Binary(Binary::Mul)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, b| a * b, i64::wrapping_mul)],
    derivative: Derivative::Rule(|vjp| {
        let g = vjp.cotangent();
        vec![vjp.when(0, || g * &vjp.operands[1]), vjp.when(1, || g * &vjp.operands[0])]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Mul"],
    samples: || {
        let mul = |_: &_, x: &[Tensor]| vec![&x[0] * &x[1]];
        vec![
            Sample::floats("broadcast", vec![values::tensor([3, 1, 5], -4.0, 4.0, 1), values::tensor([2, 1], -4.0, 4.0, 2)], mul),
            Sample::floats("danger values", vec![values::danger(), values::danger()], mul).not_smooth(),
            Sample::integers("overflow wraps", vec![values::integers([3], &[100, 200, i64::MAX]), values::integers([3], &[2, 2, 2])], mul),
        ]
    },
}
.define("mul");
