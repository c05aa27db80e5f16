//! Select and scatter: the gradient of max-pooling.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// Which element of a window is selected. The first wins among equals; the first NaN wins over all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The first greatest (comparison `ge`).
    Max,
    /// The first least (comparison `le`).
    Min,
}

/// One dimension of a select-and-scatter; a dimension without windows has size and stride 1.
///
/// Window `s` holds the positions `s·stride + w − padding_low` of the operand; those outside are never selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectDim {
    /// Extent of operand and output.
    pub operand: usize,
    /// Extent of the source: the number of windows.
    pub source: usize,
    /// Elements of a window.
    pub size: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Positions before the first operand element; negative crops.
    pub padding_low: isize,
    /// Elements between neighbours in the operand.
    pub operand_stride: isize,
    /// Elements between neighbours in the source.
    pub source_stride: isize,
    /// Elements between neighbours in the output.
    pub output_stride: isize,
}

/// Fills `output` with zeros, then, window by window in row-major order, adds the window's source element to the output
/// at the position of the operand element that the window selects. f16 and bf16 are rounded after each addition.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectAndScatter {
    /// Which element of a window is selected.
    pub select: Select,
    /// How elements are stored, in all three.
    pub elem: Elem,
    /// Operand element 0.
    pub operand: Addr,
    /// Source element 0.
    pub source: Addr,
    /// Output element 0. Its elements must not overlap.
    pub output: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SelectDim>,
}
