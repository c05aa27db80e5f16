//! `reduce(x)`: sum, product, max, min, and, or over axes, which vanish from the shape.
//!
//! Over nothing it gives the neutral element: 0, 1, −∞ or the smallest number, +∞ or the largest, true, false.
//! max and min give NaN where any element is NaN.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::dtype::{Class, DType};
use crate::interp::{Array, Odometer};
use crate::op::{Keyword, Monoid, Op};
use crate::shape::Type;

impl Tensor {
    /// Reduces over axes (negative from the end), which vanish.
    #[track_caller]
    pub fn reduce(&self, monoid: Monoid, axes: &[i64]) -> Tensor {
        let mut found: Vec<usize> = axes.iter().filter_map(|&a| axis_index(a, self.rank())).collect();
        found.sort_unstable();
        found.dedup();
        if found.len() != axes.len() {
            return self.fail(format!("reduce: axes {axes:?} of {} are out of range or named twice", self.ty()));
        }
        if found.is_empty() {
            return self.clone();
        }
        self.graph().push1(Op::Reduce { monoid, axes: found, accumulator: self.dtype().accumulator() }, &[self])
    }

    /// Reduces over axes and keeps them with extent 1, so that the result broadcasts against this tensor.
    #[track_caller]
    pub fn reduce_keep(&self, monoid: Monoid, axes: &[i64]) -> Tensor {
        let mut dims = self.shape().to_vec();
        axes.iter().filter_map(|&a| axis_index(a, self.rank())).for_each(|a| dims[a] = 1);
        let reduced = self.reduce(monoid, axes);
        if reduced.value().is_none() { reduced } else { reduced.reshape(dims) }
    }

    /// Reduces all elements: first the last axes, as many as have up to 4096 elements together but at least one, then
    /// all others but the first, then that. The first pass fuses with what computes the tensor, and tensors that differ
    /// in their leading axis alone are reduced by the same operators.
    #[track_caller]
    pub fn reduce_by_rows(&self, monoid: Monoid) -> Tensor {
        let rank = self.rank() as i64;
        let elements = |from: i64| self.shape()[from as usize..].iter().product::<usize>();
        let first = (1..rank).find(|&axis| elements(axis) <= 4096).unwrap_or((rank - 1).max(0));
        let mut reduced = self.clone();
        for axes in [first..rank, 1..first, 0..first.min(1)] {
            if !axes.is_empty() {
                reduced = reduced.reduce(monoid, &axes.collect::<Vec<_>>());
            }
        }
        reduced
    }

    /// The sum over axes.
    #[track_caller]
    pub fn sum(&self, axes: &[i64]) -> Tensor {
        self.reduce(Monoid::Sum, axes)
    }

    /// The product over axes.
    #[track_caller]
    pub fn product(&self, axes: &[i64]) -> Tensor {
        self.reduce(Monoid::Product, axes)
    }

    /// The largest element over axes.
    #[track_caller]
    pub fn max(&self, axes: &[i64]) -> Tensor {
        self.reduce(Monoid::Max, axes)
    }

    /// The smallest element over axes.
    #[track_caller]
    pub fn min(&self, axes: &[i64]) -> Tensor {
        self.reduce(Monoid::Min, axes)
    }

    /// The sum of all elements.
    #[track_caller]
    pub fn sum_all(&self) -> Tensor {
        self.sum(&(0..self.rank() as i64).collect::<Vec<_>>())
    }
}

