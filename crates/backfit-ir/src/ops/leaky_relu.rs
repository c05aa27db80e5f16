//! `leaky_relu(x) = x` where x > 0, else `slope · x`, elementwise over floats.
//!
//! Maas et al. 2013. The derivative at 0 is the slope, as in PyTorch.

use super::composite::{accepted, activation_samples, number, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x where x > 0, else `slope` · x.
    #[track_caller]
    pub fn leaky_relu(&self, slope: f64) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("slope", slope))
    }
}

fn leak(x: &Tensor, value: &Tensor, attributes: &Attributes) -> Tensor {
    let slope = accepted(attributes.float("slope"));
    x.gt(&x.like(0.0)).select(value, &(value * slope))
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "leaky_relu",
    formula: "y = x where x > 0, else slope · x",
    kind: rules(
        |types, a| {
            number(a, "slope", "finite", f64::is_finite)?;
            one_float(types)
        },
        |b| vec![leak(&b.operands[0], &b.operands[0], b.attributes)],
    ),
    derivative: Derivative::Rule(|vjp| vec![Some(leak(&vjp.operands[0], vjp.cotangent(), vjp.attributes))]),
    tolerance: Tolerance::Element(1.0),
    onnx: &["LeakyRelu"],
    samples: || activation_samples(|x| x.leaky_relu(0.125)),
};
