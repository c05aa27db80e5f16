//! `reverse(x)`: the elements in opposite order along axes.
//!
//! Every dtype but packed ones. Errors: axes out of range or not in increasing order. Source: StableHLO `reverse`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{arity, no_flops};
use super::structure::sized;
use crate::attributes::Attributes;
use crate::builder::{Tensor, axis_index};
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// The elements in opposite order along axes (negative from the end).
    #[track_caller]
    pub fn reverse(&self, axes: &[i64]) -> Tensor {
        let mut found: Vec<usize> = axes.iter().filter_map(|&a| axis_index(a, self.rank())).collect();
        found.sort_unstable();
        found.dedup();
        if found.len() != axes.len() {
            return self.fail(format!("reverse: axes {axes:?} of {} are out of range or named twice", self.ty()));
        }
        if found.is_empty() { self.clone() } else { self.graph().push1(Op::Reverse(found), &[self]) }
    }
}

fn axes(op: &Op) -> &[usize] {
    match op {
        Op::Reverse(axes) => axes,
        _ => unreachable!("a rule of reverse"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (axes, ty) = (axes(op), &types[0]);
    if !axes.windows(2).all(|w| w[0] < w[1]) || axes.last().is_some_and(|&a| a >= ty.shape.rank()) {
        return Err(format!("axes {axes:?} of {ty} are out of range or not in increasing order"));
    }
    sized(ty.clone())
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (axes, shape) = (axes(op), x[0].shape());
    let strides = shape.strides();
    let turned = |a: usize, i: usize| if axes.contains(&a) { shape[a] - 1 - i } else { i };
    let index = |i: usize| (0..shape.rank()).map(|a| turned(a, i / strides[a] % shape[a]) * strides[a]).sum();
    vec![x[0].pick(results[0].clone(), index)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "reverse",
    formula: "y[i] = x[n − 1 − i] along the axes",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("axes", axes(op)),
        parse: |a| Ok(Op::Reverse(a.sizes("axes")?)),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|vjp| {
        let axes: Vec<i64> = axes(vjp.op).iter().map(|&a| a as i64).collect();
        vec![Some(vjp.cotangent().reverse(&axes))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let turn = |axes: &'static [i64]| move |_: &_, x: &[Tensor]| vec![x[0].reverse(axes)];
        vec![
            Sample::floats("last axis", vec![values::tensor([2, 3], -2.0, 2.0, 1)], turn(&[-1])),
            Sample::floats("outer and inner axis", vec![values::tensor([2, 3, 4], -2.0, 2.0, 2)], turn(&[2, 0])),
            Sample::floats("one element", vec![values::floats([1], &[2.0])], turn(&[0])),
            Sample::floats("nothing", vec![values::floats([2, 0], &[])], turn(&[0, 1])),
            Sample::integers("integers", vec![values::integers([3], &[1, -2, 3])], turn(&[0])),
            Sample::integers("bits", vec![values::integers([3], &[1, 0, 0])], turn(&[0])).with_dtypes(BOOLS),
        ]
    },
};
