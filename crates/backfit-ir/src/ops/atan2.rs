//! `atan2(a, b)`: the angle of the point (b, a), in radians from −π to π, elementwise over floats.
//!
//! IEEE 754: atan2(±0, x) is ±0 for positive x and +0, ±π for negative x and −0; atan2(±a, ±∞) and atan2(±∞, ±∞)
//! are the multiples of π/4 of their quadrant; NaN where either is NaN.
//!
//! Derivative: da = g·b / (a² + b²), db = −g·a / (a² + b²), without overflow; NaN at the origin and at infinities.

use super::definition::{Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::elementwise::{Elementwise, Takes, infer_binary, samples};
use crate::builder::Tensor;
use crate::op::{Binary, Op};

impl Tensor {
    /// The angle of the point (`x`, self), in radians, after broadcasting.
    #[track_caller]
    pub fn atan2(&self, x: &Tensor) -> Tensor {
        self.binary(Op::Binary(Binary::Atan2), x)
    }
}

/// With m = max(|a|, |b|): b / (a² + b²) = (b/m) / (m·((a/m)² + (b/m)²)).
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (a, b) = (&vjp.operands[0], &vjp.operands[1]);
    let m = a.abs().maximum(&b.abs());
    let (u, v) = (a / &m, b / &m);
    let g = vjp.cotangent() / (m * (&u * &u + &v * &v));
    vec![vjp.when(0, || &g * v), vjp.when(1, || -(&g * u))]
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = atan2(a, b)",
    parse: |_| Ok(Op::Binary(Binary::Atan2)),
    infer: |_, types| infer_binary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].zip(x[1], ty[0].clone(), libm::atan2, |a, _| a)],
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Element(4.0),
    onnx: &[],
    samples: || {
        let quadrants =
            vec![values::floats([4, 1], &[0.5, -0.5, 3.0, -3.0]), values::floats([4], &[0.25, -0.25, 2.0, -2.0])];
        let mut all = samples::binary((0.5, 4.0), (-4.0, 4.0), Tensor::atan2);
        all.push(Sample::floats("quadrants", quadrants, |_, x| vec![x[0].atan2(&x[1])]));
        all
    },
}
.define("atan2");
