//! `rotary_embedding(x)`: turns pairs of features by angles that grow with the position, as in RoPE.
//!
//! Su et al. 2021. x: `[*, S, D]`, floats, D even; the result is like x. At position p = offset + s pair i turns by
//! p · base^(−2i/D): (a, b) → (a cos − b sin, b cos + a sin). Pair i is features i and i + D/2, or with `interleaved` features
//! 2i and 2i + 1. The angles are constants, computed in f64. Half precision is computed in f32.

use super::composite::{accepted, number, one_float, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::literal::Literal;
use crate::shape::Type;

/// The options of [`Tensor::rotary_embedding`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotary {
    /// Grows the wavelengths; 10000 in the paper.
    pub base: f64,
    /// Pairs are neighbours (as in the paper) instead of halves (as in Llama).
    pub interleaved: bool,
    /// The position of the first row.
    pub offset: usize,
}

impl Default for Rotary {
    /// Base 10000, halves, from position 0.
    fn default() -> Self {
        Rotary { base: 10000.0, interleaved: false, offset: 0 }
    }
}

impl Tensor {
    /// Pairs of the last axis turned by their position along the axis before it.
    #[track_caller]
    pub fn rotary_embedding(&self, options: Rotary) -> Tensor {
        let attributes = Attributes::new()
            .with("base", options.base)
            .with("interleaved", options.interleaved)
            .with("offset", options.offset);
        self.compose(&DEF, &[], attributes)
    }

    /// One row, `[*, 1, D]`, turned as row `position` of [`rotary_embedding`](Tensor::rotary_embedding) would be, where
    /// `position` is an integer scalar from 0 to `length` − 1 that is only known in a run.
    #[track_caller]
    pub fn rotary_embedding_at(&self, position: &Tensor, length: usize, options: Rotary) -> Tensor {
        if self.rank() < 2 || self.dim(-2) != 1 || !self.dim(-1).is_multiple_of(2) {
            return self.fail(format!("rotary_embedding_at: x is {}; it must have the axes [*, 1, D], D even", self.ty()));
        }
        let half = self.dim(-1) / 2;
        let zero = self.graph().scalar(position.dtype(), 0.0);
        let row = |table: Tensor| table.dynamic_slice(&[position, &zero], &[1, half]);
        turn(self, angles(&self.widen(), length, options).map(row), options.interleaved)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "base", "finite and positive", |v| v.is_finite() && v > 0.0)?;
    attributes.bool("interleaved")?;
    attributes.size("offset")?;
    one_float(types)?;
    match types[0].shape.dims() {
        [.., _, features] if features % 2 == 0 => Ok(()),
        _ => Err(format!("x is {}; it must have the axes [*, S, D], D even", types[0])),
    }
}

fn options(attributes: &Attributes) -> Rotary {
    Rotary {
        base: accepted(attributes.float("base")),
        interleaved: accepted(attributes.bool("interleaved")),
        offset: accepted(attributes.size("offset")),
    }
}

/// Turns the rows of x forward (`sign` 1) or back (−1).
fn turn_rows(x: &Tensor, attributes: &Attributes, sign: f64) -> Tensor {
    let options = options(attributes);
    let [cos, sin] = angles(&x.widen(), x.dim(-2), options);
    turn(x, [cos, &sin * sign], options.interleaved)
}

/// Turns pairs by the angles of these cosines and sines, `[S, D/2]`.
fn turn(x: &Tensor, [cos, sin]: [Tensor; 2], interleaved: bool) -> Tensor {
    let wide = x.widen();
    let half = x.dim(-1) / 2;
    let lead = &x.shape()[..x.rank() - 1];
    // The two members of a pair along an axis of their own: the last one, or the one before it.
    let (split, axis) = if interleaved { ([half, 2], -1) } else { ([2, half], -2) };
    let pairs = wide.reshape([lead, &split].concat());
    let part = |i| pairs.narrow(axis, i, 1).reshape([lead, &[half]].concat());
    let (a, b) = (part(0), part(1));
    let turned = [&a * &cos - &b * &sin, &b * &cos + &a * &sin];
    let unit = if interleaved { [half, 1] } else { [1, half] };
    let members = turned.map(|t| t.reshape([lead, &unit].concat()));
    x.graph().concatenate(&[&members[0], &members[1]], axis).reshape(x.shape()).cast(x.dtype())
}

/// Cosines and sines of x's dtype, `[rows, D/2]`.
fn angles(x: &Tensor, rows: usize, options: Rotary) -> [Tensor; 2] {
    let Rotary { base, offset, .. } = options;
    let half = x.dim(-1) / 2;
    let ty = Type::new(x.dtype(), [rows, half]);
    let angle = |i: usize| (offset + i / half) as f64 * libm::pow(base, -2.0 * (i % half) as f64 / (2 * half) as f64);
    [libm::cos, libm::sin].map(|f| {
        let table: Vec<f64> = (0..rows * half).map(|i| f(angle(i))).collect();
        x.graph().constant(Literal::from_f64(ty.clone(), &table))
    })
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "rotary_embedding",
    formula: "(a, b) → (a cos θ − b sin θ, b cos θ + a sin θ), θ = position · base^(−2i/D)",
    kind: rules(check, |b: &Body| vec![turn_rows(&b.operands[0], b.attributes, 1.0)]),
    derivative: Derivative::Rule(|vjp: &Vjp| vec![Some(turn_rows(vjp.cotangent(), vjp.attributes, -1.0))]),
    tolerance: Tolerance::Norm(4.0),
    onnx: &[],
    samples: || {
        let with = |options: Rotary| move |_: &_, x: &[Tensor]| vec![x[0].rotary_embedding(options)];
        let x = || vec![values::tensor([1, 2, 3, 4], -2.0, 2.0, 1)];
        let plain = Rotary::default();
        vec![
            Sample::floats("halves", x(), with(plain)),
            Sample::floats("neighbours", x(), with(Rotary { interleaved: true, ..plain })),
            Sample::floats("offset", x(), with(Rotary { offset: 1000, base: 500.0, ..plain })),
            Sample::floats("matrix", vec![values::tensor([3, 6], -2.0, 2.0, 1)], with(plain)),
            Sample::floats("no features", vec![values::floats([2, 0], &[])], with(plain)),
        ]
    },
};
