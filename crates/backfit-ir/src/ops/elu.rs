//! `elu(x) = x` where x > 0, else `alpha · (eˣ − 1)`, elementwise over floats.
//!
//! Clevert et al. 2016.

use super::composite::{accepted, activation_samples, number, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x where x > 0, else `alpha` · (eˣ − 1).
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("alpha", alpha))
    }
}

/// x where it is negative, else 0: keeps eˣ from overflowing where it is not taken.
fn negative_part(x: &Tensor) -> Tensor {
    x.minimum(&x.like(0.0))
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "elu",
    formula: "y = x where x > 0, else alpha · (eˣ − 1)",
    kind: rules(
        |types, a| {
            number(a, "alpha", "finite", f64::is_finite)?;
            one_float(types)
        },
        |b| {
            let (x, alpha) = (&b.operands[0], accepted(b.attributes.float("alpha")));
            vec![x.gt(&x.like(0.0)).select(x, &(negative_part(x).expm1() * alpha))]
        },
    ),
    derivative: Derivative::Rule(|vjp| {
        let (g, x, alpha) = (vjp.cotangent(), &vjp.operands[0], accepted(vjp.attributes.float("alpha")));
        vec![Some(x.gt(&x.like(0.0)).select(g, &(g * &(negative_part(x).exp() * alpha))))]
    }),
    tolerance: Tolerance::Element(8.0),
    onnx: &["Elu"],
    samples: || activation_samples(|x| x.elu(1.0)),
};
