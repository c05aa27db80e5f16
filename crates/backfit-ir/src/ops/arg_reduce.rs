//! `arg_reduce(x)`: the index of the largest or smallest element along an axis, which vanishes. The result is i32.
//!
//! The first of equal extremes, and the first NaN where there is one. Any dtype but packed ones.
//! Errors: no such axis; an axis without elements, or with more than an i32 counts. Source: JAX's argmax, argmin.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::arity;
use super::select_and_scatter::surpasses;
use super::structure::{Lines, has_axis, sized, unpacked};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::dtype::DType;
use crate::interp::Array;
use crate::op::{Extreme, Keyword, Op};
use crate::shape::Type;

impl Tensor {
    /// The index (i32) of the largest element along an axis (negative from the end); the first of equal ones.
    #[track_caller]
    pub fn arg_max(&self, axis: i64) -> Tensor {
        self.arg_reduce(Extreme::Max, axis)
    }

    /// The index (i32) of the smallest element along an axis (negative from the end); the first of equal ones.
    #[track_caller]
    pub fn arg_min(&self, axis: i64) -> Tensor {
        self.arg_reduce(Extreme::Min, axis)
    }

    #[track_caller]
    fn arg_reduce(&self, extreme: Extreme, axis: i64) -> Tensor {
        match axis_index(axis, self.rank()) {
            Some(axis) => self.graph().push1(Op::ArgReduce { extreme, axis }, &[self]),
            None => self.fail(format!("arg_reduce: {} has no axis {axis}", self.ty())),
        }
    }
}

fn parts(op: &Op) -> (Extreme, usize) {
    match op {
        Op::ArgReduce { extreme, axis } => (*extreme, *axis),
        _ => unreachable!("a rule of arg_reduce"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (ty, axis) = (&types[0], parts(op).1);
    unpacked(ty)?;
    has_axis(ty, axis)?;
    if ty.shape[axis] == 0 || ty.shape[axis] > i32::MAX as usize {
        return Err(format!("axis {axis} of {ty} must have between 1 and {} elements", i32::MAX));
    }
    sized(Type::new(DType::I32, [&ty.shape[..axis], &ty.shape[axis + 1..]].concat()))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (extreme, axis) = parts(op);
    let lines = Lines::new(x[0].shape(), axis);
    let first = |&start: &usize| {
        let better =
            |best, i| if surpasses(extreme, x[0], lines.at(start, i), lines.at(start, best)) { i } else { best };
        (1..lines.length).fold(0, better) as i64
    };
    vec![Array::ints(results[0].clone(), lines.starts.iter().map(first).collect())]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "arg_reduce",
    formula: "y = the first i with x[i] = max x (or min x) along the axis",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (extreme, axis) = parts(op);
            Attributes::new().with("extreme", extreme.word()).with("axis", axis)
        },
        parse: |a| Ok(Op::ArgReduce { extreme: Extreme::from_word(a.str("extreme")?)?, axis: a.size("axis")? }),
        infer,
        eval,
        flops: |_, types, _| types[0].shape.elements() as u64,
    }),
    derivative: Derivative::NotDifferentiable("an index changes in jumps"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let both = |axis| move |_: &_, x: &[Tensor]| vec![x[0].arg_max(axis), x[0].arg_min(axis)];
        let bits = values::integers([2, 2], &[0, 1, 1, 1]);
        vec![
            Sample::floats("last axis", vec![values::tensor([3, 5], -2.0, 2.0, 1)], both(-1)).not_smooth(),
            Sample::floats("middle axis", vec![values::tensor([2, 4, 3], -2.0, 2.0, 2)], both(1)).not_smooth(),
            Sample::floats("equal values", vec![values::floats([4], &[1.0, 2.0, 2.0, 1.0])], both(0)).not_smooth(),
            Sample::floats("danger values", vec![values::danger()], both(0)).not_smooth(),
            Sample::floats("one element", vec![values::floats([1], &[2.0])], both(0)).not_smooth(),
            Sample::floats("no lines", vec![values::floats([0, 2], &[])], both(1)).not_smooth(),
            Sample::integers("integers", vec![values::integers([4], &[1, 200, -7, 100])], both(0)),
            Sample::integers("bits", vec![bits], both(1)).with_dtypes(BOOLS),
        ]
    },
};
