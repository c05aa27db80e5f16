//! `layer_norm(x, weight?, bias?)`: x̂ · weight + bias with x̂ = (x − mean) / √(variance + ε) over the last axis.
//!
//! Ba et al. 2016. x: `[*, C]`, weight and bias: `[C]`, floats; dtypes as in [`super::norm`].
//! Results: y like x; mean and 1 / √(variance + ε), both `[*, 1]`, from which the gradient is computed.
//! The variance is the biased one, in two passes. Gradient with h = g · weight: (h − mean h − x̂ · mean(h x̂)) / √(variance + ε).

use super::composite::{accepted, epsilon, float, given, optional};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, Vjp, values};
use super::norm::{affine, check_affine, cotangent, cotangent_of, total};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// Rows over the last axis brought to mean 0 and variance 1, then scaled and shifted.
    #[track_caller]
    pub fn layer_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, epsilon: f64) -> Tensor {
        let attributes =
            Attributes::new().with("weight", weight.is_some()).with("bias", bias.is_some()).with("epsilon", epsilon);
        self.compose(&DEF, &given(&[weight, bias]), attributes)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    epsilon(attributes)?;
    let [weight, bias] = optional(types, attributes, 1, ["weight", "bias"])?;
    float("x", &types[0])?;
    let channels = types[0].shape.last().ok_or_else(|| format!("x is {}; it must have an axis", types[0]))?;
    check_affine(&[("weight", weight), ("bias", bias)], &[*channels])
}

fn body(b: &Body) -> Vec<Tensor> {
    let [weight, bias] = accepted(optional(b.operands, b.attributes, 1, ["weight", "bias"]));
    let x = b.operands[0].widen();
    let mean = x.mean_keep(&[-1]);
    let centered = &x - &mean;
    let rstd = ((&centered * &centered).mean_keep(&[-1]) + accepted(epsilon(b.attributes))).rsqrt();
    let y = affine(&centered * &rstd, weight, bias, Tensor::clone);
    vec![y.cast(b.operands[0].dtype()), mean, rstd]
}

fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let [weight, bias] = accepted(optional(vjp.operands, vjp.attributes, 1, ["weight", "bias"]));
    let (x, mean, rstd) = (&vjp.operands[0], &vjp.results[1], &vjp.results[2]);
    let normal = (x.widen() - mean) * rstd;
    let g = cotangent(vjp, 0, |g| g);
    let to_normal = g.as_ref().map(|g| affine(g.clone(), weight, None, Tensor::clone));
    let through = to_normal.map(|h| (&h - &h.mean_keep(&[-1]) - &normal * &(&h * &normal).mean_keep(&[-1])) * rstd);
    let channels = x.dim(-1).max(1) as f64;
    let to_mean = cotangent(vjp, 1, |g| g / channels).map(|g| g.broadcast_to(x.shape()));
    let to_rstd = cotangent(vjp, 2, |g| &normal * &(g * rstd * rstd * (-1.0 / channels)));
    let mut all = vec![total([through, to_mean, to_rstd]).map(|t| t.cast(x.dtype()))];
    all.extend(weight.map(|w| g.as_ref().map(|g| cotangent_of(w, g * &normal))));
    all.extend(bias.map(|b| g.as_ref().map(|g| cotangent_of(b, g.clone()))));
    all
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "layer_norm",
    formula: "y = (x − mean) / √(variance + ε) · weight + bias over the last axis",
    kind: Kind::Composite(Composite { results: 3, check, body, inference: None }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let x = || values::tensor([2, 3, 5], -4.0, 4.0, 1);
        let weight = || values::tensor([5], 0.5, 1.5, 2);
        let bias = || values::tensor([5], -1.0, 1.0, 3);
        let far = values::tensor([2, 5], 1000.0, 1001.0, 4);
        let constant = values::floats([1, 4], &[3.0; 4]);
        let all = |g: &crate::Graph, x: &[Tensor]| {
            let attributes = Attributes::new().with("weight", true).with("bias", true).with("epsilon", 1e-3);
            g.composite(&DEF, &[&x[0], &x[1], &x[2]], attributes)
        };
        vec![
            Sample::floats("weight and bias", vec![x(), weight(), bias()], |_, x| {
                vec![x[0].layer_norm(Some(&x[1]), Some(&x[2]), 1e-5)]
            }),
            Sample::floats("weight", vec![x(), weight()], |_, x| vec![x[0].layer_norm(Some(&x[1]), None, 1e-5)]),
            Sample::floats("bias", vec![x(), bias()], |_, x| vec![x[0].layer_norm(None, Some(&x[1]), 1e-5)]),
            Sample::floats("neither", vec![x()], |_, x| vec![x[0].layer_norm(None, None, 1e-5)]),
            Sample::floats("with its statistics", vec![x(), weight(), bias()], all),
            Sample::floats("far mean", vec![far], |_, x| vec![x[0].layer_norm(None, None, 1e-5)]),
            // The slope changes within √ε, too fast for differences.
            Sample::floats("constant row", vec![constant], |_, x| vec![x[0].layer_norm(None, None, 1e-5)]).not_smooth(),
            Sample::floats("no rows", vec![values::floats([0, 5], &[]), weight()], |_, x| {
                vec![x[0].layer_norm(Some(&x[1]), None, 1e-5)]
            }),
        ]
    },
};
