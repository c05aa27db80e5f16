//! `concatenate(x…)`: joins tensors along an axis.
//!
//! At least one operand; one dtype, any but packed ones; equal extents on all other axes.
//! Errors: no operands, no such axis, operands that do not fit together. Source: StableHLO `concatenate`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::no_flops;
use super::structure::{Lines, extent, has_axis, sized};
use crate::attributes::Attributes;
use crate::builder::{Graph, Tensor, axis_index};
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Graph {
    /// Joins tensors along an axis (negative from the end).
    #[track_caller]
    pub fn concatenate(&self, tensors: &[&Tensor], axis: i64) -> Tensor {
        let Some(first) = tensors.first() else { return self.push1(Op::Concatenate { axis: 0 }, &[]) };
        match axis_index(axis, first.rank()) {
            Some(axis) => self.push1(Op::Concatenate { axis }, tensors),
            None => first.fail(format!("concatenate: {} has no axis {axis}", first.ty())),
        }
    }
}

fn axis(op: &Op) -> usize {
    match op {
        Op::Concatenate { axis } => *axis,
        _ => unreachable!("a rule of concatenate"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    let axis = axis(op);
    let first = types.first().ok_or("it takes at least one operand")?;
    has_axis(first, axis)?;
    let mut total = 0;
    for ty in types {
        let fits = ty.dtype == first.dtype && ty.shape.rank() == first.shape.rank();
        if !fits || (0..first.shape.rank()).any(|a| a != axis && ty.shape[a] != first.shape[a]) {
            return Err(format!("{first} and {ty} do not join along axis {axis}: they may differ in that axis only"));
        }
        total += ty.shape[axis] as i128;
    }
    let mut dims = first.shape.to_vec();
    dims[axis] = extent(total, axis)?;
    sized(first.with_shape(dims))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let axis = axis(op);
    let target = Lines::new(&results[0].shape, axis);
    let mut out = Array::from_literal(&crate::Literal::zeros(results[0].clone()));
    let mut done = 0;
    for part in x {
        let lines = Lines::new(part.shape(), axis);
        for (&from, &to) in lines.starts.iter().zip(&target.starts) {
            (0..lines.length).for_each(|i| out.set(target.at(to, done + i), part, lines.at(from, i)));
        }
        done += lines.length;
    }
    vec![out]
}

/// Each operand's part of g.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let axis = axis(vjp.op);
    let mut start = 0;
    let part = |(i, x): (usize, &Tensor)| {
        let from = start;
        start += x.shape()[axis];
        vjp.when(i, || vjp.cotangent().narrow(axis as i64, from, x.shape()[axis]))
    };
    vjp.operands.iter().enumerate().map(part).collect()
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "concatenate",
    formula: "y = x₀ then x₁ then … along the axis",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("axis", axis(op)),
        parse: |a| Ok(Op::Concatenate { axis: a.size("axis")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &["Concat"],
    samples: || {
        let join = |axis| move |g: &Graph, x: &[Tensor]| vec![g.concatenate(&x.iter().collect::<Vec<_>>(), axis)];
        let x = |shape: [usize; 3], seed| values::tensor(shape, -2.0, 2.0, seed);
        vec![
            Sample::floats("first axis", vec![x([1, 2, 3], 1), x([2, 2, 3], 2)], join(0)),
            Sample::floats(
                "middle axis, an empty part",
                vec![x([2, 1, 3], 1), x([2, 0, 3], 2), x([2, 4, 3], 3)],
                join(1),
            ),
            Sample::floats("last axis", vec![x([2, 2, 3], 1), x([2, 2, 1], 2)], join(-1)),
            Sample::floats("one operand", vec![x([2, 2, 3], 1)], join(0)),
            Sample::floats("nothing", vec![x([0, 2, 0], 1), x([0, 2, 0], 2)], join(2)),
            Sample::integers("integers", vec![values::integers([1], &[-1]), values::integers([2], &[2, 3])], join(0)),
            Sample::integers("bits", vec![values::integers([1], &[1]), values::integers([2], &[0, 1])], join(0))
                .with_dtypes(BOOLS),
        ]
    },
};
