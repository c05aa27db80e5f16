//! Optimizers on lists of tensors, inside any graph.

use super::{Adafactor, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd, Updated, slots_of};
use backfit_ir::{Problem, Tensor};
use std::panic::Location;

/// A step of any optimizer on weights with these states (the tensors of [`Optimizer::slots`] that each weight has) and
/// gradients; `hypers` are the scalars of [`Optimizer::hypers`]. What becomes of the results is the graph's business.
/// Lists that do not fit together are a problem of the graph, and the results are poison.
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
    let mut given = weights.iter().chain(gradients).chain(slots.iter().flatten()).chain(hypers);
    let Some(graph) = given.next().map(Tensor::graph) else { return Vec::new() };
    let flaws = flaws(optimizer, weights, slots, gradients, hypers);
    if !flaws.is_empty() {
        let caller = Location::caller();
        flaws.into_iter().for_each(|flaw| graph.problem(flaw, caller));
        return weights.iter().map(|weight| poison(optimizer, weight)).collect();
    }
    let updated = |((weight, slots), gradient): ((&Tensor, &Vec<Tensor>), &Tensor)| {
        let hypers: Vec<Tensor> = hypers.iter().map(|hyper| hyper.cast(weight.dtype())).collect();
        optimizer.update(weight, slots, gradient, &hypers)
    };
    graph.at_caller(|| weights.iter().zip(slots).zip(gradients).map(updated).collect())
}

/// Which lists do not fit the others or the optimizer.
fn flaws(
    optimizer: &dyn Optimizer,
    weights: &[Tensor],
    slots: &[Vec<Tensor>],
    gradients: &[Tensor],
    hypers: &[Tensor],
) -> Vec<Problem> {
    let mut flaws = Vec::new();
    let [of_weights, of_slots, of_gradients] = [weights.len(), slots.len(), gradients.len()];
    if of_slots != of_weights || of_gradients != of_weights {
        let what = format!("{of_weights} weights have {of_slots} lists of slots and {of_gradients} gradients");
        flaws.push(Problem::new(what).help("give every weight its list, which may be empty, and its gradient"));
    }
    for (i, (weight, found)) in weights.iter().zip(slots).enumerate() {
        let expected: Vec<&str> = slots_of(optimizer, weight.ty()).map(|(name, _)| name).collect();
        if found.len() != expected.len() {
            let what = format!("weight {i}, {}, is given {} slots", weight.ty(), found.len());
            flaws.push(Problem::new(what).because(format!("the optimizer keeps of it: [{}]", expected.join(", "))));
        }
    }
    let names = optimizer.hypers();
    if hypers.len() != names.len() {
        let problem = Problem::new(format!("the step is given {} scalars", hypers.len()));
        flaws.push(problem.because(format!("the optimizer is fed: [{}]", names.join(", "))));
    }
    flaws
}

/// What stands for the results of a weight where there are none.
fn poison(optimizer: &dyn Optimizer, weight: &Tensor) -> Updated {
    let slots = slots_of(optimizer, weight.ty()).map(|(_, ty)| weight.graph().poison(ty)).collect();
    Updated { weight: weight.graph().poison(weight.ty().clone()), slots }
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
