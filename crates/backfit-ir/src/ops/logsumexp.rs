//! `logsumexp(x) = log Σ eˣ` over axes, which vanish; over floats.
//!
//! The largest element is subtracted first, so nothing overflows. Half precision is computed in f32.

use super::composite::{accepted, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::mean::check;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Monoid;

impl Tensor {
    /// log Σ eˣ over axes, negative from the end, which vanish. −∞ where every element is −∞, +∞ where one is +∞.
    #[track_caller]
    pub fn logsumexp(&self, axes: &[i64]) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("axes", axes.to_vec()))
    }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, axes) = (b.operands[0].widen(), accepted(b.attributes.ints("axes")));
    let max = x.reduce_keep(Monoid::Max, &axes);
    let shift = max.is_finite().select(&max, &max.like(0.0));
    let sum = (&x - &shift).exp().sum(&axes);
    vec![(sum.log() + shift.reshape(sum.shape())).cast(b.operands[0].dtype())]
}

/// g · e^(x − y)
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (x, axes) = (vjp.operands[0].widen(), accepted(vjp.attributes.ints("axes")));
    let spread = |t: &Tensor| t.widen().spread_over(&axes, x.rank());
    let (y, g) = (spread(&vjp.results[0]), spread(vjp.cotangent()));
    vec![Some((&g * &(&x - &y).exp()).cast(vjp.operands[0].dtype()))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "logsumexp",
    formula: "y = log Σ eˣ over the axes",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(8.0),
    onnx: &["ReduceLogSumExp"],
    samples: || {
        let over = |axes: &'static [i64]| move |_: &_, x: &[Tensor]| vec![x[0].logsumexp(axes)];
        let cube = || vec![values::tensor([2, 5, 3], -4.0, 4.0, 1)];
        let infinite = values::floats([2, 2], &[f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, 0.0]);
        vec![
            Sample::floats("last axis", cube(), over(&[-1])),
            Sample::floats("first and last", cube(), over(&[0, 2])),
            Sample::floats("all", cube(), over(&[0, 1, 2])),
            Sample::floats("far logits", vec![values::floats([2, 2], &[1e4, 9999.0, -1e4, -9999.0])], over(&[1])),
            Sample::floats("infinite", vec![infinite], over(&[1])).not_smooth(),
            Sample::floats("danger values", vec![values::danger()], over(&[0])).not_smooth(),
        ]
    },
};
