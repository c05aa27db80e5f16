//! `relu6(x) = min(max(x, 0), 6)`, elementwise over floats. NaN stays NaN.
//!
//! Krizhevsky 2010. The derivative at 0 and at 6 is 0, as in PyTorch.

use super::composite::{activation_samples, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x cut to 0 … 6.
    #[track_caller]
    pub fn relu6(&self) -> Tensor {
        self.compose(&DEF, &[], Attributes::new())
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "relu6",
    formula: "y = min(max(x, 0), 6)",
    kind: rules(
        |types, _| one_float(types),
        |b| {
            let x = &b.operands[0];
            vec![x.maximum(&x.like(0.0)).minimum(&x.like(6.0))]
        },
    ),
    derivative: Derivative::Rule(|vjp| {
        let (g, y) = (vjp.cotangent(), &vjp.results[0]);
        let inside = y.gt(&y.like(0.0)).and(&y.lt(&y.like(6.0)));
        vec![Some(inside.select(g, &g.like(0.0)))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || activation_samples(Tensor::relu6),
};
