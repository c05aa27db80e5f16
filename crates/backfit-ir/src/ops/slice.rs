//! `slice(x)`: every `stride`-th element of `start..limit` along each axis.
//!
//! Every dtype but packed ones; the extents are ⌈(limit − start) / stride⌉.
//! Errors: lists that have not one entry per axis, start beyond limit, limit beyond the extent, stride 0.
//! Source: StableHLO `slice`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::{arity, no_flops};
use super::structure::{one_each, sized};
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// Every `stride`-th element of `start..limit` along each axis.
    #[track_caller]
    pub fn slice(&self, starts: &[usize], limits: &[usize], strides: &[usize]) -> Tensor {
        let (starts, limits, strides) = (starts.to_vec(), limits.to_vec(), strides.to_vec());
        self.graph().push1(Op::Slice { starts, limits, strides }, &[self])
    }

    /// The elements `start..start + length` along one axis (negative from the end).
    #[track_caller]
    pub fn narrow(&self, axis: i64, start: usize, length: usize) -> Tensor {
        let Some(axis) = axis_index(axis, self.rank()) else {
            return self.fail(format!("narrow: {} has no axis {axis}", self.ty()));
        };
        let (mut starts, mut limits) = (vec![0; self.rank()], self.shape().to_vec());
        starts[axis] = start;
        limits[axis] = start.saturating_add(length);
        self.slice(&starts, &limits, &vec![1; self.rank()])
    }
}

fn parts(op: &Op) -> [&[usize]; 3] {
    match op {
        Op::Slice { starts, limits, strides } => [starts, limits, strides],
        _ => unreachable!("a rule of slice"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let [starts, limits, strides] = parts(op);
    let ty = &types[0];
    for (words, list) in [("starts", starts), ("limits", limits), ("strides", strides)] {
        one_each(words, list.len(), ty.shape.rank())?;
    }
    let mut dims = Vec::with_capacity(starts.len());
    for (axis, ((&start, &limit), &stride)) in starts.iter().zip(limits).zip(strides).enumerate() {
        if start > limit || limit > ty.shape[axis] {
            return Err(format!("{start}..{limit} is not within axis {axis} of {ty}"));
        }
        if stride == 0 {
            return Err(format!("the stride of axis {axis} is 0; it must be at least 1"));
        }
        dims.push((limit - start).div_ceil(stride));
    }
    sized(ty.with_shape(dims))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let [starts, _, strides] = parts(op);
    let (from, shape) = (x[0].shape().strides(), &results[0].shape);
    let to = shape.strides();
    let index = |i: usize| (0..to.len()).map(|a| (starts[a] + i / to[a] % shape[a] * strides[a]) * from[a]).sum();
    vec![x[0].pick(results[0].clone(), index)]
}

/// g put back where it came from, zeros elsewhere.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let [starts, _, strides] = parts(vjp.op);
    let (x, g) = (&vjp.operands[0], vjp.cotangent());
    if g.shape().elements() == 0 {
        return vec![Some(x.like(0.0))];
    }
    let low: Vec<i64> = starts.iter().map(|&s| s as i64).collect();
    // Extents of 1 have nothing in between, whatever the stride.
    let interior: Vec<usize> = g.shape().iter().zip(strides).map(|(&n, s)| if n == 1 { 0 } else { s - 1 }).collect();
    let reach = |a: usize| starts[a] + (g.shape()[a] - 1) * (interior[a] + 1) + 1;
    let high: Vec<i64> = (0..x.rank()).map(|a| (x.shape()[a] - reach(a)) as i64).collect();
    vec![Some(g.pad(&low, &high, &interior, 0.0))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "slice",
    formula: "y[i] = x[start + i·stride]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let [starts, limits, strides] = parts(op);
            Attributes::new().with("starts", starts).with("limits", limits).with("strides", strides)
        },
        parse: |a| {
            Ok(Op::Slice { starts: a.sizes("starts")?, limits: a.sizes("limits")?, strides: a.sizes("strides")? })
        },
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let x = || vec![values::tensor([4, 7], -2.0, 2.0, 1)];
        let cut = |starts: &'static [usize], limits: &'static [usize], strides: &'static [usize]| {
            move |_: &_, x: &[Tensor]| vec![x[0].slice(starts, limits, strides)]
        };
        vec![
            Sample::floats("dense", x(), cut(&[1, 2], &[3, 6], &[1, 1])),
            Sample::floats("strides that do not divide", x(), cut(&[0, 1], &[4, 7], &[3, 4])),
            Sample::floats("stride beyond the end", x(), cut(&[3, 1], &[4, 7], &[9, 100])),
            Sample::floats("nothing", x(), cut(&[2, 7], &[2, 7], &[1, 2])),
            Sample::floats("one axis", x(), |_, x| vec![x[0].narrow(-1, 2, 3)]),
            Sample::floats("scalar", vec![values::floats([], &[2.0])], cut(&[], &[], &[])),
            Sample::integers("integers", vec![values::integers([4], &[1, -2, 3, 4])], cut(&[1], &[4], &[2])),
            Sample::integers("bits", vec![values::integers([3], &[1, 0, 1])], cut(&[1], &[3], &[1])).with_dtypes(BOOLS),
        ]
    },
};
