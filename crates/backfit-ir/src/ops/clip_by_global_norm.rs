//! `clip_by_global_norm(x…)`: every tensor times min(1, max_norm / (norm + 1e-6)), and norm = √(Σ x²) over all of them.
//!
//! Pascanu et al. 2013; PyTorch: `clip_grad_norm_`. Operands: one or more of one float dtype.
//! Results: the tensors, then the norm (f32 for half precision). Where an element is not finite, neither is the norm.

use super::composite::{accepted, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::global_norm::{self, global_norm};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The clipped tensors, and their norm before; it is `None` where there are no tensors.
#[track_caller]
pub fn clip_by_global_norm(tensors: &[Tensor], max_norm: f64) -> (Vec<Tensor>, Option<Tensor>) {
    let Some(first) = tensors.first() else { return (vec![], None) };
    let operands: Vec<&Tensor> = tensors.iter().collect();
    let mut results = first.graph().composite(&DEF, &operands, Attributes::new().with("max_norm", max_norm));
    let norm = results.pop();
    let poison = tensors.iter().skip(results.len()).map(|x| x.graph().poison(x.ty().clone()));
    results.extend(poison.collect::<Vec<_>>());
    (results, norm)
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "max_norm", "positive", |v| v > 0.0)?;
    global_norm::check(types, attributes)
}

fn body(b: &Body) -> Vec<Tensor> {
    let Some(norm) = global_norm(b.operands) else { return vec![] };
    let max = accepted(b.attributes.float("max_norm"));
    let scale = (norm.like(max) / (&norm + 1e-6)).minimum(&norm.like(1.0));
    let clipped = b.operands.iter().map(|x| (x.widen() * &scale).cast(x.dtype()));
    clipped.chain([norm.clone()]).collect()
}

/// The definition. One result more than operands.
pub static DEF: OpDef = OpDef {
    name: "clip_by_global_norm",
    formula: "y = x · min(1, max_norm / (√(Σ x²) + 1e-6))",
    kind: Kind::Composite(Composite { results: 1, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let clip = |_: &_, x: &[Tensor]| {
            let (clipped, norm) = clip_by_global_norm(x, 1.0);
            clipped.into_iter().chain(norm).collect()
        };
        let three =
            [values::tensor([3, 4], -2.0, 2.0, 1), values::tensor([5], -2.0, 2.0, 2), values::floats([], &[0.5])];
        vec![
            Sample::floats("clipped", three.to_vec(), clip),
            Sample::floats("below the limit", vec![values::floats([2], &[0.25, -0.5])], clip),
            Sample::floats("the squares exceed f16", vec![values::floats([2], &[3e4, 4e4])], clip),
            Sample::floats("zero", vec![values::floats([2], &[0.0, 0.0])], clip).not_smooth(),
        ]
    },
};
