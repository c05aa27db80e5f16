//! `lora_linear(x, weight, a, b, bias?) = x · weightᵀ + scale · (x · aᵀ) · bᵀ + bias` over the last axis.
//!
//! Hu et al. 2021: a linear layer and a low-rank correction of its weight. x: `[…, in]`, weight: `[out, in]`, a: `[rank, in]`,
//! b: `[out, rank]`, bias: `[out]`, result: `[…, out]`; all of one float dtype.

use super::composite::{accepted, dtype, given, number, rank, rules, shape};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::linear;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// [`linear`](Tensor::linear) with the weight `weight + scale · b · a`, which is never formed.
    #[track_caller]
    pub fn lora_linear(&self, weight: &Tensor, [a, b]: [&Tensor; 2], bias: Option<&Tensor>, scale: f64) -> Tensor {
        let others = given(&[Some(weight), Some(a), Some(b), bias]);
        self.compose(&DEF, &others, Attributes::new().with("scale", scale))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "scale", "finite", f64::is_finite)?;
    let (x, weight, a, b, bias) = match types {
        [x, weight, a, b] => (x, weight, a, b, None),
        [x, weight, a, b, bias] => (x, weight, a, b, Some(bias)),
        _ => return Err(format!("it takes 4 or 5 operands, not {}", types.len())),
    };
    linear::check(&[Some(x), Some(weight), bias].into_iter().flatten().cloned().collect::<Vec<_>>())?;
    rank("a", a, 2, "[rank, in]")?;
    for (name, ty, dims) in [("a", a, [a.shape[0], weight.shape[1]]), ("b", b, [weight.shape[0], a.shape[0]])] {
        dtype(name, ty, x.dtype)?;
        shape(name, ty, &dims)?;
    }
    Ok(())
}

fn body(o: &Body) -> Vec<Tensor> {
    let (x, weight, a, b) = (&o.operands[0], &o.operands[1], &o.operands[2], &o.operands[3]);
    let correction = x.linear(a, None).linear(b, None) * accepted(o.attributes.float("scale"));
    vec![x.linear(weight, o.operands.get(4)) + correction]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "lora_linear",
    formula: "y = x · weightᵀ + scale · (x · aᵀ) · bᵀ + bias",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let inputs = |lead: &[usize]| {
            let t = |dims: &[usize], seed| values::tensor(dims, -2.0, 2.0, seed);
            vec![t(&[lead, &[4]].concat(), 1), t(&[5, 4], 2), t(&[2, 4], 3), t(&[5, 2], 4)]
        };
        let adapted = |_: &_, x: &[Tensor]| vec![x[0].lora_linear(&x[1], [&x[2], &x[3]], x.get(4), 0.5)];
        let mut biased = inputs(&[3]);
        biased.push(values::tensor([5], -2.0, 2.0, 5));
        vec![
            Sample::floats("bias", biased, adapted),
            Sample::floats("no bias", inputs(&[2, 3]), adapted),
            Sample::floats("a vector", inputs(&[]), adapted),
        ]
    },
};
