//! `avg_pool2d(x)`: the mean of every window of images `[N, C, H, W]`; padding counts as zeros.
//!
//! PyTorch: `avg_pool2d` with `count_include_pad`. Result: `[N, C, H', W']`, H' = ⌊(H + 2·padding − kernel) / stride⌋ + 1.
//! Half precision is summed in f32.

use super::composite::rules;
use super::definition::{Body, Derivative, OpDef, Tolerance};
use super::pooling::{check, samples, window};
use crate::builder::Tensor;
use crate::op::Monoid;

impl Tensor {
    /// The mean of every window; extents are height, then width, padding at most half of the kernel.
    #[track_caller]
    pub fn avg_pool2d(&self, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Tensor {
        self.pool(&DEF, [kernel, stride, padding])
    }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (window, elements) = window(b.attributes);
    let sum = b.operands[0].widen().reduce_window(Monoid::Sum, window);
    vec![(sum / elements as f64).cast(b.operands[0].dtype())]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "avg_pool2d",
    formula: "y = mean x over windows",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples: || samples(Tensor::avg_pool2d),
};
