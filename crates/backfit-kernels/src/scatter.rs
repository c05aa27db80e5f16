//! Scattering slices by index.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;

/// What a scatter does with an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterOp {
    /// It replaces what is there; the last of several wins.
    Set,
    /// It is added (integers wrap; f16 and bf16 are rounded after each addition).
    Add,
}

/// `out[o, indices[i], j] op= updates[o, i, j]`, in ascending `i`, all dense. Updates whose index is out of range are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// What happens to an update.
    pub op: ScatterOp,
    /// How elements are stored.
    pub elem: Elem,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub axis_len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Indices, dense.
    pub indices: Addr,
    /// Integer type of the indices.
    pub index_elem: Elem,
    /// Number of indices.
    pub count: usize,
    /// Updates, outer × count × inner.
    pub updates: Addr,
    /// Operand and result, outer × axis_len × inner; holds the operand already.
    pub out: Addr,
}
