//! `relu(x) = max(x, 0)`, elementwise over floats. NaN stays NaN.
//!
//! Nair & Hinton 2010. The derivative at 0 is 0, as in PyTorch.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// max(x, 0).
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "relu",
    formula: "y = max(x, 0)",
    kind: rules(|types, _| one_float(types), |b| vec![b.operands[0].maximum(&b.operands[0].like(0.0))]),
    derivative: Derivative::Rule(|vjp| {
        let (g, y) = (vjp.cotangent(), &vjp.results[0]);
        vec![Some(y.gt(&y.like(0.0)).select(g, &g.like(0.0)))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Relu"],
    samples: || activation_samples(Tensor::relu),
};
