//! `conv2d(x, weight, bias?)`: the two-dimensional convolution of neural networks (a cross-correlation).
//!
//! PyTorch: `conv2d`. x: `[N, C, H, W]`, weight: `[O, C/groups, kh, kw]`, bias: `[O]`, of one float dtype.
//! Result: `[N, O, H', W']`, H' = ⌊(H + 2·padding − dilation·(kh − 1) − 1) / stride⌋ + 1.

use super::composite::{accepted, dtype, float, given, pair, rank, rules, shape};
use super::convolution::Convolution;
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// The options of [`Tensor::conv2d`], height then width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Step of the kernel.
    pub stride: [usize; 2],
    /// Zeros around the image.
    pub padding: [usize; 2],
    /// Distance of the kernel's elements.
    pub dilation: [usize; 2],
    /// Input and output channels are split into this many groups.
    pub groups: usize,
}

impl Default for Conv2d {
    /// Dense, every position, no padding, one group.
    fn default() -> Self {
        Conv2d { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 }
    }
}

impl Tensor {
    /// The convolution of images `[N, C, H, W]` with kernels `[O, C/groups, kh, kw]`.
    #[track_caller]
    pub fn conv2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: Conv2d) -> Tensor {
        self.compose(&DEF, &given(&[Some(weight), bias]), options.attributes())
    }
}

impl Conv2d {
    /// As attributes of the operator.
    pub fn attributes(&self) -> Attributes {
        Attributes::new()
            .with("stride", &self.stride[..])
            .with("padding", &self.padding[..])
            .with("dilation", &self.dilation[..])
            .with("groups", self.groups)
    }
}

/// Reads the attributes.
pub fn parse(a: &Attributes) -> Result<Conv2d, String> {
    let options = Conv2d {
        stride: pair(a, "stride")?,
        padding: pair(a, "padding")?,
        dilation: pair(a, "dilation")?,
        groups: a.size("groups")?,
    };
    check_steps(options.stride, options.dilation, options.padding, options.groups)?;
    Ok(options)
}

/// Refuses steps and groups of 0, and what is too large to compute with.
pub fn check_steps(stride: [usize; 2], dilation: [usize; 2], padding: [usize; 2], groups: usize) -> Result<(), String> {
    let steps = [stride, dilation].concat();
    if groups == 0 || steps.contains(&0) {
        return Err("stride, dilation and groups must be at least 1".to_owned());
    }
    if steps.iter().chain(&padding).any(|&v| v > 1 << 32) {
        return Err("stride, dilation or padding is too large to address".to_owned());
    }
    Ok(())
}

/// Checks images, kernels and a bias for each of `outputs` channels; `inputs` is how many channels the kernels read.
pub fn check_operands(types: &[Type], axes: &str, channels: impl Fn(&Type) -> (usize, usize)) -> Result<(), String> {
    let (x, weight, bias) = match types {
        [x, weight] => (x, weight, None),
        [x, weight, bias] => (x, weight, Some(bias)),
        _ => return Err(format!("it takes 2 or 3 operands, not {}", types.len())),
    };
    float("x", x)?;
    rank("x", x, 4, "[N, C, H, W]")?;
    rank("weight", weight, 4, axes)?;
    dtype("weight", weight, x.dtype)?;
    if weight.shape[2..].contains(&0) {
        return Err(format!("weight is {weight}; its kernels have no elements"));
    }
    let (inputs, outputs) = channels(weight);
    if x.shape[1] != inputs {
        return Err(format!("x {x} has {} channels, weight {weight} takes {inputs}", x.shape[1]));
    }
    match bias {
        Some(bias) => dtype("bias", bias, x.dtype).and_then(|()| shape("bias", bias, &[outputs])),
        None => Ok(()),
    }
}

/// Refuses channels that the groups do not divide.
pub fn check_groups(words: &str, channels: usize, groups: usize) -> Result<(), String> {
    if channels.is_multiple_of(groups) {
        Ok(())
    } else {
        Err(format!("{groups} groups do not divide {channels} {words} channels"))
    }
}

/// Checks operands and attributes.
pub fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    let groups = parse(attributes)?.groups;
    check_operands(types, "[O, C/groups, kh, kw]", |weight| (weight.shape[1].saturating_mul(groups), weight.shape[0]))?;
    check_groups("output", types[1].shape[0], groups)
}

/// y + bias per channel, where there is one.
pub fn biased(y: Tensor, bias: Option<&Tensor>) -> Tensor {
    bias.map_or(y.clone(), |bias| &y + bias.as_channels(4))
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, options) = (&b.operands[0], accepted(parse(b.attributes)));
    let padding: Vec<i64> = options.padding.iter().map(|&p| p as i64).collect();
    let convolution = Convolution {
        stride: options.stride.to_vec(),
        pad_low: padding.clone(),
        pad_high: padding,
        rhs_dilation: options.dilation.to_vec(),
        feature_groups: options.groups,
        ..Convolution::dense(2, x.dtype())
    };
    vec![biased(x.convolution(&b.operands[1], convolution), b.operands.get(2))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "conv2d",
    formula: "y[n, o, i, j] = bias[o] + Σ x[n, c, i·stride + u, j·stride + v] · weight[o, c, u, v]",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || samples(Tensor::conv2d),
};

/// A convolution of images, weights and perhaps a bias.
type Convolve = fn(&Tensor, &Tensor, Option<&Tensor>, Conv2d) -> Tensor;

/// Samples of an operator that convolves like this.
pub fn samples(convolve: Convolve) -> Vec<Sample> {
        let with = |options| move |_: &_, x: &[Tensor]| vec![convolve(&x[0], &x[1], x.get(2), options)];
        let inputs =
            |x: &[usize], weight: &[usize]| vec![values::tensor(x, -2.0, 2.0, 1), values::tensor(weight, -2.0, 2.0, 2)];
        let mut biased = inputs(&[2, 2, 5, 6], &[3, 2, 3, 2]);
        biased.push(values::tensor([3], -2.0, 2.0, 3));
        let dense = Conv2d::default();
        vec![
            Sample::floats("bias", biased, with(dense)),
            Sample::floats(
                "stride and padding",
                inputs(&[1, 2, 6, 5], &[3, 2, 3, 3]),
                with(Conv2d { stride: [2, 3], padding: [1, 2], ..dense }),
            ),
            Sample::floats(
                "dilation",
                inputs(&[1, 1, 7, 6], &[2, 1, 3, 2]),
                with(Conv2d { dilation: [2, 3], ..dense }),
            ),
            Sample::floats(
                "groups",
                inputs(&[2, 4, 4, 4], &[6, 2, 3, 3]),
                with(Conv2d { groups: 2, padding: [1, 1], ..dense }),
            ),
            Sample::floats("depthwise", inputs(&[1, 3, 4, 4], &[3, 1, 3, 3]), with(Conv2d { groups: 3, ..dense })),
            Sample::floats("1 × 1", inputs(&[2, 3, 2, 2], &[4, 3, 1, 1]), with(dense)),
        ]
}
