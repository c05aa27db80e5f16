//! `max_pool2d(x)`: the largest element of every window of images `[N, C, H, W]`; padding counts as −∞.
//!
//! PyTorch: `max_pool2d`. Result: `[N, C, H', W']`, H' = ⌊(H + 2·padding − kernel) / stride⌋ + 1.
//! The gradient goes to the first largest element of a window.

use super::composite::rules;
use super::definition::{Derivative, OpDef, Tolerance};
use super::pooling::{check, samples, window};
use crate::builder::Tensor;
use crate::op::Monoid;

impl Tensor {
    /// The largest element of every window; extents are height, then width, padding at most half of the kernel.
    #[track_caller]
    pub fn max_pool2d(&self, kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Tensor {
        self.pool(&DEF, [kernel, stride, padding])
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "max_pool2d",
    formula: "y = max x over windows",
    kind: rules(check, |b| vec![b.operands[0].reduce_window(Monoid::Max, window(b.attributes).0)]),
    derivative: Derivative::Body,
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || samples(Tensor::max_pool2d),
};
