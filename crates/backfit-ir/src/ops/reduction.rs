//! What the losses have in common: weights of samples, reductions, elementwise losses.

use super::composite::{accepted, float, given, shape, word};
use super::definition::{Body, OpDef, Sample, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Keyword;
use crate::shape::{Shape, Type};

/// How the losses of samples become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reduction {
    /// Σ w l / Σ w, each weight counted as often as it is repeated; without weights the mean.
    #[default]
    Mean,
    /// Σ w l.
    Sum,
    /// w l, element by element.
    None,
}

impl Keyword for Reduction {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Reduction::Mean, "mean"), (Reduction::Sum, "sum"), (Reduction::None, "none")];
}

/// The options of a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossOptions<'a> {
    /// One weight per sample, of any float dtype: its axes are the first ones of the loss, over the others it is repeated.
    /// A sample of weight 0 does not count, so a padded batch has the loss of its real samples.
    pub weights: Option<&'a Tensor>,
    /// How the losses of samples become one number.
    pub reduction: Reduction,
}

/// Whether weights fit losses of this shape.
pub fn check_weights(weights: Option<&Type>, losses: &[usize]) -> Result<(), String> {
    let Some(weights) = weights else { return Ok(()) };
    float("weights", weights)?;
    if losses.starts_with(&weights.shape) {
        return Ok(());
    }
    let losses = Shape::from(losses);
    Err(format!("weights are {weights}; their axes must be the first ones of the losses, whose shape is {losses}"))
}

/// Repeats weights, whose axes are the first ones of `shape`, to `shape`.
pub fn spread_weights(weights: &Tensor, shape: &Shape) -> Tensor {
    let mut dims = weights.shape().to_vec();
    dims.resize(shape.rank(), 1);
    weights.reshape(dims).broadcast_to(shape)
}

/// The weighted mean, sum or product of losses, which are of an accumulator's dtype.
pub fn reduce(losses: &Tensor, weights: Option<&Tensor>, reduction: Reduction) -> Tensor {
    let weights = weights.map(|w| spread_weights(&w.cast(losses.dtype()), losses.shape()));
    let weighted = weights.as_ref().map_or(losses.clone(), |w| losses * w);
    match (reduction, weights) {
        (Reduction::None, _) => weighted,
        (Reduction::Sum, _) => weighted.sum_all(),
        (Reduction::Mean, None) => weighted.mean_all(),
        (Reduction::Mean, Some(weights)) => weighted.sum_all() / weights.sum_all(),
    }
}

impl Tensor {
    /// Calls a loss on predictions and targets.
    #[track_caller]
    pub(crate) fn loss(&self, def: &'static OpDef, target: &Tensor, options: LossOptions, more: Attributes) -> Tensor {
        let operands = given(&[Some(target), options.weights]);
        self.compose(def, &operands, more.with("reduction", options.reduction.word()))
    }
}

/// The check of an elementwise loss: float predictions, targets of their shape and any dtype, perhaps weights.
pub fn check_elementwise(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    word::<Reduction>(attributes, "reduction")?;
    let (x, target) = match types {
        [x, target] | [x, target, _] => (x, target),
        _ => return Err(format!("it takes 2 or 3 operands, not {}", types.len())),
    };
    float("the prediction", x)?;
    shape("the target", target, &x.shape)?;
    check_weights(types.get(2), &x.shape)
}

/// The body of an elementwise loss from the loss of an element, in the accumulator's dtype.
pub fn elementwise(b: &Body, loss: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Vec<Tensor> {
    let x = b.operands[0].widen();
    let losses = loss(&x, &b.operands[1].cast(x.dtype()));
    vec![reduce(&losses, b.operands.get(2), accepted(word(b.attributes, "reduction")))]
}

/// Cases for an elementwise loss; targets lie in `low … high`.
pub fn elementwise_samples(low: f64, high: f64, apply: fn(&Tensor, &Tensor, LossOptions) -> Tensor) -> Vec<Sample> {
    let inputs = || vec![values::tensor([3, 4], -3.0, 3.0, 1), values::tensor([3, 4], low, high, 2)];
    let plain =
        move |reduction| move |_: &_, x: &[Tensor]| vec![apply(&x[0], &x[1], LossOptions { weights: None, reduction })];
    let weighted = move |reduction| {
        move |_: &_, x: &[Tensor]| vec![apply(&x[0], &x[1], LossOptions { weights: Some(&x[2]), reduction })]
    };
    let with = |weights| inputs().into_iter().chain([weights]).collect::<Vec<_>>();
    vec![
        Sample::floats("mean", inputs(), plain(Reduction::Mean)),
        Sample::floats("sum", inputs(), plain(Reduction::Sum)),
        Sample::floats("no reduction", inputs(), plain(Reduction::None)),
        Sample::floats(
            "weighted samples, one padded",
            with(values::floats([3], &[1.0, 0.0, 0.5])),
            weighted(Reduction::Mean),
        ),
        Sample::floats("weighted elements", with(values::tensor([3, 4], 0.25, 1.0, 3)), weighted(Reduction::Sum)),
        Sample::floats("weighted, no reduction", with(values::tensor([3], 0.25, 1.0, 3)), weighted(Reduction::None)),
        Sample::floats(
            "scalar",
            vec![values::floats([], &[0.75]), values::floats([], &[0.25])],
            plain(Reduction::Mean),
        ),
        Sample::floats(
            "far",
            vec![values::floats([2], &[200.0, -200.0]), values::floats([2], &[1.0, 0.0])],
            plain(Reduction::Mean),
        ),
    ]
}
