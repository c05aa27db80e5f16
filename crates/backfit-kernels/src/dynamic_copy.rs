//! Slices whose start is read from memory when the program runs.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// One dimension of a dynamic slice. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDim {
    /// Extent of the whole array.
    pub whole: usize,
    /// Extent of the window, at most `whole`.
    pub window: usize,
    /// Elements between neighbours in the whole array.
    pub whole_stride: isize,
    /// Elements between neighbours in the window's dense or strided copy.
    pub window_stride: isize,
    /// Where the window starts: a scalar of the index type, clamped to `0..=whole − window`.
    pub start: Addr,
}

/// Copies the window of `whole` that starts at run-time indices into `window`.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSlice {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Integer type of the start indices.
    pub index_elem: Elem,
    /// The array that is read.
    pub whole: Addr,
    /// The copy that is written.
    pub window: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SliceDim>,
}

/// Copies `window` over the window of `whole` that starts at run-time indices; `whole` holds the operand already.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicUpdateSlice {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Integer type of the start indices.
    pub index_elem: Elem,
    /// The array that is written.
    pub whole: Addr,
    /// The update that is read.
    pub window: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SliceDim>,
}
