//! One thread's part of a product: packing operands block by block and sweeping over them.

use super::number::{Number, Run};
use super::pack::Panel;
use super::sweep::{Columns, Left, Target, blocks, inner_block, row_tiles, sweep};
use crate::elem::Elem;
use crate::isa::Isa;
use std::ops::Range;

/// Rows of a packed block of the left operand: it stays in the second cache.
const MAX_BLOCK_ROWS: usize = 144;
/// Columns of a packed block of the right operand.
const MAX_BLOCK_COLS: usize = 512;
/// Widest panel of columns, with whole registers.
const WIDEST: usize = super::micro::MAX_COLS;
/// A left operand swept over fewer panels than this is read where it lies.
const PACK_LEFT_FROM: usize = 6;
/// A right operand swept over fewer rows than this is read where it lies.
const PACK_RIGHT_FROM: usize = 16;

/// A matrix at an address, strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub at: *mut u8,
    pub elem: Elem,
    pub row: isize,
    pub col: isize,
}

impl View {
    /// The address of an element.
    unsafe fn element(&self, row: usize, col: usize) -> *mut u8 {
        let offset = row as isize * self.row + col as isize * self.col;
        // SAFETY: the caller asks for elements inside the matrix.
        unsafe { self.at.offset(offset * self.elem.size() as isize) }
    }
}

/// `c (+)= a·b` for one item of a batch, `c` having adjacent columns where possible.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub a: View,
    pub b: View,
    pub c: View,
    pub k: usize,
    pub accumulate: bool,
}

/// A thread's scratch: packed blocks, and sums that cannot be held in the result.
struct Scratch<T> {
    a: *mut T,
    b: *mut T,
    sums: *mut T,
}

/// Numbers of scratch that any thread needs for a product of this shape.
pub(crate) fn scratch_numbers(m: usize, n: usize, k: usize) -> usize {
    let (a, b) = block_sizes(m, n, k);
    // Either the result or its transpose is computed.
    let sums = m.min(MAX_BLOCK_ROWS) * n.min(MAX_BLOCK_COLS);
    a + b + sums
}

/// Numbers in the packed blocks of the left and the right operand.
fn block_sizes(m: usize, n: usize, k: usize) -> (usize, usize) {
    let inner = inner_block(k);
    let cols = n.min(MAX_BLOCK_COLS).next_multiple_of(WIDEST);
    (m.min(MAX_BLOCK_ROWS).next_multiple_of(16) * inner, cols * inner)
}

impl Product {
    /// Computes the elements of `rows` × `cols` of the result.
    ///
    /// # Safety
    /// The machine has `isa`; the views are valid for their matrices; `scratch` for [`scratch_numbers`] numbers of type `T`.
    pub unsafe fn run<T: Number>(&self, isa: Isa, rows: Range<usize>, cols: Range<usize>, scratch: *mut u8) {
        let direct = self.c.elem == T::ELEM && (self.c.col == 1 || cols.len() == 1);
        let (a, b) = block_sizes(rows.len(), cols.len(), self.k);
        let start = scratch.cast::<T>();
        // SAFETY: the scratch is as long as `scratch_numbers` says, for a shape no smaller than this part.
        let scratch = unsafe { Scratch { b: start, a: start.add(b), sums: start.add(b + a) } };
        for c in blocks(cols.len(), MAX_BLOCK_COLS) {
            let c = cols.start + c.start..cols.start + c.end;
            let strip = if direct { rows.len().max(1) } else { MAX_BLOCK_ROWS };
            for r in blocks(rows.len(), strip) {
                let r = rows.start + r.start..rows.start + r.end;
                // SAFETY: the block lies inside the matrices.
                unsafe { self.strip::<T>(isa, r, c.clone(), &scratch, direct) };
            }
        }
    }

