//! `conv2d_im2col(x, weight, bias?)`: the convolution of [`super::conv2d`] as a product of matrices, for targets whose own
//! convolution needs constant weights.
//!
//! Chellapilla et al. 2006. Shapes, dtypes and options as there. For every position (u, v) of the kernel a slice of the padded
//! image holds what that position meets; joined they are patches `[N, groups, C/groups·kh·kw, H'·W']`, in the order
//! ci·kh·kw + u·kw + v, which a batched product multiplies with the weight as `[groups, O/groups, C/groups·kh·kw]`.
//! The axis of patches is never the last one.

use super::composite::{accepted, given, rules};
use super::conv2d::{Conv2d, biased, check, parse, samples};
use super::definition::{Body, Derivative, OpDef, Tolerance};
use crate::builder::Tensor;

impl Tensor {
    /// [`conv2d`](Tensor::conv2d) from slices, a concatenation and a product; gradients need no convolution either.
    #[track_caller]
    pub fn conv2d_im2col(&self, weight: &Tensor, bias: Option<&Tensor>, options: Conv2d) -> Tensor {
        self.compose(&DEF, &given(&[Some(weight), bias]), options.attributes())
    }
}

/// How far a kernel reaches, and how many positions it takes, along one axis.
struct Axis {
    kernel: usize,
    stride: usize,
    dilation: usize,
    positions: usize,
}

impl Axis {
    fn new(padded: &Tensor, weight: &Tensor, options: Conv2d, axis: usize) -> Self {
        let (kernel, extent) = (weight.dim(axis as i64 + 2), padded.dim(axis as i64 + 2));
        let (stride, dilation) = (options.stride[axis], options.dilation[axis]);
        let span = dilation.saturating_mul(kernel - 1).saturating_add(1);
        let positions = if extent < span { 0 } else { (extent - span) / stride + 1 };
        Axis { kernel, stride, dilation, positions }
    }

    /// Start and end of what element `u` of the kernel meets.
    fn range(&self, u: usize) -> [usize; 2] {
        match self.positions {
            0 => [0, 0],
            positions => [u * self.dilation, u * self.dilation + (positions - 1) * self.stride + 1],
        }
    }
}

/// `[N, C, kh·kw, H'·W']`.
fn patches(padded: &Tensor, [height, width]: &[Axis; 2]) -> Tensor {
    let &[samples, channels, ..] = padded.shape().dims() else { return padded.clone() };
    let places = (0..height.kernel).flat_map(|u| (0..width.kernel).map(move |v| (u, v)));
    let met = places.map(|(u, v)| {
        let ([top, bottom], [left, right]) = (height.range(u), width.range(v));
        let limits = [samples, channels, bottom, right];
        let slice = padded.slice(&[0, 0, top, left], &limits, &[1, 1, height.stride, width.stride]);
        slice.reshape([samples, channels, 1, height.positions * width.positions])
    });
    let met: Vec<Tensor> = met.collect();
    padded.graph().concatenate(&met.iter().collect::<Vec<_>>(), 2)
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, weight, options) = (&b.operands[0], &b.operands[1], accepted(parse(b.attributes)));
    let padding = [0, 0, options.padding[0] as i64, options.padding[1] as i64];
    let padded = if options.padding == [0, 0] { x.clone() } else { x.pad(&padding, &padding, &[0; 4], 0.0) };
    let axes = [0, 1].map(|axis| Axis::new(&padded, weight, options, axis));
    let (samples, groups) = (x.dim(0), options.groups);
    let [outputs, inputs] = [weight.dim(0) / groups, weight.dim(1) * axes[0].kernel * axes[1].kernel];
    let positions = axes[0].positions * axes[1].positions;
    let patches = patches(&padded, &axes).reshape([samples, groups, inputs, positions]);
    let matrices = weight.reshape([1, groups, outputs, inputs]).broadcast_to([samples, groups, outputs, inputs]);
    let y = matrices.dot_general(&patches, &[(0, 0), (1, 1)], &[(3, 2)]);
    let y = y.reshape([samples, groups * outputs, axes[0].positions, axes[1].positions]);
    vec![biased(y, b.operands.get(2))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "conv2d_im2col",
    formula: "y = conv2d(x, weight, bias), from slices and a product",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || samples(Tensor::conv2d_im2col),
};
