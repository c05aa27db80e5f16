//! `div(a, b) = a / b`, elementwise over numbers.
//!
//! Floats as IEEE 754: x/±0 is ±∞, 0/0 and ∞/∞ are NaN. Integers truncate toward zero and never trap:
//! x/0 has all bits set (−1, the largest unsigned number), and the smallest number divided by −1 is itself.

use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, infix, samples};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::op::{Binary, Op};

infix!(Div, div, Div);

fn quotient(dtype: DType, a: i64, b: i64) -> i64 {
    match b {
        0 => -1,
        _ if dtype.class() == Class::Unsigned => (a as u64 / b as u64) as i64,
        _ => a.wrapping_div(b),
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a / b",
    parse: |_| Ok(Op::Binary(Binary::Div)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), |a, b| a / b, |a, b| quotient(ty[0].dtype, a, b))],
    derivative: Derivative::Rule(|vjp| {
        let share = vjp.cotangent() / &vjp.operands[1];
        vec![Some(share.clone()), vjp.when(1, || -(share * &vjp.results[0]))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Div"],
    samples: || {
        let mut all = samples::binary((-4.0, 4.0), (0.5, 4.0), |a, b| a / b);
        all.push(samples::binary_integers(|a, b| a / b));
        all
    },
}
.define("div");