    /// Computes rows × cols, over the whole inner dimension.
    unsafe fn strip<T: Number>(
        &self,
        isa: Isa,
        rows: Range<usize>,
        cols: Range<usize>,
        scratch: &Scratch<T>,
        direct: bool,
    ) {
        // SAFETY: the block lies inside the matrices; sums for MAX_BLOCK_ROWS × MAX_BLOCK_COLS fit the scratch.
        unsafe {
            let mut target = if direct {
                Target {
                    to: self.c.element(rows.start, cols.start).cast::<T>(),
                    row_stride: self.c.row,
                    add: self.accumulate,
                }
            } else {
                Target { to: scratch.sums, row_stride: cols.len() as isize, add: self.accumulate }
            };
            if !direct && self.accumulate {
                for (i, row) in rows.clone().enumerate() {
                    let from = Run { start: self.c.element(row, cols.start).cast_const(), stride: self.c.col };
                    let to = Run { start: scratch.sums.add(i * cols.len()), stride: 1 };
                    T::load_run(self.c.elem, from, to, cols.len());
                }
            }
            for inner in blocks(self.k, inner_block(self.k)) {
                self.inner_block(isa, [&rows, &cols, &inner], scratch, target);
                target.add = true;
            }
            if !direct {
                for (i, row) in rows.enumerate() {
                    let from = Run { start: scratch.sums.add(i * cols.len()).cast_const(), stride: 1 };
                    let to = Run { start: self.c.element(row, cols.start), stride: self.c.col };
                    T::store_run(self.c.elem, from, to, cols.len());
                }
            }
        }
    }

    /// Adds the product over one block of the inner dimension.
    unsafe fn inner_block<T: Number>(
        &self,
        isa: Isa,
        [rows, cols, inner]: [&Range<usize>; 3],
        scratch: &Scratch<T>,
        target: Target<T>,
    ) {
        let engine = T::engine(isa);
        let wide = 2 * engine.lanes;
        let k = inner.len();
        let pack_right = self.b.elem != T::ELEM || self.b.col != 1 || rows.len() >= PACK_RIGHT_FROM;
        let pack_left = self.a.elem != T::ELEM || cols.len() >= PACK_LEFT_FROM * wide;
        for (index, r) in blocks(rows.len(), MAX_BLOCK_ROWS).enumerate() {
            let first = rows.start + r.start;
            // SAFETY: blocks lie inside the matrices and, packed, inside the scratch.
            unsafe {
                let left = if pack_left {
                    self.pack_left(engine.rows, first..rows.start + r.end, inner, scratch.a);
                    Left::Packed(scratch.a.cast_const())
                } else {
                    Left::Strided(self.a.element(first, inner.start).cast::<T>(), self.a.row, self.a.col)
                };
                for panel in blocks(cols.len(), wide) {
                    let count = panel.len();
                    let width = count.next_multiple_of(engine.lanes);
                    let source = self.b.element(inner.start, cols.start + panel.start);
                    let packed = scratch.b.add(panel.start * k);
                    let columns = if pack_right || count != width {
                        if index == 0 {
                            self.pack_right(source, count, width, k, packed);
                        }
                        Columns {
                            from: packed.cast_const(),
                            inner_stride: width as isize,
                            taps: std::ptr::null(),
                            count,
                        }
                    } else {
                        Columns { from: source.cast::<T>(), inner_stride: self.b.row, taps: std::ptr::null(), count }
                    };
                    let to = target.to.offset(r.start as isize * target.row_stride).add(panel.start);
                    sweep(engine, &left, &columns, r.len(), k, Target { to, ..target });
                }
            }
        }
    }

    /// Packs rows of the left operand, tile after tile.
    unsafe fn pack_left<T: Number>(&self, most: usize, rows: Range<usize>, inner: &Range<usize>, to: *mut T) {
        for tile in row_tiles(rows.len(), most) {
            // SAFETY: the tile lies inside the matrix and the scratch.
            unsafe {
                let panel = Panel {
                    from: self.a.element(rows.start + tile.start, inner.start),
                    outer: tile.len(),
                    inner: inner.len(),
                    outer_stride: self.a.row,
                    inner_stride: self.a.col,
                    width: tile.len(),
                };
                T::pack(self.a.elem, &panel, to.add(tile.start * inner.len()));
            }
        }
    }

    /// Packs a panel of the right operand, filled with zeros to whole registers.
    unsafe fn pack_right<T: Number>(&self, from: *const u8, count: usize, width: usize, k: usize, to: *mut T) {
        let panel = Panel { from, outer: count, inner: k, outer_stride: self.b.col, inner_stride: self.b.row, width };
        // SAFETY: the panel lies inside the matrix and the scratch.
        unsafe { T::pack(self.b.elem, &panel, to) }
    }
}
