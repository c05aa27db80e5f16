//! `minimum(a, b)`: the lesser of two numbers, elementwise.
//!
//! Floats as IEEE 754-2019 minimum: NaN where either is NaN, min(−0, +0) = −0. Unsigned integers are compared as such.
//! The cotangent goes to the lesser; where both are equal, half to each; where one is NaN, nowhere.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, order, samples};
use super::maximum::share;
use crate::builder::Tensor;
use crate::op::{Binary, Op};

impl Tensor {
    /// The lesser of both, after broadcasting; NaN where either is NaN, min(−0, +0) = −0.
    #[track_caller]
    pub fn minimum(&self, other: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Minimum), other)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = min(a, b)",
    parse: |_| Ok(Op::Binary(Binary::Minimum)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| {
        let integer = |a, b| if order(ty[0].dtype, a, b).is_lt() { a } else { b };
        vec![x[0].zip(x[1], ty[0].clone(), libm::fminimum, integer)]
    },
    derivative: Derivative::Rule(|vjp| {
        let (a, b, g) = (&vjp.operands[0], &vjp.operands[1], vjp.cotangent());
        let tie = a.eq(b);
        vec![vjp.when(0, || share(g, &a.lt(b), &tie)), vjp.when(1, || share(g, &b.lt(a), &tie))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Min"],
    samples: || {
        let mut all = samples::binary((-4.0, 4.0), (-4.0, 4.0), Tensor::minimum);
        all.push(samples::binary_integers(Tensor::minimum));
        all
    },
}
.define("minimum");
