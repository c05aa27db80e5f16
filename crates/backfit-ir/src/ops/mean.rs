//! `mean(x)`: the arithmetic mean over axes, which vanish; over floats.
//!
//! Half precision is summed in f32. Over no elements it is NaN, over no axes x itself.

use super::composite::{accepted, axes, one_float, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// The mean over axes, negative from the end, which vanish.
    #[track_caller]
    pub fn mean(&self, axes: &[i64]) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("axes", axes.to_vec()))
    }

    /// The mean of all elements.
    #[track_caller]
    pub fn mean_all(&self) -> Tensor {
        self.mean(&(0..self.rank() as i64).collect::<Vec<_>>())
    }
}

/// One float operand that has the axes.
pub fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    one_float(types)?;
    axes(&types[0], &attributes.ints("axes")?)
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, axes) = (b.operands[0].widen(), accepted(b.attributes.ints("axes")));
    let count: usize = axes.iter().map(|&a| x.dim(a)).product();
    vec![(x.sum(&axes) / count as f64).cast(b.operands[0].dtype())]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "mean",
    formula: "y = Σ x / n over the axes",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &["ReduceMean"],
    samples: || {
        let over = |axes: &'static [i64]| move |_: &_, x: &[Tensor]| vec![x[0].mean(axes)];
        let cube = || vec![values::tensor([3, 4, 5], -4.0, 4.0, 1)];
        vec![
            Sample::floats("last axis", cube(), over(&[-1])),
            Sample::floats("first and last", cube(), over(&[0, 2])),
            Sample::floats("all", cube(), over(&[0, 1, 2])),
            Sample::floats("no axes", cube(), over(&[])),
            Sample::floats("the sum exceeds f16", vec![values::floats([3], &[6e4, 6e4, 6e4])], over(&[0])),
            Sample::floats("over nothing", vec![values::floats([2, 0], &[])], over(&[1])).not_smooth(),
        ]
    },
};
