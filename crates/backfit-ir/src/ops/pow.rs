//! `pow(a, b) = aᵇ`, elementwise over numbers.
//!
//! Floats as IEEE 754: pow(x, ±0) = 1 and pow(1, x) = 1 even for NaN, pow(−1, ±∞) = 1; NaN where a is negative and
//! finite and b is finite and not whole; pow(±0, b) is ±0 or +0 for positive b, ±∞ or +∞ for negative b, with the sign
//! where b is odd. Integers multiply with wrapping; a negative exponent gives 0, but for the bases 1 and −1.
//!
//! Derivative: da = g·b·aᵇ⁻¹, which is 0 wherever b is 0; db = g·aᵇ·ln a, taken as 0 where a ≤ 0.

use super::definition::{Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::op::{Binary, Op};

impl Tensor {
    /// This tensor to the power of another, after broadcasting.
    #[track_caller]
    pub fn pow(&self, exponent: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Pow), exponent)
    }
}

/// The unwrapped power of integers, by squaring.
fn power(dtype: DType, base: i64, exponent: i64) -> i64 {
    if dtype.class() != Class::Unsigned && exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i64, base, exponent as u64);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (a, b, y, g) = (&vjp.operands[0], &vjp.operands[1], &vjp.results[0], vjp.cotangent());
    let base = || {
        // Where b is 0, a⁻¹ is infinite or NaN if a is; any finite power will do there.
        let harmless = b.eq(&b.number(0.0)).and(&a.abs().gt(&a.number(0.0)).not());
        g * b * a.pow(&harmless.select(&b.number(0.0), &(b - 1.0)))
    };
    let exponent = || {
        let none = a.le(&a.number(0.0));
        let log = none.select(&a.number(1.0), a).log();
        g * none.select(&a.number(0.0), y) * log
    };
    vec![vjp.when(0, base), vjp.when(1, exponent)]
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = aᵇ",
    parse: |_| Ok(Op::Binary(Binary::Pow)),
    infer: |_, types| infer_binary(types, Takes::Numbers),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), libm::pow, |a, b| power(ty[0].dtype, a, b))],
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Element(16.0),
    onnx: &["Pow"],
    samples: || {
        let mut all = samples::binary((0.25, 4.0), (-3.0, 3.0), Tensor::pow);
        let whole = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0];
        let signs = vec![values::floats([4, 1], &[-2.5, -1.0, -0.5, 1.5])];
        all.push(Sample::floats("negative bases, whole exponents", signs, move |g, x| {
            let exponents = crate::Literal::from_f64(x[0].ty().with_shape([7]), &whole);
            vec![x[0].pow(&g.constant(exponents))]
        }));
        let zeros = vec![values::floats([2, 1], &[0.0, -0.0]), values::floats([5], &[0.0, 0.5, 1.0, 2.0, -1.0])];
        all.push(Sample::floats("powers of zero", zeros, |_, x| vec![x[0].pow(&x[1])]).not_smooth());
        all.push(samples::binary_integers(Tensor::pow));
        all
    },
}
.define("pow");
