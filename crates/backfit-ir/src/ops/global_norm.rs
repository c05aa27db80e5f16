//! `global_norm(x…) = √(Σ x²)` over all elements of all operands; a scalar. Half precision is accumulated in f32.
//!
//! Operands: one or more of one float dtype. Result: f32 for half precision, else their dtype.

use super::composite::{dtype, float, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Monoid;
use crate::shape::Type;

/// √(Σ x²) over all elements of all tensors; `None` where there are no tensors.
#[track_caller]
pub fn global_norm(tensors: &[Tensor]) -> Option<Tensor> {
    let (first, rest) = tensors.split_first()?;
    Some(first.compose(&DEF, &rest.iter().collect::<Vec<_>>(), Attributes::new()))
}

/// One or more operands of one float dtype.
pub fn check(types: &[Type], _: &Attributes) -> Result<(), String> {
    let first = types.first().ok_or("it takes at least one operand")?;
    types.iter().try_for_each(|ty| {
        float("an operand", ty)?;
        dtype("an operand", ty, first.dtype)
    })
}

fn body(b: &Body) -> Vec<Tensor> {
    let squares = b.operands.iter().map(|x| x.widen().square().reduce_by_rows(Monoid::Sum));
    vec![squares.reduce(|a, b| a + b).map_or(b.graph.scalar(crate::DType::F32, 0.0), |sum| sum.sqrt())]
}

/// g x / norm; 0 where the norm is 0.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (norm, g) = (&vjp.results[0], vjp.cotangent());
    let zero = norm.like(0.0);
    let scale = norm.eq(&zero).select(&zero, &(g / norm));
    vjp.operands.iter().enumerate().map(|(i, x)| vjp.when(i, || (x.widen() * &scale).cast(x.dtype()))).collect()
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "global_norm",
    formula: "y = √(Σ x²) over all operands",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let norm = |_: &_, x: &[Tensor]| Vec::from_iter(global_norm(x));
        let three = || {
            vec![values::tensor([3, 4], -2.0, 2.0, 1), values::tensor([5], -2.0, 2.0, 2), values::floats([], &[0.5])]
        };
        vec![
            Sample::floats("three tensors", three(), norm),
            Sample::floats("zero", vec![values::floats([2], &[0.0, 0.0])], norm).not_smooth(),
            Sample::floats("the squares exceed f16", vec![values::floats([2], &[3e4, 4e4])], norm),
        ]
    },
};
