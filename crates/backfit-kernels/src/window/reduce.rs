//! Reductions over sliding windows.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// How a window's elements are joined. The start is the operation's neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOp {
    /// Sum (from 0).
    Sum,
    /// Product (from 1).
    Product,
    /// Maximum (from the least value, −∞ for floats); a NaN wins.
    Max,
    /// Minimum (from the greatest value, +∞ for floats); a NaN wins.
    Min,
}

/// One dimension of a windowed reduction; a dimension without windows has size, stride and dilations 1.
///
/// Window `o` holds the positions `o·stride + w·window_dilation − padding_low` of the dilated input, in which
/// `base_dilation − 1` holes lie between neighbours. Holes and padding contribute the neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// Extent of the input.
    pub input: usize,
    /// Extent of the output: the number of windows.
    pub output: usize,
    /// Elements of a window.
    pub size: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Positions before the first input element; negative crops. What lies behind follows from `output`.
    pub padding_low: isize,
    /// Positions between neighbouring input elements, at least 1.
    pub base_dilation: usize,
    /// Positions between neighbouring window elements, at least 1.
    pub window_dilation: usize,
    /// Elements between neighbours in the input.
    pub input_stride: isize,
    /// Elements between neighbours in the output.
    pub output_stride: isize,
}

/// `output[o] = op over the window of o`, elements of a window in row-major order. f16 and bf16 are joined in f32 and
/// rounded once; integers wrap.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceWindow {
    /// How elements are joined.
    pub op: WindowOp,
    /// How elements are stored, in input and output.
    pub elem: Elem,
    /// Input element 0.
    pub input: Addr,
    /// Output element 0.
    pub output: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<WindowDim>,
}
