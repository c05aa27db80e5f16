//! `cumulative(x)`: running sum, product, max, min, and, or along an axis; the shape stays.
//!
//! yⱼ = ⊕ xᵢ over i ≤ j; with `reverse` over i ≥ j; with `exclusive` without i = j, so that the first result is
//! the neutral element (as in `reduce`). Sums and products of half precision are accumulated in f32.
//! Integers wrap. From the first NaN on, all results of sum, product, max and min are NaN.
//! Errors: no such axis; a monoid that is not defined on the dtype. Source: XLA's cumsum, cumprod, cummax, cummin.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use super::reduce::{check_monoid, combine_float, combine_int, neutral_float, neutral_int};
use super::structure::{Lines, flat_positions, has_axis, index_dtype, sized};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::interp::Array;
use crate::op::{Comparison, Keyword, Monoid, Op, ScatterMode};
use crate::shape::Type;

impl Tensor {
    /// The running reduction along an axis (negative from the end): from its end with `reverse`,
    /// without the element itself with `exclusive`.
    #[track_caller]
    pub fn cumulative(&self, monoid: Monoid, axis: i64, reverse: bool, exclusive: bool) -> Tensor {
        match axis_index(axis, self.rank()) {
            Some(axis) => self.graph().push1(Op::Cumulative { monoid, axis, reverse, exclusive }, &[self]),
            None => self.fail(format!("cumulative: {} has no axis {axis}", self.ty())),
        }
    }

    /// The running sum along an axis, each element included.
    #[track_caller]
    pub fn cumsum(&self, axis: i64) -> Tensor {
        self.cumulative(Monoid::Sum, axis, false, false)
    }
}

struct Parts {
    monoid: Monoid,
    axis: usize,
    reverse: bool,
    exclusive: bool,
}

