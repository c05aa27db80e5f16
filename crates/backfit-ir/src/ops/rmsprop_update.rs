//! `rmsprop_update(w, s, grad_avg?, buf?, g, lr)`: a step of RMSprop. PyTorch: `optim.RMSprop`.
//!
//! Hinton 2012; `centered` as in Graves 2013. g ← g + weight_decay · w, s ← α s + (1 − α) g²; centered:
//! grad_avg ← α grad_avg + (1 − α) g and d = √(s − grad_avg²) + ε, else d = √s + ε; with momentum:
//! buf ← momentum · buf + g / d and w ← w − lr · buf, else w ← w − lr · g / d.
//! Shapes and dtypes as in [`super::update`]. Results: w, s, then grad_avg and buf where they are given.

use super::composite::{accepted, epsilon, given, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::update::{self, regularised};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The constants of [`rmsprop_update`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmspropUpdate {
    /// What share of the mean squared gradient stays from step to step.
    pub alpha: f64,
    /// Added to the root, so that it is never 0.
    pub epsilon: f64,
    /// Divides by the deviation of the gradient instead of its root mean square; needs `grad_avg`.
    pub centered: bool,
    /// What share of the last step is added to the next; where it is not 0 it needs `buf`.
    pub momentum: f64,
    /// L2 regularisation.
    pub weight_decay: f64,
}

impl Default for RmspropUpdate {
    /// PyTorch's: α = 0.99, ε = 1e-8, neither centered nor with momentum or decay.
    fn default() -> Self {
        RmspropUpdate { alpha: 0.99, epsilon: 1e-8, centered: false, momentum: 0.0, weight_decay: 0.0 }
    }
}

/// The new weight and `s`, then `grad_avg` and `buf` where they are given. All state starts at 0; `lr` is a scalar.
#[track_caller]
pub fn rmsprop_update(
    w: &Tensor,
    s: &Tensor,
    grad_avg: Option<&Tensor>,
    buf: Option<&Tensor>,
    g: &Tensor,
    lr: &Tensor,
    rule: RmspropUpdate,
) -> Vec<Tensor> {
    let attributes = Attributes::new()
        .with("alpha", rule.alpha)
        .with("epsilon", rule.epsilon)
        .with("centered", rule.centered)
        .with("momentum", rule.momentum)
        .with("weight_decay", rule.weight_decay);
    let operands = given(&[Some(w), Some(s), grad_avg, buf, Some(g), Some(lr)]);
    w.graph().composite(&DEF, &operands, attributes)
}

fn parse(a: &Attributes) -> Result<RmspropUpdate, String> {
    Ok(RmspropUpdate {
        alpha: number(a, "alpha", "between 0 and 1", |v| (0.0..=1.0).contains(&v))?,
        epsilon: epsilon(a)?,
        centered: a.bool("centered")?,
        momentum: number(a, "momentum", "finite and not negative", |v| v.is_finite() && v >= 0.0)?,
        weight_decay: number(a, "weight_decay", "finite", f64::is_finite)?,
    })
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    let rule = parse(attributes)?;
    let mut names = vec!["w", "s"];
    names.extend(rule.centered.then_some("grad_avg"));
    names.extend((rule.momentum != 0.0).then_some("buf"));
    names.push("g");
    update::check(types, &names, &["lr"])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rule) = (update::operands(b), accepted(parse(b.attributes)));
    let (w, lr) = (&x[0], &x[x.len() - 1]);
    let g = regularised(&x[x.len() - 2], w, rule.weight_decay);
    let average = |old: &Tensor, new: &Tensor| old * rule.alpha + new * (1.0 - rule.alpha);
    let s = average(&x[1], &(&g * &g));
    let mut new = vec![s.clone()];
    let mut spread = s;
    if rule.centered {
        let mean = average(&x[2], &g);
        // Rounding may make the difference slightly negative.
        spread = (&spread - &mean * &mean).maximum(&spread.like(0.0));
        new.push(mean);
    }
    let mut step = &g / (spread.sqrt() + rule.epsilon);
    if rule.momentum != 0.0 {
        step = &x[x.len() - 3] * rule.momentum + step;
        new.push(step.clone());
    }
    new.insert(0, w - lr * step);
    update::results(&new.iter().collect::<Vec<_>>(), &b.operands.iter().collect::<Vec<_>>())
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "rmsprop_update",
    formula: "w ← w − lr · g / (√s + ε)",
    kind: Kind::Composite(Composite { results: 4, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let step = |rule: RmspropUpdate| {
        move |_: &_, x: &[Tensor]| {
            let mut optional = x[2..x.len() - 2].iter();
            let grad_avg = if rule.centered { optional.next() } else { None };
            rmsprop_update(&x[0], &x[1], grad_avg, optional.next(), &x[x.len() - 2], &x[x.len() - 1], rule)
        }
    };
    let inputs = |optional: usize| {
        let t = |low, high, seed| values::tensor([2, 3], low, high, seed);
        let mut all = vec![t(-2.0, 2.0, 1), t(1.0, 2.0, 2)];
        all.extend((0..optional).map(|i| t(-0.5, 0.5, 3 + i as u64)));
        all.extend([t(-2.0, 2.0, 9), values::floats([], &[0.125])]);
        all
    };
    let plain = RmspropUpdate { alpha: 0.75, epsilon: 1e-3, weight_decay: 0.125, ..RmspropUpdate::default() };
    vec![
        Sample::floats("plain", inputs(0), step(plain)),
        Sample::floats("centered", inputs(1), step(RmspropUpdate { centered: true, ..plain })),
        Sample::floats("momentum", inputs(1), step(RmspropUpdate { momentum: 0.5, ..plain })),
        Sample::floats(
            "centered with momentum",
            inputs(2),
            step(RmspropUpdate { centered: true, momentum: 0.5, ..plain }),
        ),
    ]
}
