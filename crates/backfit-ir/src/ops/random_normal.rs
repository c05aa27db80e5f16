//! `random_normal(key)`: independent numbers from N(mean, std²), by the method of Box & Muller 1958.
//!
//! key: `u32[4]`. With u, v from [`random_uniform`](super::random_uniform) the result is
//! mean + std · √(−2 log(1 − u)) · cos(2π v); computed in f64 for f64, else in f32, where it lies within ±5.8 deviations.

use super::composite::{accepted, number, rules};
use super::definition::{Body, Derivative, OpDef, Tolerance};
use super::random_uniform::{check_random, random_samples, unit};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::{Shape, Type};
use std::f64::consts::TAU;

impl Tensor {
    /// Independent numbers from N(mean, std²); this is the key, a `u32[4]`.
    #[track_caller]
    pub fn random_normal(&self, shape: impl Into<Shape>, mean: f64, std: f64, dtype: DType) -> Tensor {
        let attributes = Attributes::new()
            .with("shape", shape.into().dims())
            .with("mean", mean)
            .with("std", std)
            .with("dtype", dtype);
        self.compose(&DEF, &[], attributes)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "mean", "finite", f64::is_finite)?;
    number(attributes, "std", "finite and not negative", |v| v.is_finite() && v >= 0.0)?;
    let twice = attributes.sizes("shape")?.into_iter().try_fold(2usize, usize::checked_mul);
    twice.ok_or("there are too many elements to address")?;
    check_random(types, attributes)
}

fn body(b: &Body) -> Vec<Tensor> {
    let (shape, dtype) = (Shape::from(accepted(b.attributes.sizes("shape"))), accepted(b.attributes.dtype("dtype")));
    let (mean, std) = (accepted(b.attributes.float("mean")), accepted(b.attributes.float("std")));
    let count = shape.elements();
    let both = unit(b.graph, &b.operands[0], 2 * count, dtype.accumulator());
    let (u, v) = (both.narrow(0, 0, count), both.narrow(0, count, count));
    // log1p keeps what little −u is: 1 − u would lose it.
    let radius = ((-u).log1p() * -2.0).sqrt();
    vec![(radius * (v * TAU).cos() * std + mean).reshape(shape).cast(dtype)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "random_normal",
    formula: "y ~ N(mean, std²)",
    kind: rules(check, body),
    derivative: Derivative::NotDifferentiable("its operand is an integer"),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || random_samples(|key, shape, dtype| key.random_normal(shape, 0.5, 2.0, dtype)),
};
