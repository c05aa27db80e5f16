//! `erf(x) = 2/√π ∫₀ˣ e^(−t²) dt`, elementwise over floats.
//!
//! The error function. NaN gives NaN; ±0 is kept; ±∞ gives ±1. Never beyond ±1.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};
use std::f64::consts::FRAC_2_SQRT_PI;

impl Tensor {
    /// The error function. erf(±∞) = ±1.
    #[track_caller]
    pub fn erf(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Erf), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = 2/√π ∫₀ˣ e^(−t²) dt",
    parse: |_| Ok(Op::Unary(Unary::Erf)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), libm::erf, |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| (-(x * x)).exp() * FRAC_2_SQRT_PI)),
    tolerance: Tolerance::Element(4.0),
    onnx: &["Erf"],
    samples: || samples::unary(values::tensor([3, 5], -3.0, 3.0, 1), Tensor::erf),
}
.define("erf");
