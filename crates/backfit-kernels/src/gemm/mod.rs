//! Matrix products.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// A matrix in memory, with strides in elements (0 broadcasts, negative reverses).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Element (0, 0) of batch item 0.
    pub addr: Addr,
    /// How elements are stored.
    pub elem: Elem,
    /// Elements between neighbouring rows.
    pub row_stride: isize,
    /// Elements between neighbouring columns.
    pub col_stride: isize,
}

/// One batch dimension, with strides in elements. The strides of `a` and `b` may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Extent.
    pub size: usize,
    /// Elements between neighbouring items of `a`.
    pub a_stride: isize,
    /// Elements between neighbouring items of `b`.
    pub b_stride: isize,
    /// Elements between neighbouring items of `c`.
    pub c_stride: isize,
}

/// `c = a·b`, or `c += a·b`, for every index of the batch.
///
/// The inner dimension is cut into blocks whose lengths depend on `k` alone. An element of a block is one chain of fused
/// multiply-adds over ascending k that starts from zero; blocks are added in order (to the old value of `c` where it
/// accumulates). So its bits depend neither on threads, nor on tiling, nor on the instruction set.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// Columns of `a`, rows of `b`.
    pub k: usize,
    /// Batch dimensions, outermost first; empty for a single product.
    pub batch: Vec<Batch>,
    /// Left operand, m × k.
    pub a: Matrix,
    /// Right operand, k × n.
    pub b: Matrix,
    /// Result, m × n. Its elements must not overlap.
    pub c: Matrix,
    /// What sums are held in: F32 (of F32, F16, BF16), F64 (of any float) or an integer type (wrapping).
    pub acc: Elem,
    /// Whether the product is added to what `c` holds.
    pub accumulate: bool,
}
