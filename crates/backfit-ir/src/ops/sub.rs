//! `sub(a, b) = a − b`, elementwise over numbers. Floats as IEEE 754: ∞ − ∞ is NaN, x − x is +0; integers wrap.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, infix, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

infix!(Sub, sub, Sub);

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a − b",
    parse: |_| Ok(Op::Binary(Binary::Sub)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, b| a - b, i64::wrapping_sub)],
    derivative: Derivative::Rule(|vjp| {
        let g = vjp.cotangent();
        vec![Some(g.clone()), vjp.when(1, || -g)]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Sub"],
    samples: || {
        let mut all = samples::binary((-4.0, 4.0), (-4.0, 4.0), |a, b| a - b);
        all.push(samples::binary_integers(|a, b| a - b));
        all
    },
}
.define("sub");
