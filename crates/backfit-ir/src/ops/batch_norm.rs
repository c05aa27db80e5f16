//! `batch_norm(x, weight, bias, running_mean, running_var, mask?)`: channels brought to mean 0 and variance 1 over the batch.
//!
//! Ioffe & Szegedy 2015; PyTorch: `BatchNorm1d` … `3d`. x: `[N, C, *]`, weight, bias and running statistics: `[C]`,
//! mask: `[N]` with 1 for a real and 0 for a padded row; floats, dtypes as in [`super::norm`].
//! In training the statistics are those of the real rows and all positions, n elements per channel, in two passes;
//! running ← (1 − momentum) · running + momentum · batch, with the unbiased variance (the biased one where n ≤ 1).
//! Where no row is real, the running statistics stay. Padded rows count as zeros in y and in gradients, whatever they hold, NaN
//! included.
//! Outside training the running statistics are used and returned as they are, and the mask is ignored.
//! Results: y like x; running_mean, running_var like before; mean and 1 / √(variance + ε), `[C]`, for the gradient.

mod gradient;

use super::composite::{accepted, epsilon, float, given, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::norm::{affine, check_affine};
use super::reduction::{check_weights, spread_weights};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::literal::Literal;
use crate::shape::Type;

/// The results of [`Tensor::batch_norm`].
#[derive(Clone, Debug)]
pub struct BatchNorm {
    /// The normalised tensor.
    pub y: Tensor,
    /// The new running mean, with which to update the state.
    pub running_mean: Tensor,
    /// The new running variance, with which to update the state.
    pub running_var: Tensor,
}

/// The parameters of [`Tensor::batch_norm`], each `[C]`.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormParameters<'a> {
    /// The scale.
    pub weight: &'a Tensor,
    /// The shift.
    pub bias: &'a Tensor,
    /// The running mean; starts at 0.
    pub running_mean: &'a Tensor,
    /// The running variance; starts at 1.
    pub running_var: &'a Tensor,
}

impl Tensor {
    /// `[N, C, *]` normalised per channel over the batch, then scaled and shifted. `mask` is 1 for real and 0 for padded rows.
    /// PyTorch's defaults are `momentum` 0.1 and `epsilon` 1e-5.
    #[track_caller]
    pub fn batch_norm(
        &self,
        parameters: BatchNormParameters,
        mask: Option<&Tensor>,
        momentum: f64,
        epsilon: f64,
    ) -> BatchNorm {
        let BatchNormParameters { weight, bias, running_mean, running_var } = parameters;
        let operands = given(&[Some(self), Some(weight), Some(bias), Some(running_mean), Some(running_var), mask]);
        let attributes = Attributes::new().with("momentum", momentum).with("epsilon", epsilon);
        let mut results = self.graph().composite(&DEF, &operands, attributes).into_iter();
        let mut next = || results.next().unwrap_or_else(|| self.clone());
        BatchNorm { y: next(), running_mean: next(), running_var: next() }
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    epsilon(attributes)?;
    number(attributes, "momentum", "between 0 and 1", |v| (0.0..=1.0).contains(&v))?;
    if !(5..=6).contains(&types.len()) {
        return Err(format!("it takes 5 or 6 operands, not {}", types.len()));
    }
    let x = &types[0];
    float("x", x)?;
    let &[rows, channels, ..] = x.shape.dims() else {
        return Err(format!("x is {x}; it must have the axes [N, C, *]"));
    };
    let names = ["weight", "bias", "running_mean", "running_var"];
    let parameters: Vec<_> = names.into_iter().zip(types[1..5].iter().map(Some)).collect();
    check_affine(&parameters, &[channels])?;
    check_weights(types.get(5), &[rows])
}

/// The real elements of a batch, per channel. Their number is kept as two factors: rows times positions soon exceed
/// what f16 holds.
struct Batch {
    /// True for elements of real rows, where there is a mask.
    mask: Option<Tensor>,
    /// How many rows are real, at least 1; a scalar.
    rows: Tensor,
    /// How many elements a row has, at least 1.
    positions: f64,
    /// The unbiased variance per biased one; a scalar.
    unbiasing: Tensor,
    /// The momentum, 0 where there are no real elements; a scalar.
    momentum: Tensor,
}

impl Batch {
    /// Of x in the dtype of the computation.
    fn new(x: &Tensor, mask: Option<&Tensor>, attributes: &Attributes) -> Self {
        let positions: usize = x.shape()[2..].iter().product();
        let scalar = |v: f64| x.graph().scalar(x.dtype(), v);
        let real = mask.map(|mask| mask.ne(&mask.like(0.0)));
        let rows = match &real {
            Some(real) => real.cast(x.dtype()).sum_all(),
            None => scalar(x.dim(0) as f64),
        };
        let momentum = if positions > 0 { accepted(attributes.float("momentum")) } else { 0.0 };
        let positions = positions.max(1) as f64;
        let one = scalar(1.0);
        let momentum = rows.minimum(&one) * momentum;
        let rows = rows.maximum(&one);
        // With n elements n / (n − 1), and 1 for a single one.
        let others = 1.0 - rows.reciprocal() / positions;
        Batch {
            mask: real.map(|real| spread_weights(&real, x.shape())),
            unbiasing: others.gt(&scalar(0.0)).select(&others, &one).reciprocal(),
            momentum,
            rows,
            positions,
        }
    }

