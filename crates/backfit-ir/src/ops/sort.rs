//! `sort(keys, payload…)`: sorts along an axis, and permutes the payloads as the keys.
//!
//! Results have the operands' types. Stable: equal keys keep their order in both directions, −0 equals 0.
//! Largest first with `descending`; NaN is last in both directions.
//! Any dtype but packed ones; all operands have the keys' shape. Errors: no such axis, operands of other shapes.
//! Source: StableHLO `sort` with a total order of the keys; NaN as in NumPy and JAX.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::no_flops;
use super::structure::{Lines, flat_positions, has_axis, index_dtype, unpacked};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::dtype::DType;
use crate::interp::{Array, Data};
use crate::op::{Op, ScatterMode};
use crate::shape::Type;
use std::cmp::Ordering;

impl Tensor {
    /// Sorts along an axis (negative from the end). Returns the sorted keys, then the payloads permuted alike.
    #[track_caller]
    pub fn sort(&self, axis: i64, descending: bool, payload: &[&Tensor]) -> Vec<Tensor> {
        let operands = [&[self], payload].concat();
        match axis_index(axis, self.rank()) {
            Some(axis) => self.graph().push(Op::Sort { axis, descending }, &operands),
            None => vec![self.fail(format!("sort: {} has no axis {axis}", self.ty())); operands.len()],
        }
    }
}

fn parts(op: &Op) -> (usize, bool) {
    match op {
        Op::Sort { axis, descending } => (*axis, *descending),
        _ => unreachable!("a rule of sort"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    let keys = types.first().ok_or("it takes keys, and payloads if any")?;
    has_axis(keys, parts(op).0)?;
    for ty in types {
        unpacked(ty)?;
        if ty.shape != keys.shape {
            return Err(format!("a payload is {ty}; it must have the shape of the keys, {keys}"));
        }
    }
    Ok(types.to_vec())
}

/// How two keys compare: by value, or downwards; NaN after everything else.
fn compare(keys: &Array, descending: bool, a: usize, b: usize) -> Ordering {
    let (nan, order) = match &keys.data {
        Data::Float(v) => (v[a].is_nan().cmp(&v[b].is_nan()), v[a].partial_cmp(&v[b]).unwrap_or(Ordering::Equal)),
        Data::Int(v) if keys.ty.dtype == DType::U64 => (Ordering::Equal, (v[a] as u64).cmp(&(v[b] as u64))),
        Data::Int(v) => (Ordering::Equal, v[a].cmp(&v[b])),
    };
    nan.then(if descending { order.reverse() } else { order })
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (axis, descending) = parts(op);
    let lines = Lines::new(x[0].shape(), axis);
    let mut from = vec![0; x[0].len()];
    for &start in &lines.starts {
        let mut line: Vec<usize> = (0..lines.length).map(|i| lines.at(start, i)).collect();
        line.sort_by(|&a, &b| compare(x[0], descending, a, b));
        line.into_iter().enumerate().for_each(|(i, source)| from[lines.at(start, i)] = source);
    }
    x.iter().zip(results).map(|(operand, ty)| operand.pick(ty.clone(), |i| from[i])).collect()
}

/// Every operand's g goes back to where its elements came from: to the positions that sorting along with the keys
/// brings to light.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (axis, descending) = parts(vjp.op);
    let (keys, graph) = (&vjp.operands[0], vjp.graph);
    let n = keys.shape().elements();
    if n == 0 {
        return vjp.cotangents.to_vec();
    }
    let places = graph.iota(index_dtype(n), keys.shape(), axis);
    let along = keys.sort(axis as i64, descending, &[&places]).swap_remove(1);
    let from = flat_positions(graph, keys.shape(), axis, &along).reshape([n]);
    let back = |g: &Tensor| {
        let zeros = graph.full(Type::new(g.dtype(), [n]), 0.0);
        zeros.scatter(ScatterMode::Add, 0, &from, &g.reshape([n])).reshape(keys.shape())
    };
    let each = vjp.cotangents.iter().zip(vjp.wanted);
    each.map(|(g, &wanted)| g.as_ref().filter(|g| wanted && g.dtype().is_float()).map(back)).collect()
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "sort",
    formula: "y = x in order of the keys along the axis",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (axis, descending) = parts(op);
            Attributes::new().with("axis", axis).with("descending", descending)
        },
        parse: |a| Ok(Op::Sort { axis: a.size("axis")?, descending: a.bool("descending")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for descending in [false, true] {
        let sort =
            move |axis| move |_: &_, x: &[Tensor]| x[0].sort(axis, descending, &x[1..].iter().collect::<Vec<_>>());
        let x = || values::floats([3, 2, 2], &[0.5, -1.0, 2.0, 1.5, -0.25, 3.0, 1.0, -2.0, 4.0, 0.0, -3.0, 2.5]);
        let label = |words: &str| format!("{words}, descending {descending}");
        all.push(Sample::floats(&label("first axis"), vec![x()], sort(0)));
        all.push(Sample::floats(&label("last axis"), vec![x()], sort(-1)));
        let payload = vec![x(), values::tensor([3, 2, 2], -2.0, 2.0, 2), values::tensor([3, 2, 2], -2.0, 2.0, 3)];
        all.push(Sample::floats(&label("with payloads"), payload, sort(0)));
        let ties =
            vec![values::floats([5], &[1.0, 0.0, 1.0, -0.0, 1.0]), values::floats([5], &[1.0, 2.0, 3.0, 4.0, 5.0])];
        all.push(Sample::floats(&label("equal keys"), ties, sort(0)).not_smooth());
        all.push(Sample::floats(&label("danger values"), vec![values::danger()], sort(0)).not_smooth());
        all.push(Sample::floats(&label("one element"), vec![values::floats([1], &[2.0])], sort(0)));
        all.push(Sample::floats(&label("nothing"), vec![values::floats([2, 0], &[])], sort(1)));
        all.push(Sample::integers(&label("integers"), vec![values::integers([5], &[1, 200, -7, 100, 5])], sort(0)));
        all.push(Sample::integers(&label("bits"), vec![values::integers([3], &[1, 0, 1])], sort(0)).with_dtypes(BOOLS));
    }
    all
}
