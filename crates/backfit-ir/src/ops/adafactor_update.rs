//! `adafactor_update(w, v…, g, lr, inverse_root, share)`: a step of Adafactor. PyTorch: `optim.Adafactor`.
//!
//! Shazeer & Stern 2018. The mean squared gradient of a tensor with two or more axes is kept as its means along the last
//! axis, row `[…, R, 1]`, and along the one before, column `[…, 1, C]`; that of a vector or scalar as v of its shape.
//! With α = min(lr, inverse_root) · max(ε₂, rms(w)), inverse_root = 1/√t and share = t^−0.8 at step t = 1, 2, …:
//! w ← (1 − lr · weight_decay) w; every mean moves to that of g² by `share`; v = row · column / max(mean(row), ε₁);
//! u = g / √max(v, ε₁²); w ← w − α / max(1, rms(u) / d) · u. Results: w, then row and column, or v. Dtypes as in
//! [`super::update`].

use super::composite::{accepted, float, number, scalar, shape};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::update;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::{Shape, Type};

/// The constants of [`adafactor_update`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdafactorUpdate {
    /// ε₁: the mean square is at least its square.
    pub epsilon1: f64,
    /// ε₂: a weight whose root mean square is smaller is treated as if it were this.
    pub epsilon2: f64,
    /// The root mean square of a step, before the rate, is at most this.
    pub d: f64,
    /// Shrinks weights by lr · weight_decay at every step.
    pub weight_decay: f64,
}

/// The new weight and state; `state` is row and column, or v. `scalars` are lr, inverse_root and share.
#[track_caller]
pub fn adafactor_update(
    w: &Tensor,
    state: &[Tensor],
    g: &Tensor,
    scalars: [&Tensor; 3],
    rule: AdafactorUpdate,
) -> Vec<Tensor> {
    let attributes = Attributes::new()
        .with("epsilon1", rule.epsilon1)
        .with("epsilon2", rule.epsilon2)
        .with("d", rule.d)
        .with("weight_decay", rule.weight_decay);
    let operands: Vec<&Tensor> = [w].into_iter().chain(state).chain([g]).chain(scalars).collect();
    w.graph().composite(&DEF, &operands, attributes)
}

/// The shapes of the state of a weight of this shape.
pub fn state_shapes(weight: &Shape) -> Vec<Shape> {
    let without = |axis: usize| {
        let mut dims = weight.dims().to_vec();
        dims[axis] = 1;
        Shape::from(dims)
    };
    match weight.rank() {
        0 | 1 => vec![weight.clone()],
        rank => vec![without(rank - 1), without(rank - 2)],
    }
}

fn parse(a: &Attributes) -> Result<AdafactorUpdate, String> {
    let positive = |name| number(a, name, "finite and positive", |v| v.is_finite() && v > 0.0);
    let weight_decay = number(a, "weight_decay", "finite", f64::is_finite)?;
    Ok(AdafactorUpdate { epsilon1: positive("epsilon1")?, epsilon2: positive("epsilon2")?, d: positive("d")?, weight_decay })
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    parse(attributes)?;
    let Some(w) = types.first() else { return Err("it takes a weight".to_owned()) };
    let states = state_shapes(&w.shape);
    if types.len() != states.len() + 5 {
        return Err(format!("it takes {} operands for a weight {w}, not {}", states.len() + 5, types.len()));
    }
    let shapes = [&w.shape].into_iter().chain(&states).chain([&w.shape]);
    let names: &[&str] = if states.len() == 2 { &["w", "row", "column", "g"] } else { &["w", "v", "g"] };
    for ((name, ty), expected) in names.iter().zip(types).zip(shapes) {
        float(name, ty)?;
        shape(name, ty, expected)?;
    }
    let scalars = ["lr", "inverse_root", "share"].iter().zip(&types[names.len()..]);
    scalars.into_iter().try_for_each(|(name, ty)| scalar(name, ty))
}

fn rms(x: &Tensor) -> Tensor {
    (x * x).mean_all().sqrt()
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rule) = (update::operands(b), accepted(parse(b.attributes)));
    let (w, state) = (&x[0], &x[1..x.len() - 4]);
    let [g, lr, inverse_root, share] = &x[x.len() - 4..] else { return x };
    let squared = g * g;
    let moved = |old: &Tensor, mean: Tensor| old + &(share * (mean - old));
    let state: Vec<Tensor> = match state {
        [row, column] => vec![moved(row, squared.mean_keep(&[-1])), moved(column, squared.mean_keep(&[-2]))],
        _ => vec![moved(&state[0], squared)],
    };
    let v = match &state[..] {
        [row, column] => {
            let whole = row.mean_keep(&[-2]);
            row * column / whole.maximum(&whole.like(rule.epsilon1))
        }
        _ => state[0].clone(),
    };
    let u = g / v.maximum(&v.like(rule.epsilon1 * rule.epsilon1)).sqrt();
    let size = rms(w);
    let alpha = lr.minimum(inverse_root) * size.maximum(&size.like(rule.epsilon2));
    let excess = rms(&u) / rule.d;
    let w = if rule.weight_decay == 0.0 { w.clone() } else { w * (1.0 - lr * rule.weight_decay) };
    let w = w - alpha / excess.maximum(&excess.like(1.0)) * u;
    let new: Vec<&Tensor> = [&w].into_iter().chain(&state).collect();
    update::results(&new, &b.operands.iter().collect::<Vec<_>>())
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "adafactor_update",
    formula: "w ← w − α / max(1, rms(u) / d) · u, u = g / √v, v = row · column / mean(row)",
    kind: Kind::Composite(Composite { results: 3, check, body, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(64.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let step = |weight_decay| {
        move |_: &_, x: &[Tensor]| {
            let rule = AdafactorUpdate { epsilon1: 1e-3, epsilon2: 1e-2, d: 1.0, weight_decay };
            let n = x.len() - 4;
            adafactor_update(&x[0], &x[1..n], &x[n], [&x[n + 1], &x[n + 2], &x[n + 3]], rule)
        }
    };
    let inputs = |dims: &[usize]| {
        let mut all = vec![values::tensor(dims, -2.0, 2.0, 1)];
        let states = state_shapes(&Shape::from(dims));
        all.extend(states.iter().enumerate().map(|(i, dims)| values::tensor(dims, 0.5, 2.0, 2 + i as u64)));
        all.push(values::tensor(dims, -2.0, 2.0, 4));
        all.extend([0.25, 0.125, 0.5].map(|v| values::floats([], &[v])));
        all
    };
    vec![
        Sample::floats("matrix", inputs(&[2, 3]), step(0.0)),
        Sample::floats("kernels with decay", inputs(&[2, 2, 3]), step(0.125)),
        Sample::floats("vector", inputs(&[3]), step(0.0)),
    ]
}