fn parts(op: &Op) -> (Monoid, &[usize], DType) {
    match op {
        Op::Reduce { monoid, axes, accumulator } => (*monoid, axes, *accumulator),
        _ => unreachable!("a rule of reduce"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (monoid, axes, _) = parts(op);
    let ty = &types[0];
    if !axes.windows(2).all(|w| w[0] < w[1]) || axes.last().is_some_and(|&a| a >= ty.shape.rank()) {
        return Err(format!("axes {axes:?} of {ty} are out of range or not in increasing order"));
    }
    check_monoid(monoid, ty.dtype)?;
    let kept: Vec<usize> = (0..ty.shape.rank()).filter(|a| !axes.contains(a)).map(|a| ty.shape[a]).collect();
    Ok(vec![ty.with_shape(kept)])
}

/// Whether a monoid is defined on a dtype: sums, products and extremes on numbers, and/or on bits.
pub fn check_monoid(monoid: Monoid, dtype: DType) -> Result<(), String> {
    let logical = matches!(monoid, Monoid::And | Monoid::Or);
    let fits = match dtype.class() {
        Class::Float => !logical,
        Class::Bool => logical || matches!(monoid, Monoid::Max | Monoid::Min),
        _ => true,
    };
    if fits && !dtype.is_packed() { Ok(()) } else { Err(format!("'{}' is not defined on {dtype}", monoid.word())) }
}

/// The neutral float of a monoid.
pub fn neutral_float(monoid: Monoid) -> f64 {
    match monoid {
        Monoid::Product => 1.0,
        Monoid::Max => f64::NEG_INFINITY,
        Monoid::Min => f64::INFINITY,
        _ => 0.0,
    }
}

/// The neutral integer of a monoid in a dtype.
pub fn neutral_int(monoid: Monoid, dtype: DType) -> i64 {
    let bits = dtype.bits() as u32;
    let signed = dtype.class() == Class::Signed;
    match monoid {
        Monoid::Sum | Monoid::Or => 0,
        Monoid::Product => 1,
        Monoid::And => crate::interp::wrap(dtype, -1),
        Monoid::Max => if signed { i64::MIN >> (64 - bits) } else { 0 },
        Monoid::Min => if signed { i64::MAX >> (64 - bits) } else { crate::interp::wrap(dtype, -1) },
    }
}

/// One step of a reduction over floats; NaN wins in max and min.
pub fn combine_float(monoid: Monoid, a: f64, b: f64) -> f64 {
    match monoid {
        Monoid::Sum => a + b,
        Monoid::Product => a * b,
        Monoid::Max => if a.is_nan() || a > b { a } else { b },
        Monoid::Min => if a.is_nan() || a < b { a } else { b },
        Monoid::And | Monoid::Or => unreachable!("not defined on floats"),
    }
}

/// One step of a reduction over integers of a dtype; the result is still to be wrapped.
pub fn combine_int(monoid: Monoid, dtype: DType, a: i64, b: i64) -> i64 {
    let greater = if dtype.class() == Class::Unsigned { a as u64 > b as u64 } else { a > b };
    match monoid {
        Monoid::Sum => a.wrapping_add(b),
        Monoid::Product => a.wrapping_mul(b),
        Monoid::Max => if greater { a } else { b },
        Monoid::Min => if greater { b } else { a },
        Monoid::And => a & b,
        Monoid::Or => a | b,
    }
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (monoid, axes, _) = parts(op);
    let ty = &results[0];
    let mut strides = vec![0; x[0].shape().rank()];
    let kept = (0..strides.len()).filter(|a| !axes.contains(a));
    kept.zip(ty.shape.strides()).for_each(|(axis, stride)| strides[axis] = stride);
    let targets = Odometer::new(x[0].shape()).map(|index| index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>());
    let n = ty.shape.elements();
    vec![if ty.dtype.is_float() {
        let mut out = vec![neutral_float(monoid); n];
        targets.zip(x[0].as_floats()).for_each(|(t, &v)| out[t] = combine_float(monoid, out[t], v));
        Array::floats(ty.clone(), out)
    } else {
        let mut out = vec![neutral_int(monoid, ty.dtype); n];
        targets.zip(x[0].as_ints()).for_each(|(t, &v)| out[t] = combine_int(monoid, ty.dtype, out[t], v));
        Array::ints(ty.clone(), out)
    }]
}

/// Puts the reduced axes back with extent 1 and repeats along them.
fn spread(reduced: &Tensor, like: &Tensor, axes: &[usize]) -> Tensor {
    let dims: Vec<usize> = (0..like.rank()).map(|a| if axes.contains(&a) { 1 } else { like.shape()[a] }).collect();
    reduced.reshape(dims).broadcast_to(like.shape())
}

/// sum: g everywhere. product: g · (product of all others), by exclusive cumulative products from both ends.
/// max, min: g shared equally among the elements that tie.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (monoid, axes, _) = parts(vjp.op);
    let x = &vjp.operands[0];
    let g = spread(vjp.cotangent(), x, axes);
    let out = match monoid {
        Monoid::Sum => g,
        Monoid::Product => &g * &others_product(x, axes),
        Monoid::Max | Monoid::Min => {
            let hit = x.eq(&spread(&vjp.results[0], x, axes)).cast(x.dtype());
            let signed: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
            &(&g * &hit) / &hit.reduce_keep(Monoid::Sum, &signed)
        }
        Monoid::And | Monoid::Or => return vec![None],
    };
    vec![Some(out)]
}

/// For every element the product of all others along the axes; right where elements are zero.
fn others_product(x: &Tensor, axes: &[usize]) -> Tensor {
    let kept = (0..x.rank()).filter(|a| !axes.contains(a));
    let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let moved = x.transpose(&order);
    let split = x.rank() - axes.len();
    let rows = moved.reshape(moved.shape()[..split].iter().copied().chain([moved.shape()[split..].iter().product()]).collect::<Vec<_>>());
    let before = rows.cumulative(Monoid::Product, -1, false, true);
    let after = rows.cumulative(Monoid::Product, -1, true, true);
    (&before * &after).reshape(moved.shape()).transpose(&super::transpose::inverse(&order))
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "reduce",
    formula: "y = ⊕ x over the axes",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (monoid, axes, accumulator) = parts(op);
            Attributes::new().with("monoid", monoid.word()).with("axes", axes).with("accumulator", accumulator)
        },
        parse: |a| {
            Ok(Op::Reduce {
                monoid: Monoid::from_word(a.str("monoid")?)?,
                axes: a.sizes("axes")?,
                accumulator: a.dtype("accumulator")?,
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
    for (seed, monoid) in [Monoid::Sum, Monoid::Product, Monoid::Max, Monoid::Min].into_iter().enumerate() {
        for (label, axes) in [("last axis", vec![2]), ("first axis", vec![0]), ("middle and last", vec![1, 2]), ("all", vec![0, 1, 2])] {
            let label = format!("{} over {label}", monoid.word());
            let x = values::tensor([3, 4, 5], 0.25, 1.5, seed as u64);
            all.push(Sample::floats(&label, vec![x], move |_, x| vec![x[0].reduce(monoid, &axes)]));
        }
        all.push(Sample::floats("over nothing", vec![values::floats([2, 0], &[])], move |_, x| vec![x[0].reduce(monoid, &[1])]));
        all.push(Sample::integers("integers", vec![values::integers([2, 3], &[1, 200, 100, -7, 5, 3])], move |_, x| {
            vec![x[0].reduce(monoid, &[1])]
        }));
        all.push(Sample::floats("danger values", vec![values::danger()], move |_, x| vec![x[0].reduce(monoid, &[0])]).not_smooth());
    }
    for monoid in [Monoid::And, Monoid::Or] {
        let x = values::integers([2, 2], &[1, 0, 1, 1]);
        all.push(Sample::integers("bits", vec![x.clone()], move |_, x| vec![x[0].reduce(monoid, &[1])]));
        let label = format!("{} of truth values", monoid.word());
        all.push(Sample::integers(&label, vec![x], move |_, x| vec![x[0].reduce(monoid, &[1])]).with_dtypes(super::definition::BOOLS));
    }
    all
}
