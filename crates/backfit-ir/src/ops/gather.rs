//! `gather(x, indices)`: takes slices along an axis.
//!
//! Result shape: x's axes before `axis`, the axes of `indices`, x's axes after it: `y[a, i, b] = x[a, indices[i], b]`.
//! x of every dtype but packed ones, indices of any integer dtype. Indices are clamped to 0..n, as in StableHLO;
//! an axis without elements has nothing to clamp to and is refused.
//! Errors: no such axis, indices that are not integers, an empty axis.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::{arity, no_flops};
use super::structure::{Lines, clamped, has_axis, index_like, sized};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::interp::Array;
use crate::op::{Binary, Op, ScatterMode};
use crate::shape::Type;

impl Tensor {
    /// Takes slices along an axis (negative from the end), which is replaced by the axes of `indices`.
    /// Indices are clamped to the axis.
    #[track_caller]
    pub fn gather(&self, indices: &Tensor, axis: i64) -> Tensor {
        match axis_index(axis, self.rank()) {
            Some(axis) => self.graph().push1(Op::Gather { axis }, &[self, indices]),
            None => self.fail(format!("gather: {} has no axis {axis}", self.ty())),
        }
    }
}

fn axis(op: &Op) -> usize {
    match op {
        Op::Gather { axis } => *axis,
        _ => unreachable!("a rule of gather"),
    }
}

/// The shape of x with an axis replaced by the axes of indices.
pub fn taken(x: &Type, indices: &Type, axis: usize) -> Type {
    let (before, after) = (&x.shape[..axis], &x.shape[axis + 1..]);
    x.with_shape([before, indices.shape.dims(), after].concat())
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 2)?;
    let axis = axis(op);
    has_axis(&types[0], axis)?;
    index_like(&types[1])?;
    if types[0].shape[axis] == 0 {
        return Err(format!("axis {axis} of {} has no elements to take", types[0]));
    }
    sized(taken(&types[0], &types[1], axis))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let lines = Lines::new(x[0].shape(), axis(op));
    let (n, inner, count) = (lines.length, lines.stride, x[1].len());
    let index = |i: usize| {
        let (outer, at, rest) = (i / inner / count, i / inner % count, i % inner);
        (outer * n + clamped(x[1], at, n - 1)) * inner + rest
    };
    vec![x[0].pick(results[0].clone(), index)]
}

/// Indices clamped to 0..n, as `gather` reads them.
pub fn clamp_indices(indices: &Tensor, n: usize) -> Tensor {
    let dtype = indices.dtype();
    let bound = |v: usize| indices.graph().scalar(dtype, v as f64);
    let largest = super::reduce::neutral_int(crate::op::Monoid::Min, dtype) as u64;
    let last = (n - 1).min(usize::try_from(largest).unwrap_or(usize::MAX));
    let low = indices.binary(Op::Binary(Binary::Maximum), &bound(0));
    low.binary(Op::Binary(Binary::Minimum), &bound(last))
}

/// dx: the slices of g added up where they were taken.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let axis = axis(vjp.op);
    let (x, indices) = (&vjp.operands[0], &vjp.operands[1]);
    let indices = || clamp_indices(indices, x.shape()[axis]);
    let dx = || x.like(0.0).scatter(ScatterMode::Add, axis as i64, &indices(), vjp.cotangent());
    vec![vjp.when(0, dx), None]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "gather",
    formula: "y[a, i, b] = x[a, indices[i], b]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("axis", axis(op)),
        parse: |a| Ok(Op::Gather { axis: a.size("axis")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let take = |axis| move |_: &_, x: &[Tensor]| vec![x[0].gather(&x[1], axis)];
        let x = || values::tensor([3, 4, 2], -2.0, 2.0, 1);
        let i = |v: &[i32]| values::indices([v.len()], v);
        vec![
            Sample::floats(
                "rows of a table, repeated",
                vec![values::tensor([5, 3], -2.0, 2.0, 1), i(&[4, 0, 4, 1])],
                take(0),
            ),
            Sample::floats("middle axis, out of range", vec![x(), i(&[-7, 3, 4, 2_000_000_000])], take(1)),
            Sample::floats("matrix of indices", vec![x(), values::indices([2, 2], &[1, 0, 1, 1])], take(-1)),
            Sample::floats("one index", vec![x(), values::indices([], &[2])], take(0)),
            Sample::floats("no index", vec![x(), i(&[])], take(1)),
            Sample::floats("one element", vec![values::floats([1], &[2.0]), i(&[0, 0])], take(0)),
            Sample::integers("integers", vec![values::integers([3], &[1, -2, 3]), i(&[2, 2, 0])], take(0)),
            Sample::integers("bits", vec![values::integers([2], &[1, 0]), i(&[1, 0, 1])], take(0)).with_dtypes(BOOLS),
        ]
    },
};
