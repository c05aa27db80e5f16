//! `cross_entropy(logits, target)`: the mean over samples of −Σᵢ tᵢ log softmax(x)ᵢ. The classes are the last axis.
//!
//! Shapes, dtypes and label smoothing as in [`super::softmax_cross_entropy`], weights and reductions as in
//! [`super::reduction`]. Its gradient is (softmax(x) − t) · w / Σ w, without a logarithm.

use super::composite::{accepted, rules, word};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::reduction::{LossOptions, Reduction, check_weights, reduce};
use super::softmax_cross_entropy;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The options of [`Tensor::cross_entropy_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CrossEntropy<'a> {
    /// ε, between 0 and 1: targets become (1 − ε) t + ε/C.
    pub label_smoothing: f64,
    /// One weight per sample, of any float dtype; see [`LossOptions::weights`].
    pub weights: Option<&'a Tensor>,
    /// How the losses of samples become one number.
    pub reduction: Reduction,
}

impl Tensor {
    /// The mean cross-entropy of these logits `[*, C]` and class ids `[*]` or probabilities `[*, C]`.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor) -> Tensor {
        self.cross_entropy_with(target, CrossEntropy::default())
    }

    /// [`cross_entropy`](Tensor::cross_entropy) with label smoothing, weights and another reduction.
    #[track_caller]
    pub fn cross_entropy_with(&self, target: &Tensor, options: CrossEntropy) -> Tensor {
        let CrossEntropy { label_smoothing, weights, reduction } = options;
        let more = Attributes::new().with("label_smoothing", label_smoothing);
        self.loss(&DEF, target, LossOptions { weights, reduction }, more)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    word::<Reduction>(attributes, "reduction")?;
    if !(2..=3).contains(&types.len()) {
        return Err(format!("it takes 2 or 3 operands, not {}", types.len()));
    }
    softmax_cross_entropy::check(&types[..2], attributes)?;
    check_weights(types.get(2), &types[0].shape[..types[0].shape.rank() - 1])
}

fn body(b: &Body) -> Vec<Tensor> {
    let smoothing = accepted(b.attributes.float("label_smoothing"));
    let losses = b.operands[0].softmax_cross_entropy(&b.operands[1], smoothing);
    vec![reduce(&losses, b.operands.get(2), accepted(word(b.attributes, "reduction")))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "cross_entropy",
    formula: "y = mean −Σᵢ tᵢ log softmax(x)ᵢ",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let with = |label_smoothing, reduction| {
        move |_: &_, x: &[Tensor]| {
            vec![x[0].cross_entropy_with(&x[1], CrossEntropy { label_smoothing, weights: x.get(2), reduction })]
        }
    };
    let logits = || values::tensor([3, 4], -4.0, 4.0, 1);
    let ids = || values::indices([3], &[2, 0, 3]);
    let tokens = || vec![values::tensor([2, 3, 5], -4.0, 4.0, 1), values::indices([2, 3], &[0, 1, 2, 3, 4, 0])];
    let sequences = tokens().into_iter().chain([values::floats([2], &[1.0, 0.5])]).collect();
    let padded = vec![logits(), ids(), values::floats([3], &[1.0, 0.0, 0.5])];
    let far = vec![values::floats([2, 2], &[1e4, -1e4, 1e4, -1e4]), values::indices([2], &[0, 1])];
    vec![
        Sample::floats("mean", vec![logits(), ids()], with(0.0, Reduction::Mean)),
        Sample::floats("sum, smoothed", vec![logits(), ids()], with(0.125, Reduction::Sum)),
        Sample::floats("no reduction", vec![logits(), ids()], with(0.0, Reduction::None)),
        Sample::floats("weighted, one padded", padded, with(0.0, Reduction::Mean)),
        Sample::floats(
            "probabilities",
            vec![logits(), values::tensor([3, 4], 0.0, 0.5, 2)],
            with(0.0, Reduction::Mean),
        ),
        Sample::floats("tokens", tokens(), with(0.0, Reduction::Mean)),
        Sample::floats("weighted sequences", sequences, with(0.0, Reduction::Mean)),
        Sample::floats("far logits", far, with(0.0, Reduction::Mean)),
    ]
}
