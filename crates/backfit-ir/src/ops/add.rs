//! `add(a, b) = a + b`, elementwise over numbers; integers wrap.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_binary};
use crate::builder::Tensor;
use crate::op::{Binary, Op};
use std::ops::Add;

impl Add for &Tensor {
    type Output = Tensor;

    /// The sum, after broadcasting.
    #[track_caller]
    fn add(self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Add), other)
    }
}

impl Add<f64> for &Tensor {
    type Output = Tensor;

    /// The sum with a number of this tensor's dtype.
    #[track_caller]
    fn add(self, number: f64) -> Tensor {
        self + &self.graph().scalar(self.dtype(), number)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a + b",
    parse: |_| Ok(Op::Binary(Binary::Add)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, b| a + b, i64::wrapping_add)],
    derivative: Derivative::Rule(|vjp| {
        let g = vjp.cotangent();
        vec![Some(g.clone()), Some(g.clone())]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Add"],
    samples: || {
        let add = |_: &_, x: &[Tensor]| vec![&x[0] + &x[1]];
        vec![
            Sample::floats("broadcast", vec![values::tensor([3, 1, 5], -4.0, 4.0, 1), values::tensor([2, 1], -4.0, 4.0, 2)], add),
            Sample::floats("danger values", vec![values::danger(), values::danger()], add).not_smooth(),
            Sample::integers("overflow wraps", vec![values::integers([3], &[127, 255, i64::MAX]), values::integers([3], &[1, 1, 1])], add),
        ]
    },
}
.define("add");
