//! `detach(x) = x`, through which no gradient flows. Any dtype but packed ones. PyTorch: `detach`, JAX: `stop_gradient`.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Takes, infer_unary};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// The same values, a constant to derivatives.
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "detach",
    formula: "y = x, a constant to derivatives",
    kind: rules(|types, _| infer_unary(types, Takes::All).map(drop), |b| vec![b.operands[0].clone()]),
    derivative: Derivative::Zero,
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        vec![
            Sample::floats("ordinary", vec![values::tensor([2, 3], -2.0, 2.0, 1)], |_, x| vec![x[0].detach()])
                .not_smooth(),
            Sample::integers("integers", vec![values::integers([2], &[1, 2])], |_, x| vec![x[0].detach()]),
        ]
    },
};
