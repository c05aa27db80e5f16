//! `take_along_axis(x, indices)`: for every element of `indices` the element of x that it names along an axis.
//!
//! y[…, i, …] = x[…, indices[…, i, …], …]. NumPy: the function of this name; ONNX: `GatherElements`.
//! x of any dtype but packed ones; indices of any integer dtype, of x's shape but for the axis. Indices are clamped.

use super::composite::{accepted, axis, index_dtype, integer, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Takes, arity};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::Type;

impl Tensor {
    /// The elements that `indices` name along an axis, negative from the end.
    #[track_caller]
    pub fn take_along_axis(&self, indices: &Tensor, axis: i64) -> Tensor {
        self.compose(&DEF, &[indices], Attributes::new().with("axis", axis))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    arity(types, 2)?;
    let (x, indices) = (&types[0], &types[1]);
    Takes::All.check(x.dtype)?;
    integer("indices", indices)?;
    let axis = axis(x, attributes.int("axis")?)?;
    let mut expected = x.shape.to_vec();
    expected[axis] = indices.shape.get(axis).copied().unwrap_or_default();
    if *indices.shape != *expected {
        return Err(format!("indices are {indices}; but for axis {axis} their shape must be that of {x}"));
    }
    if x.shape[axis] == 0 { Err(format!("axis {axis} of {x} has no elements to take")) } else { Ok(()) }
}

/// Gathers from the flattened x, whose indices are Σ index · stride over the axes.
fn body(b: &Body) -> Vec<Tensor> {
    let (x, indices) = (&b.operands[0], &b.operands[1]);
    let axis = accepted(axis(x.ty(), accepted(b.attributes.int("axis"))));
    let small = x.shape().elements() <= i32::MAX as usize;
    let dtype = if small { index_dtype(indices.dtype()) } else { DType::I64 };
    let along = indices.cast(dtype);
    let clamped = along.maximum(&along.like(0.0)).minimum(&along.like((x.shape()[axis] - 1) as f64));
    let strides = x.shape().strides();
    let others = (0..x.rank()).filter(|&a| a != axis && x.shape()[a] > 1);
    let linear = others.fold(clamped * strides[axis] as f64, |sum, a| {
        sum + b.graph.iota(dtype, indices.shape(), a) * strides[a] as f64
    });
    vec![x.flatten(0).gather(&linear, 0)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "take_along_axis",
    formula: "y[…, i, …] = x[…, indices[…, i, …], …]",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let take = |axis| move |_: &_, x: &[Tensor]| vec![x[0].take_along_axis(&x[1], axis)];
        let x = || values::tensor([3, 4], -2.0, 2.0, 1);
        vec![
            Sample::floats("last axis", vec![x(), values::indices([3, 2], &[0, 3, 1, 1, 2, 0])], take(-1)),
            Sample::floats("first axis", vec![x(), values::indices([1, 4], &[2, 0, 1, 2])], take(0)),
            Sample::floats("clamped", vec![x(), values::indices([3, 1], &[-5, 9, 1])], take(1)),
            Sample::floats("vector", vec![values::tensor([4], -2.0, 2.0, 1), values::indices([2], &[3, 3])], take(0)),
        ]
    },
};
