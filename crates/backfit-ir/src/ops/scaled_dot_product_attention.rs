//! `scaled_dot_product_attention(q, k, v, mask?) = softmax(scale · q · kᵀ + mask) · v`.
//!
//! Vaswani et al. 2017; PyTorch: the function of this name. q: `[B, H, S, D]`, k: `[B, K, T, D]`, v: `[B, K, T, E]`, of one
//! float dtype; result: `[B, H, S, E]`. K divides H: query head h reads key and value head h / (H / K) (Ainslie et al. 2023).
//! mask: floats that broadcast to `[B, H, S, T]`, added to the scores; a row of −∞ gives a row of zeros.
//! `causal`: query i reads keys 0 … i only.

use super::composite::{accepted, dtype, float, given, number, rank, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::broadcast_shape;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::op::Monoid;
use crate::shape::{Shape, Type};

/// The options of [`Tensor::scaled_dot_product_attention`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Added to the scores; broadcasts to `[B, H, S, T]`.
    pub mask: Option<&'a Tensor>,
    /// Query i reads keys 0 … i only.
    pub causal: bool,
    /// What scores are multiplied by; 1/√D where it is not given.
    pub scale: Option<f64>,
}

impl Tensor {
    /// The attention of these queries `[B, H, S, D]` to keys `[B, K, T, D]` and values `[B, K, T, E]`.
    #[track_caller]
    pub fn scaled_dot_product_attention(&self, key: &Tensor, value: &Tensor, options: Attention) -> Tensor {
        let scale = options.scale.unwrap_or(1.0 / (self.dim(-1) as f64).sqrt());
        let attributes = Attributes::new().with("causal", options.causal).with("scale", scale);
        self.compose(&DEF, &given(&[Some(key), Some(value), options.mask]), attributes)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    attributes.bool("causal")?;
    number(attributes, "scale", "finite", f64::is_finite)?;
    let (q, k, v) = match types {
        [q, k, v] | [q, k, v, _] => (q, k, v),
        _ => return Err(format!("it takes 3 or 4 operands, not {}", types.len())),
    };
    float("the query", q)?;
    for (name, ty, axes) in [("query", q, "[B, H, S, D]"), ("key", k, "[B, K, T, D]"), ("value", v, "[B, K, T, E]")] {
        rank(&format!("the {name}"), ty, 4, axes)?;
        dtype(&format!("the {name}"), ty, q.dtype)?;
    }
    let same = q.shape[0] == k.shape[0] && k.shape[..3] == v.shape[..3] && q.shape[3] == k.shape[3];
    if !same {
        return Err(format!("query {q}, key {k} and value {v} must be [B, H, S, D], [B, K, T, D] and [B, K, T, E]"));
    }
    if k.shape[1] == 0 || q.shape[1] % k.shape[1] != 0 {
        return Err(format!("the {} heads of the key do not divide the {} heads of the query", k.shape[1], q.shape[1]));
    }
    let Some(mask) = types.get(3) else { return Ok(()) };
    float("the mask", mask)?;
    let scores = Shape::from([q.shape[0], q.shape[1], q.shape[2], k.shape[2]]);
    let fits = broadcast_shape(&mask.shape, &scores).as_ref() == Ok(&scores);
    if fits { Ok(()) } else { Err(format!("the mask is {mask}; it must broadcast to the scores' shape {scores}")) }
}

/// Scores `[B, K, H/K, S, T]`, from which masked and later keys are excluded.
fn scores(b: &Body, q: &Tensor, k: &Tensor) -> Tensor {
    let raw = q.dot_general(k, &[(0, 0), (1, 1)], &[(4, 3)]);
    let &[batch, kv, group, queries, keys] = raw.shape().dims() else { return raw };
    let masked = match b.operands.get(3) {
        Some(mask) => {
            let whole = mask.cast(raw.dtype()).broadcast_to([batch, kv * group, queries, keys]);
            &raw + &whole.reshape(raw.shape())
        }
        None => raw,
    };
    if !accepted(b.attributes.bool("causal")) {
        return masked;
    }
    let position = |axis| b.graph.iota(DType::I32, [queries, keys], axis);
    let earlier = position(1).le(&position(0)).broadcast_to(masked.shape());
    earlier.select(&masked, &masked.like(f64::NEG_INFINITY))
}

fn body(b: &Body) -> Vec<Tensor> {
    let (q, k, v) = (&b.operands[0], &b.operands[1], &b.operands[2]);
    let (kv, group) = (k.dim(1), q.dim(1) / k.dim(1));
    // Scaled before the product, so that half precision does not overflow.
    let scaled = q * accepted(b.attributes.float("scale"));
    let q_grouped = scaled.reshape([q.dim(0), kv, group, q.dim(2), q.dim(3)]);
    let scores = scores(b, &q_grouped, k);
    let weights = if b.operands.len() > 3 { guarded_softmax(&scores) } else { scores.softmax(-1) };
    let out = weights.dot_general(v, &[(0, 0), (1, 1)], &[(4, 2)]);
    vec![out.reshape([q.dim(0), q.dim(1), q.dim(2), v.dim(3)])]
}

/// Softmax over the last axis; zeros, and no gradient, for rows of −∞.
fn guarded_softmax(scores: &Tensor) -> Tensor {
    let max = scores.reduce_keep(Monoid::Max, &[-1]);
    let dead = max.eq(&max.like(f64::NEG_INFINITY)).broadcast_to(scores.shape());
    let zero = scores.like(0.0);
    dead.select(&zero, &dead.select(&zero, scores).softmax(-1))
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "scaled_dot_product_attention",
    formula: "y = softmax(scale · q · kᵀ + mask) · v",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(64.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let attend = |causal, scale| {
        move |_: &_, x: &[Tensor]| {
            vec![x[0].scaled_dot_product_attention(&x[1], &x[2], Attention { mask: x.get(3), causal, scale })]
        }
    };
    let inputs = |q: [usize; 4], k: [usize; 4], value: usize| {
        let v = [k[0], k[1], k[2], value];
        vec![values::tensor(q, -2.0, 2.0, 1), values::tensor(k, -2.0, 2.0, 2), values::tensor(v, -2.0, 2.0, 3)]
    };
    let masked = |mask| inputs([1, 2, 2, 3], [1, 2, 3, 3], 2).into_iter().chain([mask]).collect::<Vec<_>>();
    let dead = values::floats([2, 3], &[f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, 0.5, -1.0]);
    vec![
        Sample::floats("plain", inputs([1, 2, 3, 4], [1, 2, 5, 4], 3), attend(false, None)),
        Sample::floats("causal", inputs([2, 1, 4, 3], [2, 1, 4, 3], 3), attend(true, None)),
        Sample::floats("grouped heads, causal", inputs([1, 4, 3, 2], [1, 2, 3, 2], 2), attend(true, Some(0.5))),
        Sample::floats("mask", masked(values::tensor([2, 1, 3], -2.0, 2.0, 4)), attend(false, None)),
        Sample::floats("a query that may read nothing", masked(dead), attend(false, None)).not_smooth(),
        Sample::floats("far scores", inputs([1, 1, 2, 2], [1, 1, 2, 2], 2), attend(false, Some(300.0))).not_smooth(),
    ]
}
