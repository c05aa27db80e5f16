//! `linear(x, weight, bias) = x · weightᵀ + bias` over the last axis.
//!
//! x: `[…, in]`, weight: `[out, in]` (PyTorch's layout), bias: `[out]`, result: `[…, out]`; all of one float dtype.

use super::composite::{dtype, float, given, rank, rules, shape};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// x · weightᵀ + bias over the last axis; `weight` is `[out, in]`, `bias` `[out]`.
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        self.compose(&DEF, &given(&[Some(weight), bias]), Attributes::new())
    }
}

/// Checks x, weight and perhaps a bias.
pub fn check(types: &[Type]) -> Result<(), String> {
    let (x, weight, bias) = match types {
        [x, weight] => (x, weight, None),
        [x, weight, bias] => (x, weight, Some(bias)),
        _ => return Err(format!("it takes 2 or 3 operands, not {}", types.len())),
    };
    float("x", x)?;
    rank("weight", weight, 2, "[out, in]")?;
    dtype("weight", weight, x.dtype)?;
    match x.shape.last() {
        Some(&features) if features == weight.shape[1] => {}
        Some(features) => {
            return Err(format!("x {x} has {features} features, weight {weight} takes {}", weight.shape[1]));
        }
        None => return Err(format!("x is {x}; it must have the axes [*, in]")),
    }
    match bias {
        Some(bias) => dtype("bias", bias, x.dtype).and_then(|()| shape("bias", bias, &weight.shape[..1])),
        None => Ok(()),
    }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, weight) = (&b.operands[0], &b.operands[1]);
    let product = x.dot_general(weight, &[], &[(x.rank() - 1, 1)]);
    vec![b.operands.get(2).map_or(product.clone(), |bias| &product + bias)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "linear",
    formula: "y = x · weightᵀ + bias",
    kind: rules(|types, _| check(types), body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: || {
        let weight = || values::tensor([5, 4], -2.0, 2.0, 2);
        let bias = || values::tensor([5], -2.0, 2.0, 3);
        let x = |shape: &[usize]| values::tensor(shape, -2.0, 2.0, 1);
        let with = |_: &_, x: &[Tensor]| vec![x[0].linear(&x[1], Some(&x[2]))];
        let without = |_: &_, x: &[Tensor]| vec![x[0].linear(&x[1], None)];
        vec![
            Sample::floats("batch", vec![x(&[3, 4]), weight(), bias()], with),
            Sample::floats("no bias", vec![x(&[3, 4]), weight()], without),
            Sample::floats("one row", vec![x(&[4]), weight(), bias()], with),
            Sample::floats("tokens", vec![x(&[2, 3, 4]), weight(), bias()], with),
            Sample::floats("no rows", vec![x(&[0, 4]), weight(), bias()], with),
        ]
    },
};
