//! `scatter(x, indices, updates)`: x with slices set or added to along an axis; the reverse of `gather`.
//!
//! y = x, then for each i in row-major order of `indices`: `y[a, indices[i], b]` = or += `updates[a, i, b]`.
//! Updates are applied in order, so of several that are set at one index the last wins. Indices outside the
//! axis are dropped, negative ones too. x of every dtype but packed ones (bool is not added), indices of any
//! integer dtype, updates of x's dtype. Errors: no such axis, indices that are not integers, updates whose
//! shape is not that of `gather(x, indices)`. Source: StableHLO `scatter`, restricted to one axis.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use super::gather::{clamp_indices, taken};
use super::structure::{Lines, has_axis, index_dtype, index_like, position, sized};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::dtype::Class;
use crate::interp::{Array, Data};
use crate::op::{Comparison, Keyword, Op, ScatterMode};
use crate::shape::Type;

impl Tensor {
    /// This tensor with slices set or added to along an axis (negative from the end), in order of the indices.
    /// Those outside the axis are dropped.
    #[track_caller]
    pub fn scatter(&self, mode: ScatterMode, axis: i64, indices: &Tensor, updates: &Tensor) -> Tensor {
        match axis_index(axis, self.rank()) {
            Some(axis) => self.graph().push1(Op::Scatter { mode, axis }, &[self, indices, updates]),
            None => self.fail(format!("scatter: {} has no axis {axis}", self.ty())),
        }
    }
}

fn parts(op: &Op) -> (ScatterMode, usize) {
    match op {
        Op::Scatter { mode, axis } => (*mode, *axis),
        _ => unreachable!("a rule of scatter"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 3)?;
    let (mode, axis) = parts(op);
    has_axis(&types[0], axis)?;
    index_like(&types[1])?;
    if mode == ScatterMode::Add && types[0].dtype.class() == Class::Bool {
        return Err("'add' is not defined on bool".to_owned());
    }
    let expected = taken(&types[0], &types[1], axis);
    if types[2] != expected {
        return Err(format!("the updates are {}; for these indices they must be {expected}", types[2]));
    }
    sized(types[0].clone())
}

fn eval(op: &Op, x: &[&Array], _: &[Type]) -> Vec<Array> {
    let (mode, axis) = parts(op);
    let lines = Lines::new(x[0].shape(), axis);
    let (n, inner, count) = (lines.length, lines.stride, x[1].len());
    let mut out = x[0].clone();
    for i in 0..x[2].len() {
        let (outer, at, rest) = (i / inner / count, i / inner % count, i % inner);
        let Some(found) = position(x[1], at).filter(|&p| p < n) else { continue };
        let target = (outer * n + found) * inner + rest;
        match (mode, &mut out.data, &x[2].data) {
            (ScatterMode::Add, Data::Float(y), Data::Float(u)) => y[target] += u[i],
            (ScatterMode::Add, Data::Int(y), Data::Int(u)) => {
                y[target] = crate::interp::wrap(x[0].ty.dtype, y[target].wrapping_add(u[i]));
            }
            _ => out.set(target, x[2], i),
        }
    }
    vec![out]
}

/// add: dx = g. set: dx is g with zeros where updates went.
/// dupdates: the slices of g where the updates went; zero for those that were dropped or overwritten.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (mode, axis) = parts(vjp.op);
    let [x, indices, updates] = vjp.operands else { unreachable!("the type rule wants three operands") };
    let g = vjp.cotangent();
    let dx = || match mode {
        ScatterMode::Add => g.clone(),
        ScatterMode::Set => g.scatter(mode, axis as i64, indices, &updates.like(0.0)),
    };
    let dupdates = || {
        let n = x.shape()[axis];
        if n == 0 {
            return updates.like(0.0);
        }
        let counts = match mode {
            ScatterMode::Add => in_range(indices, n),
            ScatterMode::Set => wins(indices, n),
        };
        let axes: Vec<usize> = (axis..axis + indices.rank()).collect();
        let counts = counts.broadcast_in_dim(updates.shape(), &axes);
        let slices = g.gather(indices, axis as i64);
        vjp.graph.push1(Op::Select, &[&counts, &slices, &updates.like(0.0)])
    };
    vec![vjp.when(0, dx), None, vjp.when(2, dupdates)]
}

