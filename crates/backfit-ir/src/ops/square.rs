//! `square(x) = x²`, elementwise over numbers; integers wrap.

use super::composite::{activation_samples, rules};
use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Takes, chain, infer_unary};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x².
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "square",
    formula: "y = x²",
    kind: rules(|types, _| infer_unary(types, Takes::Numbers).map(drop), |b| vec![&b.operands[0] * &b.operands[0]]),
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| x * 2.0)),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let mut all = activation_samples(Tensor::square);
        let x = values::integers([3], &[3, -7, 100]);
        all.push(Sample::integers("integers wrap", vec![x], |_, x| vec![x[0].square()]));
        all
    },
};
