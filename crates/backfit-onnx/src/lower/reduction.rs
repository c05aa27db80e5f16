//! Reductions: over axes, running, and the places of extremes.

use super::arithmetic::wide;
use crate::builder::{Builder, Val, dims};
use crate::proto::AttributeProto;
use backfit_ir::op::{Extreme, Monoid};
use backfit_ir::{Class, DType, Type};

/// The neutral element of a monoid, as a scalar.
pub fn neutral(b: &mut Builder, monoid: Monoid, dtype: DType) -> Val {
    if dtype.is_float() {
        return b.number(dtype, backfit_ir::ops::reduce::neutral_float(monoid));
    }
    b.whole(dtype, backfit_ir::ops::reduce::neutral_int(monoid, dtype))
}

/// `reduce`: over axes, which vanish. Sums and products in the accumulator's dtype.
pub fn reduce(b: &mut Builder, monoid: Monoid, axes: &[usize], accumulator: DType, x: &Val) -> Val {
    let kept: Vec<usize> = (0..x.shape().rank()).filter(|a| !axes.contains(a)).map(|a| x.shape()[a]).collect();
    if axes.is_empty() {
        return x.clone();
    }
    if x.elements() == 0 {
        let start = neutral(b, monoid, x.dtype());
        return b.expand(&start, &kept.into());
    }
    let y = match (monoid, x.dtype().class()) {
        (Monoid::Sum, Class::Float) => reduce_in(b, accumulator, "ReduceSum", axes, x),
        (Monoid::Product, Class::Float) => reduce_in(b, accumulator, "ReduceProd", axes, x),
        // onnxruntime sums and multiplies integers in f64 and saturates: they would neither be exact nor wrap.
        (Monoid::Sum, _) => fold(b, "Add", monoid, axes, x),
        (Monoid::Product, _) => fold(b, "Mul", monoid, axes, x),
        (Monoid::Max, _) | (Monoid::Or, Class::Bool) => extreme(b, "ReduceMax", axes, x),
        (Monoid::Min, _) | (Monoid::And, Class::Bool) => extreme(b, "ReduceMin", axes, x),
        (Monoid::And, _) => fold(b, "BitwiseAnd", monoid, axes, x),
        (Monoid::Or, _) => fold(b, "BitwiseOr", monoid, axes, x),
    };
    b.reshape(&y, &kept)
}

fn reduce_node(b: &mut Builder, op: &str, axes: &[usize], x: &Val) -> Val {
    let kept: Vec<usize> = (0..x.shape().rank()).filter(|a| !axes.contains(a)).map(|a| x.shape()[a]).collect();
    let axes = b.list(&dims(axes));
    b.node(op, &[x, &axes], vec![AttributeProto::int("keepdims", 0)], x.ty.with_shape(kept))
}

fn reduce_in(b: &mut Builder, dtype: DType, op: &str, axes: &[usize], x: &Val) -> Val {
    let wide = b.cast(x, dtype);
    let y = reduce_node(b, op, axes, &wide);
    b.cast(&y, x.dtype())
}

/// The extreme over axes, NaN where there is any.
fn extreme(b: &mut Builder, op: &str, axes: &[usize], x: &Val) -> Val {
    let ordered = b.ordered(x);
    let mut y = reduce_node(b, op, axes, &ordered);
    if x.dtype().is_float() {
        let nan = b.is_nan(&ordered);
        let any = reduce_node(b, "ReduceMax", axes, &nan);
        let number = b.number(y.dtype(), f64::NAN);
        y = b.choose(&any, &number, &y);
    }
    b.unordered(&y, x.dtype())
}

/// Combines halves until one element is left.
fn fold(b: &mut Builder, op: &str, monoid: Monoid, axes: &[usize], x: &Val) -> Val {
    let kept = (0..x.shape().rank()).filter(|a| !axes.contains(a));
    let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let last = b.transpose(x, &order);
    let mut n: usize = axes.iter().map(|&a| x.shape()[a]).product();
    let mut y = b.reshape(&last, &[x.elements() / n, n]);
    let start = neutral(b, monoid, x.dtype());
    while n > 1 {
        y = b.surround(&y, &[0, 0], &[0, n % 2], &start);
        n = n.div_ceil(2);
        let (left, right) = (b.narrow(&y, 1, 0, n), b.narrow(&y, 1, n, 2 * n));
        y = b.binary(op, &left, &right);
    }
    y
}

