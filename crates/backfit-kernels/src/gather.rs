//! Gathering slices by index.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;

/// `out[o, i, j] = src[o, clamp(indices[i]), j]`, all dense: an index below 0 reads slice 0, one past the end the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Bytes of an element.
    pub elem_bytes: usize,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis; at least 1 where anything is gathered.
    pub axis_len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Source, outer × axis_len × inner.
    pub src: Addr,
    /// Indices, dense.
    pub indices: Addr,
    /// Integer type of the indices.
    pub index_elem: Elem,
    /// Number of indices.
    pub count: usize,
    /// Result, outer × count × inner.
    pub out: Addr,
}
