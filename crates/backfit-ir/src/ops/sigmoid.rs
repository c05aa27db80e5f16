//! `sigmoid(x) = 1 / (1 + e⁻ˣ)`, elementwise over floats; exact to the last digits on both sides of 0.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::chain;
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// 1 / (1 + e⁻ˣ), the logistic function.
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// With e = e^−|x|, which never overflows: 1 / (1 + e) where x ≥ 0, else e / (1 + e).
fn body(x: &Tensor) -> Tensor {
    let e = (-&x.abs()).exp();
    &x.ge(&x.like(0.0)).select(&e.like(1.0), &e) / &(&e + 1.0)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "sigmoid",
    formula: "y = 1 / (1 + e⁻ˣ)",
    kind: rules(|types, _| one_float(types), |b| vec![body(&b.operands[0])]),
    derivative: Derivative::Rule(|vjp| chain(vjp, |_, y| y * &(1.0 - y))),
    tolerance: Tolerance::Element(8.0),
    onnx: &["Sigmoid"],
    samples: || activation_samples(Tensor::sigmoid),
};
