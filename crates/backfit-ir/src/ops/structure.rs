//! What the operators that move, select and accumulate elements have in common: checks, lines, positions.

use crate::builder::{Graph, Tensor};
use crate::dtype::DType;
use crate::interp::Array;
use crate::op::{Binary, Op};
use crate::shape::{MAX_RANK, Shape, Type};

/// The largest extent, padding, stride or dilation that is computed with: beyond it nothing could be addressed.
pub const LIMIT: usize = isize::MAX as usize / 8;

/// The result types of an operator with one result, or why that result cannot exist.
pub fn sized(ty: Type) -> Result<Vec<Type>, String> {
    unpacked(&ty)?;
    if ty.shape.rank() > MAX_RANK {
        return Err(format!("the result {ty} has rank {}; at most {MAX_RANK} is supported", ty.shape.rank()));
    }
    let fits = ty.shape.checked_elements().is_some() && ty.shape.iter().all(|&d| d <= LIMIT);
    if fits { Ok(vec![ty]) } else { Err(format!("the result {ty} is too large to address")) }
}

/// Refuses packed dtypes.
pub fn unpacked(ty: &Type) -> Result<(), String> {
    if ty.dtype.is_packed() { Err(format!("{} is packed; cast it to a wider dtype first", ty.dtype)) } else { Ok(()) }
}

/// Refuses an axis that the type does not have.
pub fn has_axis(ty: &Type, axis: usize) -> Result<(), String> {
    if axis < ty.shape.rank() { Ok(()) } else { Err(format!("{ty} has no axis {axis}")) }
}

/// Refuses a list that has not one entry for each of `count` axes.
pub fn one_each(words: &str, entries: usize, count: usize) -> Result<(), String> {
    if entries == count { Ok(()) } else { Err(format!("'{words}' has {entries} entries for {count} axes")) }
}

/// Refuses operands that are not integer tensors to index with.
pub fn index_like(ty: &Type) -> Result<(), String> {
    unpacked(ty)?;
    if ty.dtype.is_integer() { Ok(()) } else { Err(format!("indices have an integer dtype, not {}", ty.dtype)) }
}

/// Extent of an axis whose elements are set `dilation` apart.
pub fn dilated(extent: usize, dilation: usize) -> i128 {
    if extent == 0 { 0 } else { (extent as i128 - 1) * dilation as i128 + 1 }
}

/// How many windows of a dilated extent fit into a padded extent.
pub fn windows(padded: i128, window: i128, stride: usize) -> i128 {
    if padded < window { 0 } else { (padded - window) / stride as i128 + 1 }
}

/// An extent that was computed, or the words for one that cannot be.
pub fn extent(value: i128, axis: usize) -> Result<usize, String> {
    let fits = usize::try_from(value).ok().filter(|&v| v <= LIMIT);
    fits.ok_or_else(|| format!("axis {axis} of the result would have extent {value}"))
}

/// The lines of a shape along an axis.
pub struct Lines {
    /// Offset of the first element of each line.
    pub starts: Vec<usize>,
    /// From one element of a line to the next.
    pub stride: usize,
    /// Elements of a line.
    pub length: usize,
}

impl Lines {
    /// The lines of a shape along an axis.
    pub fn new(shape: &Shape, axis: usize) -> Self {
        let (stride, length) = (shape[axis + 1..].iter().product(), shape[axis]);
        let outer: usize = shape[..axis].iter().product();
        let starts = (0..outer).flat_map(|o| (0..stride).map(move |i| o * length * stride + i)).collect();
        Lines { starts, stride, length }
    }

    /// The offset of an element of the line that starts at `start`.
    pub fn at(&self, start: usize, i: usize) -> usize {
        start + i * self.stride
    }
}

/// An element of an index tensor, as a position that is clamped to `0..=last`.
pub fn clamped(indices: &Array, i: usize, last: usize) -> usize {
    position(indices, i).map_or(0, |p| p.min(last))
}

/// An element of an index tensor; `None` where it is negative.
pub fn position(indices: &Array, i: usize) -> Option<usize> {
    let value = indices.as_ints()[i];
    if indices.ty.dtype == DType::U64 {
        return Some(usize::try_from(value as u64).unwrap_or(usize::MAX));
    }
    usize::try_from(value).ok()
}

/// The dtype in which positions among `elements` are counted: i32 where it suffices.
pub fn index_dtype(elements: usize) -> DType {
    if elements <= i32::MAX as usize { DType::I32 } else { DType::I64 }
}

/// Row-major positions of elements that lie at `along` on an axis and where they are on all others.
/// `along` has shape `shape` and the dtype of [`index_dtype`].
pub fn flat_positions(graph: &Graph, shape: &Shape, axis: usize, along: &Tensor) -> Tensor {
    let dtype = along.dtype();
    let stride: usize = shape[axis + 1..].iter().product();
    let here = graph.iota(dtype, [shape.elements()], 0).reshape(shape);
    let moved = along.binary(Op::Binary(Binary::Sub), &graph.iota(dtype, shape, axis));
    &here + &(&moved * stride as f64)
}