/// `arg_reduce` as i64: the first extreme along an axis, or the first NaN where there is one.
pub fn arg_reduce(b: &mut Builder, extreme: Extreme, axis: usize, x: &Val) -> Val {
    let op = match extreme {
        Extreme::Max => "ArgMax",
        Extreme::Min => "ArgMin",
    };
    let ordered = b.ordered(x);
    let found = arg_node(b, op, axis, &ordered);
    if !x.dtype().is_float() {
        return found;
    }
    let nan = b.is_nan(&ordered);
    let any = reduce_node(b, "ReduceMax", &[axis], &nan);
    let numbers = b.cast(&nan, DType::I32);
    let first = arg_node(b, "ArgMax", axis, &numbers);
    b.choose(&any, &first, &found)
}

fn arg_node(b: &mut Builder, op: &str, axis: usize, x: &Val) -> Val {
    let mut shape = x.shape().to_vec();
    shape.remove(axis);
    let attributes = vec![AttributeProto::int("axis", axis as i64), AttributeProto::int("keepdims", 0)];
    b.node(op, &[x], attributes, Type::new(DType::I64, shape))
}

/// How a running reduction goes.
pub struct Running {
    /// What is accumulated.
    pub monoid: Monoid,
    /// Along which axis.
    pub axis: usize,
    /// From the end.
    pub reverse: bool,
    /// Without the element itself.
    pub exclusive: bool,
}

/// `cumulative`.
pub fn cumulative(b: &mut Builder, running: &Running, x: &Val) -> Val {
    let dtype = x.dtype();
    match (running.monoid, dtype.class()) {
        (Monoid::Sum, class) => {
            let carrier = if class == Class::Float { dtype.accumulator() } else { DType::I64 };
            let carried = b.cast(x, carrier);
            let axis = b.whole(DType::I64, running.axis as i64);
            let attribute = |name: &str, set: bool| AttributeProto::int(name, i64::from(set));
            let attributes = vec![attribute("exclusive", running.exclusive), attribute("reverse", running.reverse)];
            let y = b.node("CumSum", &[&carried, &axis], attributes, carried.ty.clone());
            b.cast(&y, dtype)
        }
        (Monoid::Product, class) => {
            let carrier = if class == Class::Float { dtype.accumulator() } else { wide(dtype) };
            let carried = b.cast(x, carrier);
            let y = doubling(b, running, &carried, |b, x, y| b.binary("Mul", x, y));
            b.cast(&y, dtype)
        }
        (Monoid::Max, Class::Bool) | (Monoid::Or, Class::Bool) => {
            doubling(b, running, x, |b, x, y| b.binary("Or", x, y))
        }
        (Monoid::Min, Class::Bool) | (Monoid::And, Class::Bool) => {
            doubling(b, running, x, |b, x, y| b.binary("And", x, y))
        }
        (Monoid::Max, _) => doubling(b, running, x, |b, x, y| b.extreme("Max", x, y)),
        (Monoid::Min, _) => doubling(b, running, x, |b, x, y| b.extreme("Min", x, y)),
        (Monoid::And, _) => doubling(b, running, x, |b, x, y| b.binary("BitwiseAnd", x, y)),
        (Monoid::Or, _) => doubling(b, running, x, |b, x, y| b.binary("BitwiseOr", x, y)),
    }
}

/// After k rounds every element is combined with the 2ᵏ − 1 before it. Source: Hillis & Steele 1986.
fn doubling(b: &mut Builder, running: &Running, x: &Val, combine: fn(&mut Builder, &Val, &Val) -> Val) -> Val {
    let start = neutral(b, running.monoid, x.dtype());
    let mut y = if running.exclusive { shifted(b, running, x, 1, &start) } else { x.clone() };
    let mut reach = 1;
    while reach < x.shape()[running.axis] {
        let earlier = shifted(b, running, &y, reach, &start);
        y = combine(b, &y, &earlier);
        reach *= 2;
    }
    y
}

/// Every element moved `by` places along the axis, away from where the reduction begins.
fn shifted(b: &mut Builder, running: &Running, x: &Val, by: usize, start: &Val) -> Val {
    let (rank, axis, n) = (x.shape().rank(), running.axis, x.shape()[running.axis]);
    let by = by.min(n);
    let (mut before, none) = (vec![0; rank], vec![0; rank]);
    before[axis] = by;
    if running.reverse {
        let tail = b.narrow(x, axis, by, n);
        b.surround(&tail, &none, &before, start)
    } else {
        let head = b.narrow(x, axis, 0, n - by);
        b.surround(&head, &before, &none, start)
    }
}
