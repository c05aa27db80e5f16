//! `mul(a, b) = a · b`, elementwise over numbers. Floats as IEEE 754: 0 · ∞ is NaN; integers wrap.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, infix, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

infix!(Mul, mul, Mul);

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
        let mut all = samples::binary((-4.0, 4.0), (-4.0, 4.0), |a, b| a * b);
        all.push(samples::binary_integers(|a, b| a * b));
        all
    },
}
.define("mul");
