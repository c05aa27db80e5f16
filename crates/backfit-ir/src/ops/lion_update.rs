//! `lion_update(w, m, g, lr)`: a step of Lion. optax: `lion`.
//!
//! Chen et al. 2023: w ← w − lr · (sign(β₁ m + (1 − β₁) g) + weight_decay · w), then m ← β₂ m + (1 − β₂) g.
//! Shapes and dtypes as in [`super::update`]. Results: w, m.

use super::composite::{accepted, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::update::{self, regularised};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The constants of [`lion_update`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LionUpdate {
    /// The share of the mean gradient in the direction of the step.
    pub beta1: f64,
    /// What share of the mean gradient stays from step to step.
    pub beta2: f64,
    /// Shrinks weights by lr · weight_decay at every step.
    pub weight_decay: f64,
}

impl Default for LionUpdate {
    /// The paper's: 0.9, 0.99; no decay.
    fn default() -> Self {
        LionUpdate { beta1: 0.9, beta2: 0.99, weight_decay: 0.0 }
    }
}

/// The new weight and mean gradient; `lr` is a scalar.
#[track_caller]
pub fn lion_update(w: &Tensor, m: &Tensor, g: &Tensor, lr: &Tensor, rule: LionUpdate) -> Vec<Tensor> {
    let attributes = Attributes::new()
        .with("beta1", rule.beta1)
        .with("beta2", rule.beta2)
        .with("weight_decay", rule.weight_decay);
    w.graph().composite(&DEF, &[w, m, g, lr], attributes)
}

fn parse(a: &Attributes) -> Result<LionUpdate, String> {
    let share = |name| number(a, name, "between 0 and 1", |v| (0.0..=1.0).contains(&v));
    let weight_decay = number(a, "weight_decay", "finite", f64::is_finite)?;
    Ok(LionUpdate { beta1: share("beta1")?, beta2: share("beta2")?, weight_decay })
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    parse(attributes)?;
    update::check(types, &["w", "m", "g"], &["lr"])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rule) = (update::operands(b), accepted(parse(b.attributes)));
    let [w, m, g, lr] = x.as_slice() else { return x };
    let average = |beta: f64| m * beta + g * (1.0 - beta);
    let step = regularised(&average(rule.beta1).sign(), w, rule.weight_decay);
    update::results(&[&(w - lr * step), &average(rule.beta2)], &[&b.operands[0], &b.operands[1]])
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "lion_update",
    formula: "w ← w − lr · (sign(β₁ m + (1 − β₁) g) + weight_decay · w)",
    kind: Kind::Composite(Composite { results: 2, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: || {
        let step = |rule| move |_: &_, x: &[Tensor]| lion_update(&x[0], &x[1], &x[2], &x[3], rule);
        let inputs = || {
            let t = |seed| values::tensor([2, 3], -2.0, 2.0, seed);
            vec![t(1), t(2), t(3), values::floats([], &[0.125])]
        };
        let plain = LionUpdate { beta1: 0.75, beta2: 0.875, weight_decay: 0.0 };
        vec![
            Sample::floats("lion", inputs(), step(plain)),
            Sample::floats("decay", inputs(), step(LionUpdate { weight_decay: 0.125, ..plain })),
        ]
    },
};
