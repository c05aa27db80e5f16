//! Matrix products.

mod block;
mod lanes;
pub(crate) mod micro;
pub(crate) mod number;
pub(crate) mod pack;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;
use block::{Product, View};
use number::{Number, with_number};
use std::ops::Range;

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

impl Gemm {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(regions) = self.regions() {
            regions.into_iter().for_each(push);
        }
    }

    /// Whether the fields are consistent: types are offered, regions can be counted, and the result does not overlap itself.
    pub fn check(&self) -> Result<(), String> {
        number::check_elems([self.a.elem, self.b.elem], self.c.elem, self.acc)?;
        self.regions()?;
        let batch = self.batch.iter().map(|b| (b.size, b.c_stride));
        let matrix = [(self.m, self.c.row_stride), (self.n, self.c.col_stride)];
        check_distinct(batch.chain(matrix).collect())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        let number = with_number!(self.acc, T => size_of::<T>());
        let (m, n) = (self.m, self.n);
        block::scratch_numbers(m, n, self.k).max(block::scratch_numbers(n, m, self.k)) * number
    }

    fn regions(&self) -> Result<[Access; 3], String> {
        let of = |matrix: &Matrix, sizes: [usize; 2], stride: fn(&Batch) -> isize, write: bool| {
            let batch = self.batch.iter().map(move |b| (b.size, stride(b)));
            let axes = [(sizes[0], matrix.row_stride), (sizes[1], matrix.col_stride)];
            strided::access(matrix.addr, matrix.elem.size(), batch.chain(axes), write)
        };
        strided::product(self.batch.iter().map(|b| b.size))?;
        Ok([
            of(&self.a, [self.m, self.k], |b| b.a_stride, false)?,
            of(&self.b, [self.k, self.n], |b| b.b_stride, false)?,
            of(&self.c, [self.m, self.n], |b| b.c_stride, true)?,
        ])
    }

    /// Computes this thread's part of the product.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise.
        with_number!(self.acc, T => unsafe { self.run_as::<T>(ctx) });
    }

    unsafe fn run_as<T: Number>(&self, ctx: &Context) {
        let items: usize = self.batch.iter().map(|b| b.size).product();
        if items == 0 || self.m == 0 || self.n == 0 {
            return;
        }
        let swap = self.c.col_stride != 1 && self.c.row_stride == 1 && self.n > 1;
        let (m, n) = if swap { (self.n, self.m) } else { (self.m, self.n) };
        let engine = T::engine(ctx.isa);
        let whole_items = items.is_multiple_of(ctx.threads) || items >= 8 * ctx.threads;
        let (mine, rows, cols) = if whole_items {
            (ctx.share(items, 1), 0..m, 0..n)
        } else {
            let (rows, cols) = part(ctx, [m, n], [engine.rows, 2 * engine.lanes]);
            (0..items, rows, cols)
        };
        if rows.is_empty() || cols.is_empty() {
            return;
        }
        for item in mine {
            // SAFETY: the item lies inside the regions, which `check` counted; parts of threads are disjoint.
            unsafe {
                let product = self.item(ctx, item, swap);
                product.run::<T>(ctx.isa, rows.clone(), cols.clone(), ctx.scratch);
            }
        }
    }

    /// One product of the batch, transposed where the columns of the result are not adjacent but its rows are.
    unsafe fn item(&self, ctx: &Context, mut item: usize, swap: bool) -> Product {
        let mut offsets = [0isize; 3];
        for batch in self.batch.iter().rev() {
            let index = (item % batch.size) as isize;
            item /= batch.size;
            for (offset, stride) in offsets.iter_mut().zip([batch.a_stride, batch.b_stride, batch.c_stride]) {
                *offset += index * stride;
            }
        }
        let view = |matrix: &Matrix, offset: isize| {
            let bytes = offset * matrix.elem.size() as isize;
            // SAFETY: the item's matrix lies inside the declared access.
            let at = unsafe { ctx.pointer::<u8>(matrix.addr).offset(bytes) };
            let (row, col) =
                if swap { (matrix.col_stride, matrix.row_stride) } else { (matrix.row_stride, matrix.col_stride) };
            View { at, elem: matrix.elem, row, col }
        };
        let (a, b) = (view(&self.a, offsets[0]), view(&self.b, offsets[1]));
        let (a, b) = if swap { (b, a) } else { (a, b) };
        Product { a, b, c: view(&self.c, offsets[2]), k: self.k, accumulate: self.accumulate }
    }
}

/// This thread's rows and columns: threads form the grid whose largest part is cheapest to compute and to pack.
fn part(ctx: &Context, sizes: [usize; 2], tile: [usize; 2]) -> (Range<usize>, Range<usize>) {
    let cost = |down: usize| {
        let parts = [down, ctx.threads / down];
        let part: [usize; 2] =
            std::array::from_fn(|d| sizes[d].div_ceil(tile[d]).div_ceil(parts[d]) * tile[d].min(sizes[d]));
        // A packed element costs about as much as this many multiply-adds.
        part[0] * part[1] + 8 * (part[0] + part[1])
    };
    let down =
        (1..=ctx.threads).filter(|&down| ctx.threads.is_multiple_of(down)).min_by_key(|&down| cost(down)).unwrap_or(1);
    let across = ctx.threads / down;
    let cut = |d: usize, parts: usize, index: usize| {
        let tiles = sizes[d].div_ceil(tile[d]);
        let at = |i: usize| (tiles * i / parts * tile[d]).min(sizes[d]);
        at(index)..at(index + 1)
    };
    (cut(0, down, ctx.thread / across), cut(1, across, ctx.thread % across))
}

/// An error where two elements of a result may share memory: each stride must reach past all smaller ones.
pub(crate) fn check_distinct(mut axes: Vec<(usize, isize)>) -> Result<(), String> {
    if axes.iter().any(|&(size, _)| size == 0) {
        return Ok(());
    }
    axes.retain(|&(size, _)| size > 1);
    axes.sort_by_key(|&(_, stride)| stride.unsigned_abs());
    let mut reach = 0u128;
    for (size, stride) in axes {
        let stride = stride.unsigned_abs() as u128;
        if stride <= reach {
            return Err(format!("elements of the result overlap (a stride of {stride})"));
        }
        reach += (size as u128 - 1) * stride;
    }
    Ok(())
}
