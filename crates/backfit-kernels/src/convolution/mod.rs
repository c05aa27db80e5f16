//! Convolutions: forward, and the gradients with respect to input and kernel, as one instruction.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// One spatial dimension of a convolution. Strides are in elements.
///
/// Output position `o` and kernel position `k` meet at `o·stride + k·window_dilation − padding_low` of the dilated
/// input, in which `base_dilation − 1` zeros lie between neighbours and zeros lie all around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Extent of the input (before dilation).
    pub input: usize,
    /// Extent of the kernel (before dilation).
    pub kernel: usize,
    /// Extent of the output.
    pub output: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Zeros before the first input element; negative crops.
    pub padding_low: isize,
    /// Positions between neighbouring input elements (lhs dilation), at least 1.
    pub base_dilation: usize,
    /// Positions between neighbouring kernel elements (rhs dilation), at least 1.
    pub window_dilation: usize,
    /// Elements between neighbours in the input.
    pub lhs_stride: isize,
    /// Elements between neighbours in the kernel. To reverse the kernel, negate and let `rhs` point at its last element.
    pub rhs_stride: isize,
    /// Elements between neighbours in the output.
    pub out_stride: isize,
}

/// An input or output image, or a kernel: where it starts and how elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its element at index 0 of every dimension.
    pub addr: Addr,
    /// How elements are stored.
    pub elem: Elem,
}

/// `out[g, b, o, y] = Σ_{i, k} lhs[g, b, i, y·stride + k·window_dilation − padding] · rhs[g, o, i, k]`
///
/// Every dimension has explicit strides (in elements), so that any layout, and both gradients, are this instruction:
/// * with respect to the input: base dilation = stride, kernel reversed by negative strides, its in and out swapped;
/// * with respect to the kernel: batch and features swapped in input and output gradient, window dilation = stride.
///
/// Groups of features have `lhs_group_stride = in_channels · lhs_feature_stride`; groups of the batch (StableHLO's
/// `batch_group_count`) have `lhs_group_stride = batch · lhs_batch_stride`. In both,
/// `rhs_group_stride = out_channels · rhs_out_stride` and `out_group_stride = out_channels · out_feature_stride`.
///
/// Sums run over (in-channel, kernel position), the last fastest, in blocks that depend on the shape alone; see
/// [`Gemm`](crate::gemm::Gemm) for what that promises. Padding takes part as zeros: zero times infinity is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Input (or what plays it).
    pub lhs: Tensor,
    /// Kernel.
    pub rhs: Tensor,
    /// Output. Its elements must not overlap.
    pub out: Tensor,
    /// What sums are held in: F32 (of F32, F16, BF16), F64 (of any float) or an integer type (wrapping).
    pub acc: Elem,
    /// Independent groups; at least 1.
    pub groups: usize,
    /// Images per group.
    pub batch: usize,
    /// Input channels per group.
    pub in_channels: usize,
    /// Output channels per group.
    pub out_channels: usize,
    /// From one group's input to the next.
    pub lhs_group_stride: isize,
    /// From one image to the next.
    pub lhs_batch_stride: isize,
    /// From one input channel to the next.
    pub lhs_feature_stride: isize,
    /// From one group's kernel to the next.
    pub rhs_group_stride: isize,
    /// From one output channel of the kernel to the next.
    pub rhs_out_stride: isize,
    /// From one input channel of the kernel to the next.
    pub rhs_in_stride: isize,
    /// From one group's output to the next.
    pub out_group_stride: isize,
    /// From one output image to the next.
    pub out_batch_stride: isize,
    /// From one output channel to the next.
    pub out_feature_stride: isize,
    /// Spatial dimensions, outermost first: 0 to 3 of them.
    pub spatial: Vec<Spatial>,
}