fn parts(op: &Op) -> Parts {
    match *op {
        Op::Cumulative { monoid, axis, reverse, exclusive } => Parts { monoid, axis, reverse, exclusive },
        _ => unreachable!("a rule of cumulative"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let Parts { monoid, axis, .. } = parts(op);
    has_axis(&types[0], axis)?;
    check_monoid(monoid, types[0].dtype)?;
    sized(types[0].clone())
}

/// The running reduction of every line.
fn running<T: Copy>(x: &[T], lines: &Lines, parts: &Parts, neutral: T, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut out = vec![neutral; x.len()];
    for &start in &lines.starts {
        let mut total = neutral;
        for step in 0..lines.length {
            let i = lines.at(start, if parts.reverse { lines.length - 1 - step } else { step });
            let with = combine(total, x[i]);
            out[i] = if parts.exclusive { total } else { with };
            total = with;
        }
    }
    out
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let parts = parts(op);
    let (monoid, ty) = (parts.monoid, results[0].clone());
    let lines = Lines::new(&ty.shape, parts.axis);
    vec![if ty.dtype.is_float() {
        let combine = |a, b| combine_float(monoid, a, b);
        Array::floats(ty, running(x[0].as_floats(), &lines, &parts, neutral_float(monoid), combine))
    } else {
        let combine = |a, b| crate::interp::wrap(ty.dtype, combine_int(monoid, ty.dtype, a, b));
        let out = running(x[0].as_ints(), &lines, &parts, neutral_int(monoid, ty.dtype), combine);
        Array::ints(ty, out)
    }]
}

/// sum: the running sum of g from the other end. product and extremes: below, for the forward direction.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let Parts { monoid, axis, reverse, exclusive } = parts(vjp.op);
    let (x, g) = (&vjp.operands[0], vjp.cotangent());
    if x.shape()[axis] == 0 {
        return vec![Some(g.clone())];
    }
    let turn = |t: &Tensor| if reverse { t.reverse(&[axis as i64]) } else { t.clone() };
    vec![match monoid {
        Monoid::Sum => Some(g.cumulative(Monoid::Sum, axis as i64, !reverse, exclusive)),
        Monoid::Product => Some(turn(&product_vjp(&turn(x), &turn(g), axis, exclusive))),
        Monoid::Max | Monoid::Min => Some(turn(&extreme_vjp(monoid, &turn(x), &turn(g), axis, exclusive))),
        Monoid::And | Monoid::Or => None,
    }]
}

/// Elements 1.. along an axis, then a zero.
fn shifted(x: &Tensor, axis: usize) -> Tensor {
    let mut low = vec![0; x.rank()];
    low[axis] = -1;
    let high: Vec<i64> = low.iter().map(|&l: &i64| -l).collect();
    x.pad(&low, &high, &vec![0; x.rank()], 0.0)
}

/// dxᵢ = (x₀ ⋯ xᵢ₋₁) · sᵢ with sᵢ = bᵢ + xᵢ₊₁ · sᵢ₊₁, where b is g, or g moved by one if exclusive: no division,
/// so that zeros are no trouble. The recurrence is solved in log₂ n rounds of doubling the reach.
fn product_vjp(x: &Tensor, g: &Tensor, axis: usize, exclusive: bool) -> Tensor {
    let (n, along) = (x.shape()[axis], axis as i64);
    let mut a = shifted(x, axis);
    let mut b = if exclusive { shifted(g, axis) } else { g.clone() };
    let mut reach = 1;
    while reach < n {
        let (near, rest) = (n - reach, reach);
        let step = a.narrow(along, 0, near);
        let sum = &b.narrow(along, 0, near) + &(&step * &b.narrow(along, reach, near));
        let product = &step * &a.narrow(along, reach, near);
        b = x.graph().concatenate(&[&sum, &b.narrow(along, near, rest)], along);
        a = x.graph().concatenate(&[&product, &a.narrow(along, near, rest)], along);
        reach *= 2;
    }
    &x.cumulative(Monoid::Product, along, false, true) * &b
}

/// Every cotangent goes to the element that was the extreme, the first of equal ones: the last element so far
/// that surpassed all before it.
fn extreme_vjp(monoid: Monoid, x: &Tensor, g: &Tensor, axis: usize, exclusive: bool) -> Tensor {
    let along = axis as i64;
    let g = if exclusive { shifted(g, axis) } else { g.clone() };
    let before = x.cumulative(monoid, along, false, true);
    let surpasses = if monoid == Monoid::Max { Comparison::Gt } else { Comparison::Lt };
    let record = x.binary(Op::Compare(surpasses), &before);
    let n = x.shape().elements();
    let place = x.graph().iota(index_dtype(n), x.shape(), axis);
    let at = x.graph().push1(Op::Select, &[&record, &place, &place.like(0.0)]);
    let at = at.cumulative(Monoid::Max, along, false, false);
    let positions = flat_positions(x.graph(), x.shape(), axis, &at).reshape([n]);
    let zeros = x.graph().full(Type::new(x.dtype(), [n]), 0.0);
    zeros.scatter(ScatterMode::Add, 0, &positions, &g.reshape([n])).reshape(x.shape())
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "cumulative",
    formula: "y[j] = ⊕ x[i] over i ≤ j",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let Parts { monoid, axis, reverse, exclusive } = parts(op);
            let named = Attributes::new().with("monoid", monoid.word()).with("axis", axis);
            named.with("reverse", reverse).with("exclusive", exclusive)
        },
        parse: |a| {
            Ok(Op::Cumulative {
                monoid: Monoid::from_word(a.str("monoid")?)?,
                axis: a.size("axis")?,
                reverse: a.bool("reverse")?,
                exclusive: a.bool("exclusive")?,
            })
        },
        infer,
        eval,
        flops: |_, types, _| types[0].shape.elements() as u64,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for monoid in [Monoid::Sum, Monoid::Product, Monoid::Max, Monoid::Min] {
        for (reverse, exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
            let run = move |_: &_, x: &[Tensor]| vec![x[0].cumulative(monoid, 1, reverse, exclusive)];
            let label = format!("{}, reverse {reverse}, exclusive {exclusive}", monoid.word());
            let x = [0.5, 1.25, -0.75, 2.0, 1.5, -1.0, 0.25, -1.25, 1.0, -0.5];
            let x = values::floats([1, 5, 2], &x);
            let smooth = !(exclusive && matches!(monoid, Monoid::Max | Monoid::Min));
            all.push(Sample { smooth, ..Sample::floats(&label, vec![x], run) });
            let x = values::integers([2, 3], &[1, 200, 100, -7, 5, 3]);
            all.push(Sample::integers(&format!("{label}, integers"), vec![x], run));
        }
        let along = move |_: &_, x: &[Tensor]| vec![x[0].cumulative(monoid, -1, false, false)];
        all.push(Sample::floats("one element", vec![values::floats([1], &[2.0])], along));
        all.push(Sample::floats("nothing", vec![values::floats([2, 0], &[])], along));
        all.push(Sample::floats("danger values", vec![values::danger()], along).not_smooth());
        all.push(Sample::floats("equal values", vec![values::floats([4], &[1.0, 1.0, 0.0, 1.0])], along).not_smooth());
    }
    let zeros = values::floats([5], &[2.0, 0.0, 3.0, 0.0, 5.0]);
    all.push(Sample::floats("product with zeros", vec![zeros], |_, x| {
        vec![x[0].cumulative(Monoid::Product, 0, false, false)]
    }));
    for monoid in [Monoid::And, Monoid::Or] {
        let run = move |_: &_, x: &[Tensor]| vec![x[0].cumulative(monoid, 0, false, false)];
        let x = values::integers([4], &[1, 1, 0, 1]);
        all.push(Sample::integers(&format!("{} of truth values", monoid.word()), vec![x], run).with_dtypes(BOOLS));
    }
    all
}
