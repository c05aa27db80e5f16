//! `accuracy(logits, target)`: the share of samples whose largest logit is at the target; an f32 scalar.
//!
//! logits: `[*, C]`, floats. target: integer class ids `[*]`. Of equal logits the first counts.
//! weights: as in [`super::reduction`]: `Σ w [hit] / Σ w`.

use super::composite::{given, index_dtype, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::reduction::{Reduction, check_weights, reduce};
use super::softmax_cross_entropy::check_target;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::Type;

impl Tensor {
    /// The share of samples whose largest logit is at the target.
    #[track_caller]
    pub fn accuracy(&self, target: &Tensor) -> Tensor {
        self.accuracy_with(target, None)
    }

    /// [`accuracy`](Tensor::accuracy) with a weight per sample.
    #[track_caller]
    pub fn accuracy_with(&self, target: &Tensor, weights: Option<&Tensor>) -> Tensor {
        self.compose(&DEF, &given(&[Some(target), weights]), Attributes::new())
    }
}

fn check(types: &[Type], _: &Attributes) -> Result<(), String> {
    let (logits, target) = match types {
        [logits, target] | [logits, target, _] => (logits, target),
        _ => return Err(format!("it takes 2 or 3 operands, not {}", types.len())),
    };
    check_target(logits, target, false)?;
    check_weights(types.get(2), &target.shape)
}

fn body(b: &Body) -> Vec<Tensor> {
    let target = b.operands[1].cast(index_dtype(b.operands[1].dtype()));
    let found = b.operands[0].arg_max(-1).cast(target.dtype());
    vec![reduce(&found.eq(&target).cast(DType::F32), b.operands.get(2), Reduction::Mean)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "accuracy",
    formula: "y = mean [argmax logits = target]",
    kind: rules(check, body),
    derivative: Derivative::NotDifferentiable("it counts"),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let logits = || values::floats([4, 2], &[0.5, 1.0, 2.0, -1.0, 0.0, 0.0, -3.0, 4.0]);
        let ids = || values::indices([4], &[1, 1, 0, 1]);
        let plain = |_: &_, x: &[Tensor]| vec![x[0].accuracy(&x[1])];
        let weighted = |_: &_, x: &[Tensor]| vec![x[0].accuracy_with(&x[1], Some(&x[2]))];
        let padded = vec![logits(), ids(), values::floats([4], &[1.0, 1.0, 0.0, 0.0])];
        let tokens = vec![values::tensor([2, 3, 4], -2.0, 2.0, 1), values::indices([2, 3], &[0, 1, 2, 3, 0, 1])];
        vec![
            Sample::floats("samples and a tie", vec![logits(), ids()], plain).not_smooth(),
            Sample::floats("padded", padded, weighted).not_smooth(),
            Sample::floats("tokens", tokens, plain).not_smooth(),
        ]
    },
};
