//! Reductions over sliding windows, and their derivative.
//!
//! A table of positions, made here, gathers the elements of every window; then the window is an axis like any other.

use super::reduction::{arg_reduce, neutral, reduce};
use crate::builder::{Builder, Val};
use backfit_ir::op::{Extreme, Monoid, ScatterMode};
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{Shape, Type};

/// `reduce_window`: axis after axis.
pub fn reduce_window(b: &mut Builder, monoid: Monoid, window: &Window, x: &Val) -> Val {
    let dtype = x.dtype();
    let mut y = b.widen(x);
    let start = neutral(b, monoid, y.dtype());
    let rank = x.shape().rank();
    for axis in 0..rank {
        let (size, stride, dilation) = (window.size[axis], window.stride[axis], window.dilation[axis]);
        if size == 1 && stride == 1 && window.pad_low[axis] == 0 && window.pad_high[axis] == 0 {
            continue;
        }
        let only = |list: &[usize]| (0..rank).map(|a| if a == axis { list[a] } else { 0 }).collect::<Vec<_>>();
        let padded = b.surround(&y, &only(&window.pad_low), &only(&window.pad_high), &start);
        let reach = (size - 1) * dilation + 1;
        let n = padded.shape()[axis];
        let count = if n < reach { 0 } else { (n - reach) / stride + 1 };
        let at = |i: usize| (i / size * stride + i % size * dilation) as i64;
        let positions = b.table(&[count, size], &(0..count * size).map(at).collect::<Vec<_>>());
        let windows = b.gather(&padded, &positions, axis);
        let accumulator = windows.dtype();
        y = reduce(b, monoid, &[axis + 1], accumulator, &windows);
    }
    b.cast(&y, dtype)
}

/// For every window, in row-major order, where its elements lie: `size` positions each, and `elements` for all of a
/// window that lies wholly in padding. The places of other padding are taken by the window's first element, which is as
/// good as not being there: where it is the first extreme it is so twice.
fn positions(window: &Window, shape: &Shape, count: &Shape) -> (Vec<i64>, usize) {
    let size: usize = window.size.iter().product();
    let mut all = Vec::with_capacity(count.elements() * size);
    for at in backfit_ir::interp::Odometer::new(count) {
        let found = window.elements(shape, &at);
        let spare = found.first().copied().unwrap_or(shape.elements());
        all.extend(std::iter::repeat_n(spare as i64, size - found.len()));
        all.extend(found.into_iter().map(|p| p as i64));
    }
    (all, size)
}

/// `select_and_scatter`. Axes along which windows are single elements are rows; all others together are one line.
pub fn select_and_scatter(b: &mut Builder, extreme: Extreme, window: &Window, x: &Val, source: &Val) -> Val {
    if source.elements() == 0 {
        return b.zeros(&x.ty);
    }
    let rank = x.shape().rank();
    let plain =
        |a: &usize| (window.size[*a], window.stride[*a], window.pad_low[*a], window.pad_high[*a]) == (1, 1, 0, 0);
    let (rows, line): (Vec<usize>, Vec<usize>) = (0..rank).partition(plain);
    let order = [&rows[..], &line].concat();
    let pick = |list: &[usize]| line.iter().map(|&a| list[a]).collect::<Vec<_>>();
    let slid = Window {
        size: pick(&window.size),
        stride: pick(&window.stride),
        dilation: pick(&window.dilation),
        pad_low: pick(&window.pad_low),
        pad_high: pick(&window.pad_high),
    };
    let (shape, count): (Shape, Shape) = (pick(x.shape()).into(), pick(source.shape()).into());
    let outer: usize = rows.iter().map(|&a| x.shape()[a]).product();
    let (table, size) = positions(&slid, &shape, &count);
    let (elements, windows) = (shape.elements(), count.elements());

    let moved = b.transpose(x, &order);
    let lines = b.reshape(&moved, &[outer, elements]);
    // One place more, for windows without elements.
    let zero = b.zero(x.dtype());
    let lines = b.surround(&lines, &[0, 0], &[0, 1], &zero);
    let positions = b.table(&[windows, size], &table);
    let patches = b.gather(&lines, &positions, 1);
    let first = arg_reduce(b, extreme, 2, &patches);
    let starts = b.table(&[windows], &(0..windows).map(|w| (w * size) as i64).collect::<Vec<_>>());
    let entry = b.binary("Add", &first, &starts);
    let flat = b.table(&[windows * size], &table);
    let targets = b.gather(&flat, &entry, 0);

    let accumulator = x.dtype().accumulator();
    let moved = b.transpose(source, &order);
    let updates = b.reshape(&moved, &[outer, windows]);
    let updates = b.cast(&updates, accumulator);
    let zeros = b.zeros(&Type::new(accumulator, [outer, elements + 1]));
    let y = super::indexing::scatter_elements(b, ScatterMode::Add, 1, [&zeros, &targets, &updates]);
    let y = b.narrow(&y, 1, 0, elements);
    let y = b.cast(&y, x.dtype());
    let y = b.reshape(&y, &order.iter().map(|&a| x.shape()[a]).collect::<Vec<_>>());
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(from, &to)| back[to] = from);
    b.transpose(&y, &back)
}
