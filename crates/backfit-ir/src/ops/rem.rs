//! `rem(a, b)`: what truncating division leaves, a − b·trunc(a/b), elementwise over numbers.
//!
//! It has the sign of a, as C's `fmod` and JAX's `lax.rem`; NumPy's `mod` and Python's `%` have the sign of b:
//! rem(−1, 3) = −1 where NumPy gives 2. Floats are exact: x % ±∞ = x, ±0 % b = ±0; NaN where a is ±∞, b is ±0 or
//! either is NaN. Integers never trap: x % 0 = x, and the smallest number % −1 = 0.
//!
//! Derivative: da = g, db = −g·trunc(a/b), as if no jump were near.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_binary, infix, samples};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::op::{Binary, Op};

infix!(Rem, rem, Rem);

fn remainder(dtype: DType, a: i64, b: i64) -> i64 {
    match b {
        0 => a,
        _ if dtype.class() == Class::Unsigned => (a as u64 % b as u64) as i64,
        _ => a.wrapping_rem(b),
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a − b·trunc(a/b)",
    parse: |_| Ok(Op::Binary(Binary::Rem)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), libm::fmod, |a, b| remainder(ty[0].dtype, a, b))],
    derivative: Derivative::Rule(|vjp| {
        let (a, b, y, g) = (&vjp.operands[0], &vjp.operands[1], &vjp.results[0], vjp.cotangent());
        // (a − y) / b is whole but for rounding, where a/b may round across a whole number.
        vec![Some(g.clone()), vjp.when(1, || -(g * ((a - y) / b).round_even()))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let signs = [values::floats([2, 1], &[7.25, -7.25]), values::floats([4], &[2.0, -2.0, 3.5, -0.75])];
        let mut all = samples::binary((4.0, 8.0), (1.0, 3.0), |a, b| a % b);
        all.push(Sample::floats("all signs", signs.into(), |_, x| vec![&x[0] % &x[1]]));
        all.push(samples::binary_integers(|a, b| a % b));
        all
    },
}
.define("rem");
