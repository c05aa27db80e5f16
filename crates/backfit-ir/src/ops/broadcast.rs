//! `broadcast(x)`: repeats along new axes and along axes of extent 1; operand axis i becomes result axis `axes[i]`.
//!
//! Every dtype but packed ones. Errors: not one result axis per operand axis, result axes out of range or not
//! in increasing order, an extent that is neither 1 nor the result's. Source: StableHLO `broadcast_in_dim`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::{arity, no_flops};
use super::structure::{one_each, sized};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::interp::Array;
use crate::op::Op;
use crate::shape::{Shape, Type};

impl Tensor {
    /// Repeats this tensor to `shape`; its axis i becomes axis `axes[i]`, in increasing order.
    #[track_caller]
    pub fn broadcast_in_dim(&self, shape: impl Into<Shape>, axes: &[usize]) -> Tensor {
        self.graph().push1(Op::Broadcast { shape: shape.into(), axes: axes.to_vec() }, &[self])
    }
}

fn parts(op: &Op) -> (&Shape, &[usize]) {
    match op {
        Op::Broadcast { shape, axes } => (shape, axes),
        _ => unreachable!("a rule of broadcast"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (shape, axes) = parts(op);
    let ty = &types[0];
    one_each("axes", axes.len(), ty.shape.rank())?;
    if !axes.windows(2).all(|w| w[0] < w[1]) || axes.last().is_some_and(|&a| a >= shape.rank()) {
        return Err(format!("axes {axes:?} of {shape} are out of range or not in increasing order"));
    }
    for (i, &axis) in axes.iter().enumerate() {
        if ty.shape[i] != 1 && ty.shape[i] != shape[axis] {
            return Err(format!("axis {i} of {ty} cannot be repeated to extent {} of {shape}", shape[axis]));
        }
    }
    sized(ty.with_shape(shape))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (shape, axes) = parts(op);
    let (from, to) = (x[0].shape().strides(), shape.strides());
    let mut strides = vec![0; shape.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        strides[axis] = if x[0].shape()[i] == 1 { 0 } else { from[i] };
    }
    let index = |i: usize| (0..to.len()).map(|a| i / to[a] % shape[a] * strides[a]).sum();
    vec![x[0].pick(results[0].clone(), index)]
}

/// dx is g summed over the axes along which x was repeated.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (shape, axes) = parts(vjp.op);
    let x = vjp.operands[0].shape();
    let kept = |axis: &usize| axes.iter().position(|a| a == axis).is_some_and(|i| x[i] == shape[*axis]);
    let repeated: Vec<i64> = (0..shape.rank()).filter(|axis| !kept(axis)).map(|axis| axis as i64).collect();
    vec![Some(vjp.cotangent().sum(&repeated).reshape(x))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "broadcast",
    formula: "y[i] = x[i at the axes, 0 along unit axes]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (shape, axes) = parts(op);
            Attributes::new().with("shape", shape.dims()).with("axes", axes)
        },
        parse: |a| Ok(Op::Broadcast { shape: a.sizes("shape")?.into(), axes: a.sizes("axes")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let to = |shape: &'static [usize], axes: &'static [usize]| {
            move |_: &_, x: &[Tensor]| vec![x[0].broadcast_in_dim(shape, axes)]
        };
        vec![
            Sample::floats("scalar", vec![values::floats([], &[2.5])], to(&[2, 3], &[])),
            Sample::floats("new first axis", vec![values::tensor([3], -2.0, 2.0, 1)], to(&[4, 3], &[1])),
            Sample::floats("new last axis", vec![values::tensor([3], -2.0, 2.0, 2)], to(&[3, 4], &[0])),
            Sample::floats("unit axis", vec![values::tensor([2, 1, 3], -2.0, 2.0, 3)], to(&[2, 5, 4, 3], &[0, 1, 3])),
            Sample::floats("to nothing", vec![values::tensor([1, 3], -2.0, 2.0, 4)], to(&[0, 3], &[0, 1])),
            Sample::integers("integers", vec![values::integers([2], &[1, -2])], to(&[2, 2], &[0])),
            Sample::integers("bits", vec![values::integers([2], &[1, 0])], to(&[2, 2], &[1])).with_dtypes(BOOLS),
        ]
    },
};
