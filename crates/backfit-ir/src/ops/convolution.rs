//! `convolution(lhs, rhs)`: the generalised convolution (a cross-correlation, as in every ML framework).

/// Where batch, feature and spatial axes lie in an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Batch axis; for a kernel its output-feature axis.
    pub batch: usize,
    /// Feature axis; for a kernel its input-feature axis.
    pub feature: usize,
    /// Spatial axes, outermost first.
    pub spatial: Vec<usize>,
}

/// The attributes of `convolution`, as in StableHLO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Axes of the input.
    pub lhs: Layout,
    /// Axes of the kernel.
    pub rhs: Layout,
    /// Axes of the result.
    pub out: Layout,
    /// Step of the window, per spatial axis.
    pub stride: Vec<usize>,
    /// Padding before the first element, per spatial axis; negative cuts. Counted on the dilated input.
    pub pad_low: Vec<i64>,
    /// Padding after the last element, per spatial axis; negative cuts.
    pub pad_high: Vec<i64>,
    /// Elements of the input are this far apart (1 = dense): base dilation.
    pub lhs_dilation: Vec<usize>,
    /// Elements of the kernel are this far apart: window dilation.
    pub rhs_dilation: Vec<usize>,
    /// The kernel is applied reversed, per spatial axis.
    pub reverse: Vec<bool>,
    /// Input features and output features are split into this many groups.
    pub feature_groups: usize,
    /// The batch and the output features are split into this many groups (gradient of grouped kernels).
    pub batch_groups: usize,
    /// Dtype of the sums.
    pub accumulator: crate::dtype::DType,
    /// Dtype of the result.
    pub result: crate::dtype::DType,
    /// How exactly products are formed.
    pub precision: crate::op::Precision,
}
