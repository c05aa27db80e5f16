//! Stable sorting with payloads.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;

/// An array that is reordered as the keys are. `input` and `output` must not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Bytes of an element.
    pub elem_bytes: usize,
    /// Source, outer × len × inner.
    pub input: Addr,
    /// Result, of the same shape.
    pub output: Addr,
}

/// Sorts along the middle axis of dense outer × len × inner arrays. Equal keys keep their order, descending too;
/// NaNs come last, in their order; −0 equals +0.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// How keys are stored.
    pub elem: Elem,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Keys.
    pub keys: Addr,
    /// Sorted keys; must not overlap `keys`.
    pub sorted: Addr,
    /// What is reordered along.
    pub payloads: Vec<Payload>,
}
