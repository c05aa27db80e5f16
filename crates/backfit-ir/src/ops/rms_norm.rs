//! `rms_norm(x, weight?)`: x / √(mean x² + ε) · weight over the last axis.
//!
//! Zhang & Sennrich 2019. x: `[*, C]`, weight: `[C]`, floats; dtypes as in [`super::norm`].
//! Results: y like x; 1 / √(mean x² + ε), `[*, 1]`, from which the gradient is computed.
//! Gradient with h = g · weight and x̂ = x / √(mean x² + ε): (h − x̂ · mean(h x̂)) / √(mean x² + ε).

use super::composite::{accepted, epsilon, float, given};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, Vjp, values};
use super::norm::{affine, check_affine, cotangent, cotangent_of, total};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// Rows over the last axis brought to root mean square 1, then scaled.
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Tensor>, epsilon: f64) -> Tensor {
        self.compose(&DEF, &given(&[weight]), Attributes::new().with("epsilon", epsilon))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    epsilon(attributes)?;
    let (x, weight) = match types {
        [x] => (x, None),
        [x, weight] => (x, Some(weight)),
        _ => return Err(format!("it takes 1 or 2 operands, not {}", types.len())),
    };
    float("x", x)?;
    let channels = x.shape.last().ok_or_else(|| format!("x is {x}; it must have an axis"))?;
    check_affine(&[("weight", weight)], &[*channels])
}

fn body(b: &Body) -> Vec<Tensor> {
    let x = b.operands[0].widen();
    let rrms = ((&x * &x).mean_keep(&[-1]) + accepted(epsilon(b.attributes))).rsqrt();
    let y = affine(&x * &rrms, b.operands.get(1), None, Tensor::clone);
    vec![y.cast(b.operands[0].dtype()), rrms]
}

fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (x, weight, rrms) = (&vjp.operands[0], vjp.operands.get(1), &vjp.results[1]);
    let normal = x.widen() * rrms;
    let g = cotangent(vjp, 0, |g| g);
    let to_normal = g.as_ref().map(|g| affine(g.clone(), weight, None, Tensor::clone));
    let through = to_normal.map(|h| (&h - &normal * &(&h * &normal).mean_keep(&[-1])) * rrms);
    let channels = x.dim(-1).max(1) as f64;
    let to_rrms = cotangent(vjp, 1, |g| &normal * &(g * rrms * rrms * (-1.0 / channels)));
    let mut all = vec![total([through, to_rrms]).map(|t| t.cast(x.dtype()))];
    all.extend(weight.map(|w| g.map(|g| cotangent_of(w, g * &normal))));
    all
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "rms_norm",
    formula: "y = x / √(mean x² + ε) · weight over the last axis",
    kind: Kind::Composite(Composite { results: 2, check, body, inference: None }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let norm = |_: &_, x: &[Tensor]| vec![x[0].rms_norm(x.get(1), 1e-5)];
        let all = |g: &crate::Graph, x: &[Tensor]| {
            g.composite(&DEF, &[&x[0], &x[1]], Attributes::new().with("epsilon", 1e-3))
        };
        let x = || values::tensor([2, 3, 5], -4.0, 4.0, 1);
        let weight = || values::tensor([5], 0.5, 1.5, 2);
        vec![
            Sample::floats("weight", vec![x(), weight()], norm),
            Sample::floats("no weight", vec![x()], norm),
            Sample::floats("with its statistic", vec![x(), weight()], all),
            Sample::floats("the squares exceed f16", vec![values::floats([2], &[3e3, -4e3])], norm),
            // The slope changes within √ε, too fast for differences.
            Sample::floats("zero row", vec![values::floats([1, 3], &[0.0; 3])], norm).not_smooth(),
        ]
    },
};
