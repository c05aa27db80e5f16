//! The cases that every elementwise operator should have.

use super::super::definition::{BOOLS, Sample, values};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::literal::Literal;

/// A call of a unary operator.
pub trait Unary: Fn(&Tensor) -> Tensor + Copy + Send + Sync + 'static {}
impl<F: Fn(&Tensor) -> Tensor + Copy + Send + Sync + 'static> Unary for F {}

/// A call of a binary operator.
pub trait Binary: Fn(&Tensor, &Tensor) -> Tensor + Copy + Send + Sync + 'static {}
impl<F: Fn(&Tensor, &Tensor) -> Tensor + Copy + Send + Sync + 'static> Binary for F {}

/// Numbers at the ends of every integer dtype's range, and small ones.
pub const EXTREMES: &[i64] =
    &[0, 1, 2, 3, 7, -1, -3, 31, 64, 100, 127, 128, 200, 255, 46341, 65535, 1 << 31, 1 << 53, i64::MAX, i64::MIN];

/// Subnormals of f32 and f64 of either sign, and the smallest normal numbers.
pub fn subnormals() -> Literal {
    let v = [1e-40, -1e-40, 1.401298464324817e-45, -1.1754943508222875e-38, 5e-324, -1e-310, 2.2250738585072014e-308];
    values::floats([v.len()], &v)
}

/// A column of these values against a row of them: every pair.
pub fn pairs(literal: Literal) -> Vec<Literal> {
    let n = literal.ty().shape.elements();
    let column = Literal::from_bytes(literal.ty().with_shape([n, 1]), literal.bytes()).expect("the same bytes");
    vec![column, literal]
}

/// A unary operator on floats: at these smooth points, on edge shapes made of them, and where it is dangerous.
pub fn unary(ordinary: Literal, op: impl Unary) -> Vec<Sample> {
    let first = &ordinary.to_f64()[..1];
    let sample = |label, input| Sample::floats(label, vec![input], move |_, x| vec![op(&x[0])]);
    vec![
        sample("scalar", values::floats([], first)),
        sample("one element", values::floats([1], first)),
        sample("no elements", values::floats([0], &[])),
        sample("danger values", values::danger()).not_smooth(),
        sample("subnormals", subnormals()).not_smooth().with_dtypes(&[DType::F64, DType::F32]),
        sample("ordinary", ordinary),
    ]
}

/// A unary operator on floats where it jumps or bends.
pub fn kinks(points: &[f64], op: impl Unary) -> Sample {
    let input = values::floats([points.len()], points);
    Sample::floats("kinks", vec![input], move |_, x| vec![op(&x[0])]).not_smooth()
}

/// A rounding operator: between whole numbers and halves, and on them.
pub fn steps(op: impl Unary) -> Vec<Sample> {
    let between = [-3.75, -2.625, -1.125, -0.625, -0.25, 0.125, 0.375, 1.625, 2.375, 100.75];
    let on = [-2.5, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.5, 3.5, 1e10, -1e30, 4503599627370495.5];
    let mut all = unary(values::floats([2, 5], &between), op);
    all.push(kinks(&on, op));
    all
}

/// A unary operator on integers, at the ends of their ranges.
pub fn unary_integers(op: impl Unary) -> Sample {
    let input = values::integers([EXTREMES.len()], EXTREMES);
    Sample::integers("integers at the ends of their range", vec![input], move |_, x| vec![op(&x[0])])
}

/// A unary operator on truth values.
pub fn unary_bools(op: impl Unary) -> Sample {
    let input = values::integers([2], &[0, 1]);
    Sample::integers("truth values", vec![input], move |_, x| vec![op(&x[0])]).with_dtypes(BOOLS)
}

/// A binary operator on floats: broadcast at smooth points from these ranges, on edge shapes, and where it is dangerous.
pub fn binary(a: (f64, f64), b: (f64, f64), op: impl Binary) -> Vec<Sample> {
    let sample = |label, inputs| Sample::floats(label, inputs, move |_, x| vec![op(&x[0], &x[1])]);
    let left = |shape: &[usize]| values::tensor(shape, a.0, a.1, 1);
    let right = |shape: &[usize]| values::tensor(shape, b.0, b.1, 2);
    vec![
        sample("equal shapes", vec![left(&[2, 7]), right(&[2, 7])]),
        sample("both broadcast", vec![left(&[3, 1, 5]), right(&[2, 1])]),
        sample("scalar on the left", vec![left(&[]), right(&[1])]),
        sample("scalar on the right", vec![left(&[3]), right(&[])]),
        sample("no elements", vec![left(&[0, 1]), right(&[3])]),
        sample("pairs of danger values", pairs(values::danger())).not_smooth(),
        sample("pairs of subnormals", pairs(subnormals())).not_smooth().with_dtypes(&[DType::F64, DType::F32]),
    ]
}

/// A binary operator on integers: every pair of numbers at the ends of their ranges.
pub fn binary_integers(op: impl Binary) -> Sample {
    let inputs = pairs(values::integers([EXTREMES.len()], EXTREMES));
    Sample::integers("pairs of integers at the ends of their range", inputs, move |_, x| vec![op(&x[0], &x[1])])
}

/// A binary operator on truth values: every pair.
pub fn binary_bools(op: impl Binary) -> Sample {
    let inputs = pairs(values::integers([2], &[0, 1]));
    Sample::integers("pairs of truth values", inputs, move |_, x| vec![op(&x[0], &x[1])]).with_dtypes(BOOLS)
}