/// Whether indices are within 0..n: whether clamping leaves them.
fn in_range(indices: &Tensor, n: usize) -> Tensor {
    indices.binary(Op::Compare(Comparison::Eq), &clamp_indices(indices, n))
}

/// Whether an update is the last one at its index: numbers are scattered in place of updates and looked up again.
/// A dropped one finds a number other than its own.
fn wins(indices: &Tensor, n: usize) -> Tensor {
    let (graph, count) = (indices.graph(), indices.shape().elements());
    let dtype = index_dtype(count);
    let numbers = if count == 0 {
        graph.full(Type::new(dtype, indices.shape()), 0.0)
    } else {
        graph.iota(dtype, [count], 0).reshape(indices.shape())
    };
    let last = graph.full(Type::new(dtype, [n]), -1.0).scatter(ScatterMode::Set, 0, indices, &numbers);
    last.gather(indices, 0).binary(Op::Compare(Comparison::Eq), &numbers)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "scatter",
    formula: "y = x, then y[a, indices[i], b] = or += updates[a, i, b]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (mode, axis) = parts(op);
            Attributes::new().with("mode", mode.word()).with("axis", axis)
        },
        parse: |a| Ok(Op::Scatter { mode: ScatterMode::from_word(a.str("mode")?)?, axis: a.size("axis")? }),
        infer,
        eval,
        flops: |op, types, _| match parts(op).0 {
            ScatterMode::Add => types[2].shape.elements() as u64,
            ScatterMode::Set => 0,
        },
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(8.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for mode in [ScatterMode::Set, ScatterMode::Add] {
        let put = |axis| move |_: &_, x: &[Tensor]| vec![x[0].scatter(mode, axis, &x[1], &x[2])];
        let label = |words: &str| format!("{}: {words}", mode.word());
        let f = |shape: &[usize], seed| values::tensor(shape, -2.0, 2.0, seed);
        let i = |v: &[i32]| values::indices([v.len()], v);
        let cases = [
            ("rows, repeated", vec![f(&[4, 3], 1), i(&[3, 0, 3, 3]), f(&[4, 3], 2)], 0),
            ("middle axis, out of range", vec![f(&[2, 3, 2], 1), i(&[-1, 2, 3, 1 << 30]), f(&[2, 4, 2], 2)], 1),
            ("matrix of indices", vec![f(&[2, 3], 1), values::indices([2, 2], &[2, 1, 1, 0]), f(&[2, 2, 2], 2)], -1),
            ("one index", vec![f(&[3, 2], 1), values::indices([], &[1]), f(&[2], 2)], 0),
            ("no index", vec![f(&[3, 2], 1), i(&[]), f(&[0, 2], 2)], 0),
            ("into nothing", vec![f(&[0, 2], 1), i(&[0]), f(&[1, 2], 2)], 0),
        ];
        for (words, inputs, axis) in cases {
            all.push(Sample::floats(&label(words), inputs, put(axis)));
        }
        let integers = vec![values::integers([3], &[1, 100, 3]), i(&[1, 1, 7]), values::integers([3], &[100, -5, 1])];
        all.push(Sample::integers(&label("integers"), integers, put(0)));
    }
    let bits = vec![values::integers([3], &[1, 0, 0]), values::indices([2], &[0, 2]), values::integers([2], &[0, 1])];
    let put = |_: &_, x: &[Tensor]| vec![x[0].scatter(ScatterMode::Set, 0, &x[1], &x[2])];
    all.push(Sample::integers("set: bits", bits, put).with_dtypes(BOOLS));
    all
}