    /// 0 in padded rows.
    fn real(&self, x: &Tensor) -> Tensor {
        self.mask.as_ref().map_or(x.clone(), |mask| mask.select(x, &x.like(0.0)))
    }

    /// The sum over all elements per real element; means of rows first, so that no sum grows with the number of elements.
    fn share(&self, x: &Tensor) -> Tensor {
        let positions: Vec<i64> = (2..x.rank() as i64).collect();
        (x.sum(&positions) / self.positions).sum(&[0]) / &self.rows
    }
}

/// The sum over all axes but that of channels.
fn per_channel(x: &Tensor) -> Tensor {
    let axes: Vec<i64> = (0..x.rank() as i64).filter(|&a| a != 1).collect();
    x.sum(&axes)
}

/// y from x, the statistics, weight and bias.
fn normalise(b: &Body, centered: &Tensor, rstd: &Tensor) -> Tensor {
    let channels = |t: &Tensor| t.as_channels(centered.rank());
    let normal = centered * channels(rstd);
    affine(normal, Some(&b.operands[1]), Some(&b.operands[2]), channels).cast(b.operands[0].dtype())
}

fn training(b: &Body) -> Vec<Tensor> {
    let x = b.operands[0].widen();
    let batch = Batch::new(&x, b.operands.get(5), b.attributes);
    let x = batch.real(&x);
    let mean = batch.share(&x);
    let centered = &x - mean.as_channels(x.rank());
    let variance = batch.share(&batch.real(&(&centered * &centered)));
    let rstd = (&variance + accepted(epsilon(b.attributes))).rsqrt();
    let running = |old: &Tensor, new: &Tensor| {
        (old.cast(x.dtype()) * (1.0 - &batch.momentum) + new * &batch.momentum).cast(old.dtype())
    };
    vec![
        normalise(b, &centered, &rstd),
        running(&b.operands[3], &mean),
        running(&b.operands[4], &(&variance * &batch.unbiasing)),
        mean,
        rstd,
    ]
}

fn inference(b: &Body) -> Vec<Tensor> {
    let x = b.operands[0].widen();
    let (mean, variance) = (b.operands[3].cast(x.dtype()), b.operands[4].cast(x.dtype()));
    let rstd = (variance + accepted(epsilon(b.attributes))).rsqrt();
    let y = normalise(b, &(&x - mean.as_channels(x.rank())), &rstd);
    vec![y, b.operands[3].clone(), b.operands[4].clone(), mean, rstd]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "batch_norm",
    formula: "y = (x − mean) / √(variance + ε) · weight + bias per channel",
    kind: Kind::Composite(Composite { results: 5, check, body: training, inference: Some(inference) }),
    derivative: Derivative::Rule(gradient::vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let norm = |x: &[Tensor], mask: Option<&Tensor>| {
        let (weight, bias, running_mean, running_var) = (&x[1], &x[2], &x[3], &x[4]);
        let out = x[0].batch_norm(BatchNormParameters { weight, bias, running_mean, running_var }, mask, 0.25, 1e-5);
        vec![out.y, out.running_mean, out.running_var]
    };
    let plain = move |_: &_, x: &[Tensor]| norm(x, None);
    let masked = move |mask: &[f32]| {
        let mask = Literal::from_f32([mask.len()], mask);
        move |g: &crate::Graph, x: &[Tensor]| norm(x, Some(&g.constant(mask.clone())))
    };
    let inputs = |shape: &[usize], low: f64| {
        let channels = |low, high, seed| values::tensor([shape[1]], low, high, seed);
        let x = values::tensor(shape, low, low + 8.0, 1);
        vec![x, channels(0.5, 1.5, 2), channels(-1.0, 1.0, 3), channels(-1.0, 1.0, 4), channels(0.5, 2.0, 5)]
    };
    vec![
        Sample::floats("features", inputs(&[4, 3], -4.0), plain),
        Sample::floats("images", inputs(&[2, 3, 2, 2], -4.0), plain),
        Sample::floats("far mean", inputs(&[3, 2, 2], 1000.0), plain),
        Sample::floats("padded rows", inputs(&[4, 2, 3], -4.0), masked(&[1.0, 1.0, 0.0, 1.0])),
        Sample::floats("no real rows", inputs(&[2, 2], -4.0), masked(&[0.0, 0.0])),
        Sample::floats("one element", inputs(&[1, 2], -4.0), plain),
    ]
}
