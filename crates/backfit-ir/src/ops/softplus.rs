//! `softplus(x) = log(1 + eˣ)`, elementwise over floats, as max(x, 0) + log1p(e^−|x|), which never overflows.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::chain;
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// log(1 + eˣ), a smooth max(x, 0). Its derivative is the sigmoid.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "softplus",
    formula: "y = log(1 + eˣ)",
    kind: rules(
        |types, _| one_float(types),
        |b| {
            let x = &b.operands[0];
            vec![x.maximum(&x.like(0.0)) + (-x.abs()).exp().log1p()]
        },
    ),
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| x.sigmoid())),
    tolerance: Tolerance::Element(8.0),
    onnx: &["Softplus"],
    samples: || activation_samples(Tensor::softplus),
};
