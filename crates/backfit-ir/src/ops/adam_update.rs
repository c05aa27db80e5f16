//! `adam_update(w, m, v, g, lr, bias_correction1, bias_correction2)`: a step of Adam or AdamW. PyTorch: `optim.Adam`, `optim.AdamW`.
//!
//! Kingma & Ba 2015; with `decoupled` Loshchilov & Hutter 2019: w ← (1 − lr · weight_decay) w, else g ← g + weight_decay · w. Then
//! m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², w ← w − lr / bias_correction1 · m / (√v / √bias_correction2 + ε),
//! where bias_correctionᵢ = 1 − βᵢᵗ at step t = 1, 2, …. Shapes and dtypes as in [`super::update`]. Results: w, m, v.

use super::composite::{accepted, epsilon, number};
use super::definition::{self, Body, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::update::{self, regularised};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::graph::Composite;
use crate::shape::Type;

/// The constants of [`adam_update`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamUpdate {
    /// What share of the mean gradient stays from step to step.
    pub beta1: f64,
    /// What share of the mean squared gradient stays from step to step.
    pub beta2: f64,
    /// Added to the root, so that it is never 0.
    pub epsilon: f64,
    /// Pulls weights to 0.
    pub weight_decay: f64,
    /// AdamW: the decay acts on the weight itself instead of the gradient.
    pub decoupled: bool,
}

impl Default for AdamUpdate {
    /// PyTorch's: 0.9, 0.999, 1e-8, no decay.
    fn default() -> Self {
        AdamUpdate { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decoupled: false }
    }
}

impl AdamUpdate {
    /// The update that a composite is; `None` for any other composite. Targets and policies may compute it in a form of their own.
    pub fn of(composite: &Composite) -> Option<AdamUpdate> {
        (composite.name == DEF.name).then(|| parse(&composite.attributes).ok()).flatten()
    }
}

/// The new weight, mean gradient and mean squared gradient. `scalars` are lr, bias_correction1 and bias_correction2.
#[track_caller]
pub fn adam_update(
    w: &Tensor,
    m: &Tensor,
    v: &Tensor,
    g: &Tensor,
    scalars: [&Tensor; 3],
    rule: AdamUpdate,
) -> Vec<Tensor> {
    let attributes = Attributes::new()
        .with("beta1", rule.beta1)
        .with("beta2", rule.beta2)
        .with("epsilon", rule.epsilon)
        .with("weight_decay", rule.weight_decay)
        .with("decoupled", rule.decoupled);
    let [lr, bias_correction1, bias_correction2] = scalars;
    w.graph().composite(&DEF, &[w, m, v, g, lr, bias_correction1, bias_correction2], attributes)
}

fn parse(a: &Attributes) -> Result<AdamUpdate, String> {
    let share = |name| number(a, name, "between 0 and 1", |v| (0.0..=1.0).contains(&v));
    Ok(AdamUpdate {
        beta1: share("beta1")?,
        beta2: share("beta2")?,
        epsilon: epsilon(a)?,
        weight_decay: number(a, "weight_decay", "finite", f64::is_finite)?,
        decoupled: a.bool("decoupled")?,
    })
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    parse(attributes)?;
    update::check(types, &["w", "m", "v", "g"], &["lr", "bias_correction1", "bias_correction2"])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rule) = (update::operands(b), accepted(parse(b.attributes)));
    let [w, m, v, g, lr, correction1, correction2] = x.as_slice() else { return x };
    let (w, g) = match (rule.weight_decay, rule.decoupled) {
        (0.0, _) => (w.clone(), g.clone()),
        (decay, true) => (w * (1.0 - lr * decay), g.clone()),
        (decay, false) => (w.clone(), regularised(g, w, decay)),
    };
    let m = m * rule.beta1 + &g * (1.0 - rule.beta1);
    let v = v * rule.beta2 + &g * &g * (1.0 - rule.beta2);
    // Times one number: a division of every element takes several times as long.
    let root = v.sqrt() * correction2.rsqrt() + rule.epsilon;
    let w = w - lr / correction1 * &m / root;
    update::results(&[&w, &m, &v], &[&b.operands[0], &b.operands[1], &b.operands[2]])
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "adam_update",
    formula: "w ← w − lr / bias_correction1 · m / (√v / √bias_correction2 + ε)",
    kind: Kind::Composite(definition::Composite { results: 3, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: || {
        let step =
            |rule| move |_: &_, x: &[Tensor]| adam_update(&x[0], &x[1], &x[2], &x[3], [&x[4], &x[5], &x[6]], rule);
        let inputs = || {
            let t = |low, high, seed| values::tensor([2, 3], low, high, seed);
            let scalar = |v| values::floats([], &[v]);
            let tensors = [t(-2.0, 2.0, 1), t(-1.0, 1.0, 2), t(0.5, 2.0, 3), t(-2.0, 2.0, 4)];
            tensors.into_iter().chain([scalar(0.125), scalar(0.25), scalar(0.5)]).collect::<Vec<_>>()
        };
        let plain = AdamUpdate { beta1: 0.75, beta2: 0.875, epsilon: 1e-3, ..AdamUpdate::default() };
        vec![
            Sample::floats("adam", inputs(), step(plain)),
            Sample::floats("adam with L2", inputs(), step(AdamUpdate { weight_decay: 0.125, ..plain })),
            Sample::floats("adamw", inputs(), step(AdamUpdate { weight_decay: 0.125, decoupled: true, ..plain })),
        ]
    },
};
