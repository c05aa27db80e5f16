//! `silu(x) = x · sigmoid(x)`, elementwise over floats; also called swish.
//!
//! Elfwing et al. 2017.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use super::elementwise::chain;
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x · sigmoid(x).
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "silu",
    formula: "y = x · sigmoid(x)",
    kind: rules(|types, _| one_float(types), |b| vec![&b.operands[0] * &b.operands[0].sigmoid()]),
    derivative: Derivative::Rule(|vjp| {
        chain(vjp, |x, _| {
            let s = x.sigmoid();
            &s * &(1.0 + x * (1.0 - &s))
        })
    }),
    tolerance: Tolerance::Element(8.0),
    onnx: &[],
    samples: || activation_samples(Tensor::silu),
};
