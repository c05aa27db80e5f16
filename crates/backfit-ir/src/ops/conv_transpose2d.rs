//! `conv_transpose2d(x, weight, bias?)`: the transposed two-dimensional convolution, the gradient of `conv2d` to its input.
//!
//! PyTorch: `conv_transpose2d`. x: `[N, C, H, W]`, weight: `[C, O/groups, kh, kw]`, bias: `[O]`, of one float dtype.
//! Result: `[N, O, H', W']`, H' = (H − 1)·stride − 2·padding + dilation·(kh − 1) + output_padding + 1.

use super::composite::{accepted, given, pair, rules};
use super::conv2d::{biased, check_groups, check_operands, check_steps};
use super::convolution::{Convolution, Layout};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The options of [`Tensor::conv_transpose2d`], height then width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTranspose2d {
    /// Distance of the input's elements in the result.
    pub stride: [usize; 2],
    /// How much is cut off around the result.
    pub padding: [usize; 2],
    /// How much is added below and to the right; less than the stride or the dilation.
    pub output_padding: [usize; 2],
    /// Distance of the kernel's elements.
    pub dilation: [usize; 2],
    /// Input and output channels are split into this many groups.
    pub groups: usize,
}

impl Default for ConvTranspose2d {
    /// Dense, no padding, one group.
    fn default() -> Self {
        ConvTranspose2d { stride: [1, 1], padding: [0, 0], output_padding: [0, 0], dilation: [1, 1], groups: 1 }
    }
}

impl Tensor {
    /// The transposed convolution of images `[N, C, H, W]` with kernels `[C, O/groups, kh, kw]`.
    #[track_caller]
    pub fn conv_transpose2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvTranspose2d) -> Tensor {
        let attributes = Attributes::new()
            .with("stride", &options.stride[..])
            .with("padding", &options.padding[..])
            .with("output_padding", &options.output_padding[..])
            .with("dilation", &options.dilation[..])
            .with("groups", options.groups);
        self.compose(&DEF, &given(&[Some(weight), bias]), attributes)
    }
}

fn parse(a: &Attributes) -> Result<ConvTranspose2d, String> {
    let options = ConvTranspose2d {
        stride: pair(a, "stride")?,
        padding: pair(a, "padding")?,
        output_padding: pair(a, "output_padding")?,
        dilation: pair(a, "dilation")?,
        groups: a.size("groups")?,
    };
    check_steps(options.stride, options.dilation, options.padding, options.groups)?;
    let small = |s: usize| options.output_padding[s] < options.stride[s].max(options.dilation[s]);
    if !small(0) || !small(1) {
        return Err(format!(
            "output_padding {:?} must be less than the stride or the dilation",
            options.output_padding
        ));
    }
    Ok(options)
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    let options = parse(attributes)?;
    let groups = options.groups;
    check_operands(types, "[C, O/groups, kh, kw]", |weight| (weight.shape[0], weight.shape[1].saturating_mul(groups)))?;
    check_groups("input", types[1].shape[0], groups)?;
    (0..2).try_for_each(|s| {
        let (n, k) = (types[0].shape[2 + s] as i128, types[1].shape[2 + s] as i128);
        let spread = (n - 1) * options.stride[s] as i128 + options.dilation[s] as i128 * (k - 1) + 1;
        let extent = spread + options.output_padding[s] as i128 - 2 * options.padding[s] as i128;
        let enough = n > 0 && extent > 0;
        if enough { Ok(()) } else { Err(format!("padding {:?} leaves nothing of the result", options.padding)) }
    })
}

/// Kernels `[C, O/groups, …]` as `[O, C/groups, …]`.
fn regrouped(weight: &Tensor, groups: usize) -> Tensor {
    let (inputs, outputs) = (weight.dim(0) / groups, weight.dim(1));
    let [height, width] = [weight.dim(2), weight.dim(3)];
    let split = weight.reshape([groups, inputs, outputs, height, width]);
    split.transpose(&[0, 2, 1, 3, 4]).reshape([groups * outputs, inputs, height, width])
}

/// The input with its elements `stride` apart, convolved with the reversed kernel.
fn body(b: &Body) -> Vec<Tensor> {
    let (x, weight, options) = (&b.operands[0], &b.operands[1], accepted(parse(b.attributes)));
    let reach = |s: usize| (options.dilation[s] * (weight.dim(2 + s as i64) - 1)) as i64 - options.padding[s] as i64;
    let mut convolution = Convolution {
        pad_low: vec![reach(0), reach(1)],
        pad_high: (0..2).map(|s| reach(s) + options.output_padding[s] as i64).collect(),
        lhs_dilation: options.stride.to_vec(),
        rhs_dilation: options.dilation.to_vec(),
        reverse: vec![true; 2],
        feature_groups: options.groups,
        ..Convolution::dense(2, x.dtype())
    };
    let y = if options.groups == 1 {
        convolution.rhs = Layout { batch: 1, feature: 0, spatial: vec![2, 3] };
        x.convolution(weight, convolution)
    } else {
        x.convolution(&regrouped(weight, options.groups), convolution)
    };
    vec![biased(y, b.operands.get(2))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "conv_transpose2d",
    formula: "y[n, o, i·stride + u, j·stride + v] += x[n, c, i, j] · weight[c, o, u, v], plus bias[o]",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || {
        let with = |options| move |_: &_, x: &[Tensor]| vec![x[0].conv_transpose2d(&x[1], x.get(2), options)];
        let inputs =
            |x: &[usize], weight: &[usize]| vec![values::tensor(x, -2.0, 2.0, 1), values::tensor(weight, -2.0, 2.0, 2)];
        let mut biased = inputs(&[2, 2, 3, 4], &[2, 3, 3, 2]);
        biased.push(values::tensor([3], -2.0, 2.0, 3));
        let dense = ConvTranspose2d::default();
        let strided = ConvTranspose2d { stride: [2, 3], padding: [1, 2], output_padding: [1, 0], ..dense };
        vec![
            Sample::floats("bias", biased, with(dense)),
            Sample::floats("stride and padding", inputs(&[1, 2, 3, 4], &[2, 3, 3, 4]), with(strided)),
            Sample::floats(
                "dilation",
                inputs(&[1, 1, 3, 3], &[1, 2, 3, 2]),
                with(ConvTranspose2d { dilation: [2, 3], ..dense }),
            ),
            Sample::floats(
                "groups",
                inputs(&[2, 4, 3, 3], &[4, 3, 2, 2]),
                with(ConvTranspose2d { groups: 2, ..strided }),
            ),
        ]
    },
};
