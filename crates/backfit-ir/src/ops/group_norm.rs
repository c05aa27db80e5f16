//! `group_norm(x, groups, weight?, bias?)`: channels of each group and all positions brought to mean 0 and variance 1.
//!
//! Wu & He 2018. x: `[N, C, *]`, weight and bias: `[C]`, floats; dtypes as in [`super::norm`]. `groups` divides C.

use super::composite::{accepted, epsilon, float, given, optional};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::norm::{affine, check_affine};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// `[N, C, *]` normalised over groups of channels and all positions, then scaled and shifted per channel.
    #[track_caller]
    pub fn group_norm(&self, groups: usize, weight: Option<&Tensor>, bias: Option<&Tensor>, epsilon: f64) -> Tensor {
        let attributes = Attributes::new()
            .with("groups", groups)
            .with("weight", weight.is_some())
            .with("bias", bias.is_some())
            .with("epsilon", epsilon);
        self.compose(&DEF, &given(&[weight, bias]), attributes)
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    epsilon(attributes)?;
    let groups = attributes.size("groups")?;
    let [weight, bias] = optional(types, attributes, 1, ["weight", "bias"])?;
    let x = &types[0];
    float("x", x)?;
    let &[_, channels, ..] = x.shape.dims() else {
        return Err(format!("x is {x}; it must have the axes [N, C, *]"));
    };
    if groups == 0 || channels % groups != 0 {
        return Err(format!("{groups} groups do not divide the {channels} channels of {x}"));
    }
    check_affine(&[("weight", weight), ("bias", bias)], &[channels])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, groups) = (&b.operands[0], accepted(b.attributes.size("groups")));
    let [weight, bias] = accepted(optional(b.operands, b.attributes, 1, ["weight", "bias"]));
    let samples = x.dim(0);
    let row = x.shape()[2..].iter().product::<usize>() * (x.dim(1) / groups);
    let rows = x.widen().reshape([samples, groups, row]);
    let normal = rows.layer_norm(None, None, accepted(epsilon(b.attributes))).reshape(x.shape());
    vec![affine(normal, weight, bias, |t| t.as_channels(x.rank())).cast(x.dtype())]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "group_norm",
    formula: "y = (x − mean) / √(variance + ε) · weight + bias over groups of channels",
    kind: super::composite::rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &["GroupNormalization"],
    samples: || {
        let inputs = |shape: &[usize]| {
            let channels = shape[1];
            vec![
                values::tensor(shape, -4.0, 4.0, 1),
                values::tensor([channels], 0.5, 1.5, 2),
                values::tensor([channels], -1.0, 1.0, 3),
            ]
        };
        let by = |groups| move |_: &_, x: &[Tensor]| vec![x[0].group_norm(groups, Some(&x[1]), Some(&x[2]), 1e-5)];
        vec![
            Sample::floats("images", inputs(&[2, 6, 2, 3]), by(3)),
            Sample::floats("one group", inputs(&[2, 4, 3]), by(1)),
            Sample::floats("every channel alone", inputs(&[1, 2, 5]), by(2)),
            Sample::floats("no positions, no affine", vec![values::tensor([2, 6], -4.0, 4.0, 1)], |_, x| {
                vec![x[0].group_norm(2, None, None, 1e-5)]
            }),
        ]
    },
};
