//! `log_softmax(x) = x − log Σ eˣ` along an axis, over floats.
//!
//! The largest element is subtracted first, so nothing overflows. Half precision is computed in f32.

use super::composite::{accepted, rules};
use super::definition::{Body, Derivative, OpDef, Tolerance, Vjp};
use super::softmax::{check, samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Monoid;

impl Tensor {
    /// x − log Σ eˣ along an axis, negative from the end.
    #[track_caller]
    pub fn log_softmax(&self, axis: i64) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("axis", axis))
    }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, axis) = (b.operands[0].widen(), accepted(b.attributes.int("axis")));
    let z = &x - &x.reduce_keep(Monoid::Max, &[axis]);
    vec![(&z - &z.exp().reduce_keep(Monoid::Sum, &[axis]).log()).cast(b.operands[0].dtype())]
}

/// g − softmax(x) Σ g
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (y, g) = (vjp.results[0].widen(), vjp.cotangent().widen());
    let total = g.reduce_keep(Monoid::Sum, &[accepted(vjp.attributes.int("axis"))]);
    vec![Some((&g - &(&y.exp() * &total)).cast(vjp.operands[0].dtype()))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "log_softmax",
    formula: "y = x − log Σ eˣ along the axis",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(8.0),
    onnx: &["LogSoftmax"],
    samples: || samples(Tensor::log_softmax),
};
