//! `gelu(x) = x · Φ(x) = x/2 · (1 + erf(x / √2))`, elementwise over floats: the exact form.
//!
//! Hendrycks & Gimpel 2016.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::chain;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

impl Tensor {
    /// x · Φ(x) with the normal distribution function Φ.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// Φ(x).
fn distribution(x: &Tensor) -> Tensor {
    ((x * FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

/// e^(−x²/2) / √(2π).
fn density(x: &Tensor) -> Tensor {
    (x * x * -0.5).exp() * (0.5 * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "gelu",
    formula: "y = x/2 · (1 + erf(x / √2))",
    kind: rules(|types, _| one_float(types), |b| vec![&b.operands[0] * &distribution(&b.operands[0])]),
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| distribution(x) + x * density(x))),
    tolerance: Tolerance::Norm(4.0),
    onnx: &["Gelu"],
    samples: || activation_samples(Tensor::gelu),
};
