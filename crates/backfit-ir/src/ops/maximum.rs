//! `maximum(a, b)`: the greater of two numbers, elementwise.
//!
//! Floats as IEEE 754-2019 maximum: NaN where either is NaN, max(−0, +0) = +0. Unsigned integers are compared as such.
//! The cotangent goes to the greater; where both are equal, half to each; where one is NaN, nowhere.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, order, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

impl Tensor {
    /// The greater of both, after broadcasting; NaN where either is NaN, max(−0, +0) = +0.
    #[track_caller]
    pub fn maximum(&self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Maximum), other)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = max(a, b)",
    parse: |_| Ok(Op::Binary(Binary::Maximum)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| {
        let integer = |a, b| if order(ty[0].dtype, a, b).is_gt() { a } else { b };
        vec![x[0].zip(x[1], ty[0].clone(), libm::fmaximum, integer)]
    },
    derivative: Derivative::Rule(|vjp| {
        let (a, b, g) = (&vjp.operands[0], &vjp.operands[1], vjp.cotangent());
        let tie = a.eq(b);
        vec![vjp.when(0, || share(g, &a.gt(b), &tie)), vjp.when(1, || share(g, &b.gt(a), &tie))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Max"],
    samples: || {
        let mut all = samples::binary((-4.0, 4.0), (-4.0, 4.0), Tensor::maximum);
        all.push(samples::binary_integers(Tensor::maximum));
        all
    },
}
.define("maximum");

/// The cotangent where an operand wins, half of it where both are equal, else zero.
pub fn share(cotangent: &Tensor, wins: &Tensor, tie: &Tensor) -> Tensor {
    wins.select(cotangent, &tie.select(&(cotangent * 0.5), &cotangent.like(0.0)))
}
