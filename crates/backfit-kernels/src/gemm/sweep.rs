//! Walking a block of the result tile by tile.

use super::micro::{Engine, Form, MAX_COLS, MAX_ROWS, Tile};
use super::number::Number;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The longest block of the inner dimension: a panel of it stays in the first cache.
pub(crate) const MAX_INNER: usize = 384;

/// The length of the blocks (but the last) that an inner dimension is cut into. Part of what defines a product's bits.
pub(crate) fn inner_block(k: usize) -> usize {
    let blocks = k.div_ceil(MAX_INNER).max(1);
    k.div_ceil(blocks).max(1).next_multiple_of(4)
}

/// Blocks of at most `len` that `0..total` is cut into; one empty block where the total is 0.
pub(crate) fn blocks(total: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    let count = total.div_ceil(len).max(1);
    (0..count).map(move |i| i * len..((i + 1) * len).min(total))
}

/// Cuts `0..rows` into tiles of at most `most` rows; the last two are of like size, since small tiles are slow.
pub(crate) fn row_tiles(rows: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let full = if rows.is_multiple_of(most) { rows / most } else { (rows / most).saturating_sub(1) };
    let rest = rows - full * most;
    let half = if rest > most { rest.div_ceil(2) } else { rest.max(1) };
    let tail = (0..rest.div_ceil(half)).map(move |i| {
        let start = full * most + i * half;
        start..(start + half).min(rows)
    });
    (0..full).map(move |i| i * most..(i + 1) * most).chain(tail)
}

/// The left operand of a block.
pub(crate) enum Left<T> {
    /// Packed tile after tile, as [`row_tiles`] cuts.
    Packed(*const T),
    /// Where it lies: first element, and strides of rows and inner positions.
    Strided(*const T, isize, isize),
    /// Base, offsets of rows, offsets of inner positions.
    Taps(*const T, *const isize, *const isize),
}

/// One panel of columns of the right operand.
pub(crate) struct Columns<T> {
    /// Its first column.
    pub from: *const T,
    /// Elements between inner neighbours.
    pub inner_stride: isize,
    /// Offsets of inner positions, instead of a stride; null where there are none.
    pub taps: *const isize,
    /// How many columns.
    pub count: usize,
}

/// Where a block of the result goes: numbers with adjacent columns.
#[derive(Clone, Copy)]
pub(crate) struct Target<T> {
    /// First element.
    pub to: *mut T,
    /// Elements between rows.
    pub row_stride: isize,
    /// Whether to add to what is there.
    pub add: bool,
}

/// Multiplies `rows` rows of `left` by a panel of columns over `k` inner positions.
///
/// # Safety
/// The machine has the engine's instruction set. `left` is valid for `rows` × `k`; `columns` for `k` × whole registers;
/// `target` for `rows` × `columns.count`.
pub(crate) unsafe fn sweep<T: Number>(
    engine: &Engine<T>,
    left: &Left<T>,
    columns: &Columns<T>,
    rows: usize,
    k: usize,
    target: Target<T>,
) {
    let registers = columns.count.div_ceil(engine.lanes);
    let whole = columns.count == registers * engine.lanes;
    let (form, mut tile) = start(left, columns, k, target, whole);
    let mut spare = MaybeUninit::<[T; MAX_ROWS * MAX_COLS]>::uninit();
    let spare = spare.as_mut_ptr().cast::<T>();
    for range in row_tiles(rows, engine.rows) {
        let first = range.start as isize;
        let kernel = engine.kernel(form, range.len(), registers);
        // SAFETY: the tile lies inside operands and target; a ragged one is computed into `spare` and copied.
        unsafe {
            match *left {
                Left::Packed(from) => tile.a = from.add(range.start * k),
                Left::Strided(from, row, _) => tile.a = from.offset(first * row),
                Left::Taps(_, offsets, _) => tile.rows = offsets.add(range.start),
            }
            let to = target.to.offset(first * target.row_stride);
            if whole {
                tile.c = to;
                kernel(&tile);
            } else {
                tile.c = spare;
                kernel(&tile);
                merge(spare, range.len(), columns.count, Target { to, ..target });
            }
        }
    }
}

/// The form of kernel, and a tile with all that does not change from tile to tile.
fn start<T: Number>(left: &Left<T>, columns: &Columns<T>, k: usize, target: Target<T>, whole: bool) -> (Form, Tile<T>) {
    let mut tile = Tile {
        k,
        a: std::ptr::null(),
        a_row: 0,
        a_k: 0,
        b: columns.from,
        b_k: columns.inner_stride,
        taps: columns.taps,
        rows: std::ptr::null(),
        c: target.to,
        c_row: if whole { target.row_stride } else { MAX_COLS as isize },
        add: whole && target.add,
    };
    let form = match *left {
        Left::Packed(_) if columns.taps.is_null() => Form::Packed,
        Left::Packed(_) => Form::TapColumns,
        Left::Strided(_, row, inner) => {
            (tile.a_row, tile.a_k) = (row, inner);
            Form::Strided
        }
        Left::Taps(from, _, taps) => {
            (tile.a, tile.taps) = (from, taps);
            Form::TapRows
        }
    };
    (form, tile)
}

/// Copies or adds the first `cols` columns of a spare tile to the target.
unsafe fn merge<T: Number>(spare: *const T, rows: usize, cols: usize, target: Target<T>) {
    for i in 0..rows {
        for j in 0..cols {
            // SAFETY: the kernel wrote rows × cols of the spare tile; the caller's target is valid for them.
            unsafe {
                let value = *spare.add(i * MAX_COLS + j);
                let to = target.to.offset(i as isize * target.row_stride).add(j);
                *to = if target.add { (*to).plus(value) } else { value };
            }
        }
    }
}
