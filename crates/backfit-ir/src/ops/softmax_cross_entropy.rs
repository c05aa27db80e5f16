//! `softmax_cross_entropy(logits, target)`: the loss of every sample, −Σᵢ tᵢ log softmax(x)ᵢ over the last axis.
//!
//! logits: `[*, C]`, floats. target: integer class ids `[*]`, or probabilities `[*, C]` of the logits' dtype.
//! Result: `[*]`, f32 for half precision, else the logits' dtype. An id outside 0 … C − 1 stands for no class: loss 0, no gradient.
//! `label_smoothing` ε replaces t by (1 − ε) t + ε/C (Szegedy et al. 2016).
//! Nothing overflows: with z = x − max x the loss is log Σ eᶻ · Σ t − Σ t z. The gradient, softmax(x) · Σ t − t, has no logarithm.

use super::composite::{accepted, dtype, float, index_dtype, integer, number, rules, shape};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::op::Monoid;
use crate::shape::Type;

impl Tensor {
    /// The cross-entropy of every sample; these are the logits, the classes are the last axis.
    #[track_caller]
    pub fn softmax_cross_entropy(&self, target: &Tensor, label_smoothing: f64) -> Tensor {
        self.compose(&DEF, &[target], Attributes::new().with("label_smoothing", label_smoothing))
    }
}

/// Logits, their targets and the label smoothing.
pub fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    arity(types, 2)?;
    number(attributes, "label_smoothing", "between 0 and 1", |v| (0.0..=1.0).contains(&v))?;
    check_target(&types[0], &types[1], true)
}

/// Whether targets fit logits: ids, or probabilities where `soft` allows them.
pub fn check_target(logits: &Type, target: &Type, soft: bool) -> Result<(), String> {
    float("logits", logits)?;
    let Some((_, samples)) = logits.shape.split_last() else {
        return Err(format!("logits are {logits}; they must have the axes [*, classes]"));
    };
    if soft && target.dtype.is_float() {
        dtype("the target", target, logits.dtype)?;
        return shape("a target of probabilities", target, &logits.shape);
    }
    integer("the target", target)?;
    shape("a target of class ids", target, samples)
}

/// The smoothed target as probabilities.
fn probabilities(x: &Tensor, target: &Tensor, smoothing: f64) -> Tensor {
    let hard = !target.dtype().is_float();
    let t = if hard { target.one_hot(x.dim(-1), x.dtype()) } else { target.widen() };
    if smoothing == 0.0 { t } else { t * (1.0 - smoothing) + smoothing / x.dim(-1) as f64 }
}

/// `value` for every sample whose id is a class, else 0.
fn of_classes(value: &Tensor, target: &Tensor, classes: usize) -> Tensor {
    let ids = target.cast(index_dtype(target.dtype()));
    let valid = ids.ge(&ids.like(0.0)).and(&ids.lt(&ids.like(classes as f64)));
    valid.select(value, &value.like(0.0))
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, target) = (b.operands[0].widen(), &b.operands[1]);
    let smoothing = accepted(b.attributes.float("label_smoothing"));
    let z = &x - &x.reduce_keep(Monoid::Max, &[-1]);
    let log_sum = z.exp().sum(&[-1]).log();
    if target.dtype().is_float() {
        let t = probabilities(&x, target, smoothing);
        return vec![&log_sum * &t.sum(&[-1]) - (&t * &z).sum(&[-1])];
    }
    // Selected, not multiplied: the logit of a masked class may be −∞.
    let hit = target.one_hot(x.dim(-1), DType::Bool);
    let picked = hit.select(&z, &z.like(0.0)).sum(&[-1]);
    let loss = if smoothing == 0.0 {
        &log_sum - &picked
    } else {
        &log_sum - &picked * (1.0 - smoothing) - z.mean(&[-1]) * smoothing
    };
    vec![of_classes(&loss, target, x.dim(-1))]
}

/// To the logits: (softmax(x) Σ t − t) g. To probabilities: −(1 − ε) log softmax(x) · g.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (logits, target) = (&vjp.operands[0], &vjp.operands[1]);
    let smoothing = accepted(vjp.attributes.float("label_smoothing"));
    let (x, g, soft) = (logits.widen(), vjp.cotangent(), target.dtype().is_float());
    let to_logits = vjp.when(0, || {
        let (p, t) = (x.softmax(-1), probabilities(&x, target, smoothing));
        let slope = if soft { p * t.reduce_keep(Monoid::Sum, &[-1]) - t } else { p - t };
        let g = if soft { g.clone() } else { of_classes(g, target, x.dim(-1)) };
        (g.spread_over(&[-1], x.rank()) * slope).cast(logits.dtype())
    });
    let to_target = || (g.spread_over(&[-1], x.rank()) * (x.log_softmax(-1) * (smoothing - 1.0))).cast(target.dtype());
    vec![to_logits, (soft && vjp.wanted[1]).then(to_target)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "softmax_cross_entropy",
    formula: "y = −Σᵢ tᵢ log softmax(x)ᵢ over the last axis",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: || {
        let smoothed = |epsilon| move |_: &_, x: &[Tensor]| vec![x[0].softmax_cross_entropy(&x[1], epsilon)];
        let logits = || values::tensor([3, 4], -4.0, 4.0, 1);
        let ids = || values::indices([3], &[2, 0, 3]);
        let soft = || values::tensor([3, 4], 0.0, 0.5, 2);
        let far = values::floats([2, 3], &[1e4, -1e4, 0.0, -1e4, 9999.0, -1e4]);
        let masked = values::floats([1, 3], &[f64::NEG_INFINITY, 1.0, 2.0]);
        vec![
            Sample::floats("class ids", vec![logits(), ids()], smoothed(0.0)),
            Sample::floats("class ids, smoothed", vec![logits(), ids()], smoothed(0.125)),
            Sample::floats("probabilities", vec![logits(), soft()], smoothed(0.0)),
            Sample::floats("probabilities, smoothed", vec![logits(), soft()], smoothed(0.125)),
            Sample::floats(
                "tokens",
                vec![values::tensor([2, 3, 5], -4.0, 4.0, 1), values::indices([2, 3], &[0, 1, 2, 3, 4, 0])],
                smoothed(0.0),
            ),
            Sample::floats(
                "one sample",
                vec![values::tensor([4], -4.0, 4.0, 1), values::indices([], &[1])],
                smoothed(0.0),
            ),
            Sample::floats("far logits", vec![far, values::indices([2], &[1, 1])], smoothed(0.0)),
            Sample::floats("an id of no class", vec![logits(), values::indices([3], &[-1, 4, 0])], smoothed(0.0)),
            Sample::floats("masked class", vec![masked, values::indices([1], &[2])], smoothed(0.0)).not_smooth(),
        ]
    },
};
