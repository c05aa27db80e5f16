//! `variance(x) = Σ (x − mean x)² / (n − correction)` over axes, which vanish; over floats.
//!
//! In two passes, so a large mean does no harm. Half precision is accumulated in f32.

use super::composite::{accepted, axes, one_float, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, Vjp, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// The variance over axes, negative from the end, which vanish. A `correction` of 1 gives the unbiased estimate, 0 the biased one.
    /// NaN or infinite where there are no more elements than `correction`.
    #[track_caller]
    pub fn variance(&self, axes: &[i64], correction: usize) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("axes", axes.to_vec()).with("correction", correction))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    attributes.size("correction")?;
    one_float(types)?;
    axes(&types[0], &attributes.ints("axes")?)
}

/// x − mean x, and what the sum of its squares is divided by.
fn centered(x: &Tensor, attributes: &Attributes) -> (Tensor, Vec<i64>, f64) {
    let (x, axes) = (x.widen(), accepted(attributes.ints("axes")));
    let count: usize = axes.iter().map(|&a| x.dim(a)).product();
    let divisor = count.saturating_sub(accepted(attributes.size("correction")));
    (&x - &x.mean_keep(&axes), axes, divisor as f64)
}

fn body(b: &Body) -> Vec<Tensor> {
    let (centered, axes, divisor) = centered(&b.operands[0], b.attributes);
    vec![((&centered * &centered).sum(&axes) / divisor).cast(b.operands[0].dtype())]
}

/// 2 g (x − mean x) / (n − correction)
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let x = &vjp.operands[0];
    let (centered, axes, divisor) = centered(x, vjp.attributes);
    let g = vjp.cotangent().widen().spread_over(&axes, x.rank());
    vec![Some((centered * (g * (2.0 / divisor))).cast(x.dtype()))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "variance",
    formula: "y = Σ (x − mean x)² / (n − correction) over the axes",
    kind: rules(check, body),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let over = |axes: &'static [i64], correction| move |_: &_, x: &[Tensor]| vec![x[0].variance(axes, correction)];
        let cube = || vec![values::tensor([3, 4, 5], -4.0, 4.0, 1)];
        vec![
            Sample::floats("biased, last axis", cube(), over(&[-1], 0)),
            Sample::floats("unbiased, first and last", cube(), over(&[0, 2], 1)),
            Sample::floats("all", cube(), over(&[0, 1, 2], 1)),
            Sample::floats("far mean", vec![values::tensor([8], 1000.0, 1001.0, 2)], over(&[0], 0)),
            Sample::floats("one element", vec![values::floats([2, 1], &[3.0, 4.0])], over(&[1], 1)).not_smooth(),
        ]
    },
};
