//! `softmax(x)[i] = e^xᵢ / Σⱼ e^xⱼ` along an axis, over floats.
//!
//! The largest element is subtracted first, so nothing overflows. Half precision is computed in f32.

use super::composite::{accepted, axis, one_float, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Monoid;
use crate::shape::Type;

impl Tensor {
    /// eˣ / Σ eˣ along an axis, negative from the end. A row of which every element is −∞ gives NaN.
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("axis", axis))
    }
}

/// One float operand that has the axis.
pub fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    one_float(types)?;
    axis(&types[0], attributes.int("axis")?).map(drop)
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, axis) = (b.operands[0].widen(), accepted(b.attributes.int("axis")));
    let e = (&x - &x.reduce_keep(Monoid::Max, &[axis])).exp();
    vec![(&e / &e.reduce_keep(Monoid::Sum, &[axis])).cast(b.operands[0].dtype())]
}

/// y (g − Σ g y)
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (y, g) = (vjp.results[0].widen(), vjp.cotangent().widen());
    let along = (&g * &y).reduce_keep(Monoid::Sum, &[accepted(vjp.attributes.int("axis"))]);
    vec![Some((&y * &(&g - &along)).cast(vjp.operands[0].dtype()))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "softmax",
    formula: "y = eˣ / Σ eˣ along the axis",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Element(16.0),
    onnx: &["Softmax"],
    samples: || samples(Tensor::softmax),
};

/// Cases for this family: every axis, large magnitudes, ties, edge shapes.
pub fn samples(apply: fn(&Tensor, i64) -> Tensor) -> Vec<Sample> {
    let along = move |axis: i64| move |_: &_, x: &[Tensor]| vec![apply(&x[0], axis)];
    let cube = || vec![values::tensor([2, 5, 3], -4.0, 4.0, 1)];
    vec![
        Sample::floats("last axis", cube(), along(-1)),
        Sample::floats("first axis", cube(), along(0)),
        Sample::floats("middle axis", cube(), along(1)),
        Sample::floats("one element", vec![values::floats([3, 1], &[-2.0, 0.0, 5.0])], along(1)),
        Sample::floats("no rows", vec![values::floats([0, 3], &[])], along(1)),
        Sample::floats("far logits", vec![values::floats([2, 3], &[1e4, -1e4, 9999.0, -1e4, -9998.0, -1e4])], along(1)),
        Sample::floats("masked", vec![values::floats([3], &[f64::NEG_INFINITY, 1.0, 2.0])], along(0)).not_smooth(),
        Sample::floats("danger values", vec![values::danger()], along(0)).not_smooth(),
    ]
}
