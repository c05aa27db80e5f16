//! Optimizers on lists of tensors, inside any graph.

use super::{Adafactor, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd, Updated};
use backfit_ir::Tensor;

/// A step of any optimizer on weights with these states (the tensors of [`Optimizer::slots`] that each weight has) and
/// gradients; `hypers` are the scalars of [`Optimizer::hypers`]. What becomes of the results is the graph's business.
///
/// ```
/// use backfit_grad::{Adam, adam_step, gradients};
/// use backfit_ir::{DType, Graph, Init, Type};
/// let g = Graph::new();
/// let ty = Type::new(DType::F32, [3]);
/// let [w, m, v] = ["w", "m", "v"].map(|name| g.state(name, ty.clone(), Init::ZEROS));
/// let hypers = ["learning_rate", "bias_correction1", "bias_correction2"].map(|name| g.hyper(name, DType::F32));
/// let loss = (&w - &g.input("x", DType::F32, [3])).square().sum_all();
/// let gradient = gradients(&loss, &[&w])?;
/// let new = adam_step(&Adam::new(1e-3), &[w.clone()], &[vec![m, v]], &gradient, &hypers);
/// g.update(&w, &new[0].weight);
/// assert_eq!(new[0].slots.len(), 2);
/// # g.finish()?;
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[track_caller]
pub fn optimizer_step(
    optimizer: &dyn Optimizer,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    let all = weights.iter().zip(slots).zip(gradients);
    all.map(|((weight, slots), gradient)| {
        let hypers: Vec<Tensor> = hypers.iter().map(|hyper| hyper.cast(weight.dtype())).collect();
        optimizer.update(weight, slots, gradient, &hypers)
    })
    .collect()
}

/// [`optimizer_step`] of [`Sgd`].
#[track_caller]
pub fn sgd_step(
    rule: &Sgd,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}

/// [`optimizer_step`] of [`Adam`].
#[track_caller]
pub fn adam_step(
    rule: &Adam,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}

/// [`optimizer_step`] of [`AdamW`].
#[track_caller]
pub fn adamw_step(
    rule: &AdamW,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}

/// [`optimizer_step`] of [`RmsProp`].
#[track_caller]
pub fn rmsprop_step(
    rule: &RmsProp,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}

/// [`optimizer_step`] of [`Lion`].
#[track_caller]
pub fn lion_step(
    rule: &Lion,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}

/// [`optimizer_step`] of [`Adafactor`].
#[track_caller]
pub fn adafactor_step(
    rule: &Adafactor,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Updated> {
    optimizer_step(rule, weights, slots, gradients, hypers)
}
