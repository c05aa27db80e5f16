//! `clip_by_value(x) = min(max(x, low), high)`, elementwise over floats. NaN stays NaN. NumPy: `clip`.

use super::composite::{accepted, activation_samples, number, one_float, rules};
use super::definition::{Derivative, OpDef, Tolerance};
use crate::attributes::Attributes;
use crate::builder::Tensor;

impl Tensor {
    /// x cut to `low` … `high`.
    #[track_caller]
    pub fn clip_by_value(&self, low: f64, high: f64) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("low", low).with("high", high))
    }
}

fn bounds(a: &Attributes) -> Result<(f64, f64), String> {
    let bound = |name| number(a, name, "a number", |v| !v.is_nan());
    let (low, high) = (bound("low")?, bound("high")?);
    if low <= high {
        Ok((low, high))
    } else {
        Err(format!("low is {low} and high is {high}; low must not exceed high"))
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "clip_by_value",
    formula: "y = min(max(x, low), high)",
    kind: rules(
        |types, a| {
            bounds(a)?;
            one_float(types)
        },
        |b| {
            let (x, (low, high)) = (&b.operands[0], accepted(bounds(b.attributes)));
            vec![x.maximum(&x.like(low)).minimum(&x.like(high))]
        },
    ),
    derivative: Derivative::Rule(|vjp| {
        let (x, g, (low, high)) = (&vjp.operands[0], vjp.cotangent(), accepted(bounds(vjp.attributes)));
        let inside = x.ge(&x.like(low)).and(&x.le(&x.like(high)));
        vec![Some(inside.select(g, &g.like(0.0)))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || activation_samples(|x| x.clip_by_value(-0.75, 30.0)),
};
