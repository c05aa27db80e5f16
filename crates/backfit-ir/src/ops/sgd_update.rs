//! `sgd_update(w, g, velocity?, lr)`: a step of stochastic gradient descent, perhaps with momentum. PyTorch: `optim.SGD`.
//!
//! g ← g + weight_decay · w, then w ← w − lr · g without a velocity. With one, which starts at 0 (dampening 0):
//! velocity ← momentum · velocity + g, and w ← w − lr · velocity, or with `nesterov` w ← w − lr · (g + momentum · velocity).
//! Shapes and dtypes as in [`super::update`]. Results: w, then velocity where it is given.

use super::composite::{accepted, given, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::update::{self, regularised};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The constants of [`sgd_update`].
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct SgdUpdate {
    /// What share of the velocity stays from step to step.
    pub momentum: f64,
    /// Looks ahead along the velocity (Nesterov 1983, as in Sutskever et al. 2013).
    pub nesterov: bool,
    /// L2 regularisation.
    pub weight_decay: f64,
}

/// The new weight, then the new velocity where one is given. `lr` is a scalar.
#[track_caller]
pub fn sgd_update(w: &Tensor, g: &Tensor, velocity: Option<&Tensor>, lr: &Tensor, rule: SgdUpdate) -> Vec<Tensor> {
    let attributes = Attributes::new()
        .with("momentum", rule.momentum)
        .with("nesterov", rule.nesterov)
        .with("weight_decay", rule.weight_decay);
    w.graph().composite(&DEF, &given(&[Some(w), Some(g), velocity, Some(lr)]), attributes)
}

fn parse(a: &Attributes) -> Result<SgdUpdate, String> {
    Ok(SgdUpdate {
        momentum: number(a, "momentum", "finite and not negative", |v| v.is_finite() && v >= 0.0)?,
        nesterov: a.bool("nesterov")?,
        weight_decay: number(a, "weight_decay", "finite", f64::is_finite)?,
    })
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    let rule = parse(attributes)?;
    if types.len() == 4 {
        return update::check(types, &["w", "g", "velocity"], &["lr"]);
    }
    if rule.momentum != 0.0 || rule.nesterov {
        return Err("momentum needs a velocity".to_owned());
    }
    update::check(types, &["w", "g"], &["lr"])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rule) = (update::operands(b), accepted(parse(b.attributes)));
    let g = regularised(&x[1], &x[0], rule.weight_decay);
    let [w, _, velocity, lr] = x.as_slice() else {
        return update::results(&[&(&x[0] - &x[2] * g)], &[&b.operands[0]]);
    };
    let velocity = velocity * rule.momentum + &g;
    let step = if rule.nesterov { &g + &velocity * rule.momentum } else { velocity.clone() };
    update::results(&[&(w - lr * step), &velocity], &[&b.operands[0], &b.operands[2]])
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "sgd_update",
    formula: "w ← w − lr · (momentum · velocity + g)",
    kind: Kind::Composite(Composite { results: 2, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(4.0),
    onnx: &[],
    samples: || {
        let step = |rule| {
            move |_: &_, x: &[Tensor]| {
                let velocity = if x.len() == 4 { Some(&x[2]) } else { None };
                sgd_update(&x[0], &x[1], velocity, &x[x.len() - 1], rule)
            }
        };
        let t = |seed| values::tensor([2, 3], -2.0, 2.0, seed);
        let lr = || values::floats([], &[0.125]);
        let plain = SgdUpdate { weight_decay: 0.125, ..SgdUpdate::default() };
        let heavy = SgdUpdate { momentum: 0.75, ..plain };
        vec![
            Sample::floats("plain", vec![t(1), t(2), lr()], step(plain)),
            Sample::floats("momentum", vec![t(1), t(2), t(3), lr()], step(heavy)),
            Sample::floats("nesterov", vec![t(1), t(2), t(3), lr()], step(SgdUpdate { nesterov: true, ..heavy })),
        ]
    },
};
