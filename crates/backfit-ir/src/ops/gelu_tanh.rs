//! `gelu_tanh(x) = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`, elementwise over floats.
//!
//! The approximation of `gelu` of Hendrycks & Gimpel 2016 that GPT-2 uses.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// √(2/π).
const SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
const CUBIC: f64 = 0.044715;

impl Tensor {
    /// The approximation of [`gelu`](Tensor::gelu) with a tanh.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// tanh(√(2/π) · x · (1 + 0.044715 x²)), without the x³ that overflows first.
fn inner(x: &Tensor) -> Tensor {
    (x * SCALE * (x * x * CUBIC + 1.0)).tanh()
}

/// (1 + t)/2 + x/2 · (1 − t²) · √(2/π) · (1 + 3 · 0.044715 x²), in f32 for half precision, whose x² overflows.
fn slope(x: &Tensor) -> Tensor {
    let t = inner(x);
    (&t + 1.0) * 0.5 + x * 0.5 * (1.0 - &t * &t) * (x * x * (3.0 * CUBIC * SCALE) + SCALE)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "gelu_tanh",
    formula: "y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))",
    kind: rules(|types, _| one_float(types), |b| vec![&b.operands[0] * 0.5 * (inner(&b.operands[0]) + 1.0)]),
    derivative: Derivative::Rule(|vjp| {
        let (x, g) = (vjp.operands[0].widen(), vjp.cotangent().widen());
        vec![Some((g * slope(&x)).cast(vjp.operands[0].dtype()))]
    }),
    tolerance: Tolerance::Norm(4.0),
    onnx: &[],
    samples: || activation_samples(Tensor::gelu_tanh),
};
