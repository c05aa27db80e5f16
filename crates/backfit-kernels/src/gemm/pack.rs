//! Copying operands into panels: the order that micro-kernels read them in.

use super::lanes::Scalar;
use super::number::{Run, Stored};

/// What becomes one panel: `outer` rows (or columns) by `inner` positions of the inner dimension, strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Panel {
    pub from: *const u8,
    pub outer: usize,
    pub inner: usize,
    pub outer_stride: isize,
    pub inner_stride: isize,
    /// Entries of the panel per inner position, at least `outer`; those past it are zero.
    pub width: usize,
}

/// Writes `to[p · width + i] = from[p · inner_stride + i · outer_stride]`.
///
/// # Safety
/// The panel's source is valid as its sizes and strides say, for elements of type `S`; `to` for `width · inner` numbers.
pub(crate) unsafe fn pack<S: Stored<T>, T: Scalar>(panel: &Panel, to: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        if panel.outer < panel.width {
            for p in 0..panel.inner {
                for i in panel.outer..panel.width {
                    *to.add(p * panel.width + i) = T::ZERO;
                }
            }
        }
        match (panel.outer_stride, panel.inner_stride, panel.outer) {
            (1, _, 32) => copy_rows::<S, T, 32>(panel, to),
            (1, _, 16) => copy_rows::<S, T, 16>(panel, to),
            (1, _, 8) => copy_rows::<S, T, 8>(panel, to),
            (1, _, 6) => copy_rows::<S, T, 6>(panel, to),
            (_, 1, _) => transpose::<S, T>(panel, to),
            _ => copy_block::<S, T>(panel, 0..panel.outer, 0..panel.inner, to),
        }
    }
}

/// `W` adjacent elements at a time.
unsafe fn copy_rows<S: Stored<T>, T: Scalar, const W: usize>(panel: &Panel, to: *mut T) {
    let from = panel.from.cast::<S>();
    for p in 0..panel.inner {
        // SAFETY: the caller's promise; the panel has W entries per inner position.
        unsafe {
            let row = from.offset(p as isize * panel.inner_stride).cast::<[S; W]>().read_unaligned();
            // A loop over arrays: `map` of one this long is not inlined, and pointers might overlap.
            let mut numbers = [T::ZERO; W];
            for (number, stored) in numbers.iter_mut().zip(row) {
                *number = stored.load();
            }
            to.add(p * panel.width).cast::<[T; W]>().write_unaligned(numbers);
        }
    }
}

/// Four by four elements at a time, adjacent along the inner dimension in memory.
unsafe fn transpose<S: Stored<T>, T: Scalar>(panel: &Panel, to: *mut T) {
    let (outer, inner) = (panel.outer / 4 * 4, panel.inner / 4 * 4);
    let from = panel.from.cast::<S>();
    // SAFETY: the caller's promise; blocks lie inside the panel.
    unsafe {
        for i in (0..outer).step_by(4) {
            let rows: [*const S; 4] = std::array::from_fn(|r| from.offset((i + r) as isize * panel.outer_stride));
            for p in (0..inner).step_by(4) {
                let [a, b, c, d] =
                    [load4(rows[0].add(p)), load4(rows[1].add(p)), load4(rows[2].add(p)), load4(rows[3].add(p))];
                let to = to.add(p * panel.width + i);
                store4(to, [a[0], b[0], c[0], d[0]]);
                store4(to.add(panel.width), [a[1], b[1], c[1], d[1]]);
                store4(to.add(2 * panel.width), [a[2], b[2], c[2], d[2]]);
                store4(to.add(3 * panel.width), [a[3], b[3], c[3], d[3]]);
            }
        }
        copy_block::<S, T>(panel, 0..outer, inner..panel.inner, to);
        copy_block::<S, T>(panel, outer..panel.outer, 0..panel.inner, to);
    }
}

/// Four adjacent stored elements.
#[inline(always)]
unsafe fn load4<S: Stored<T>, T>(from: *const S) -> [T; 4] {
    // SAFETY: the caller's pointer is valid for four elements.
    let [a, b, c, d] = unsafe { from.cast::<[S; 4]>().read_unaligned() };
    [a.load(), b.load(), c.load(), d.load()]
}

/// Stores four adjacent numbers.
#[inline(always)]
unsafe fn store4<T>(to: *mut T, numbers: [T; 4]) {
    // SAFETY: the caller's pointer is valid for four numbers.
    unsafe { to.cast::<[T; 4]>().write_unaligned(numbers) }
}

/// One element at a time.
unsafe fn copy_block<S: Stored<T>, T: Scalar>(
    panel: &Panel,
    outer: std::ops::Range<usize>,
    inner: std::ops::Range<usize>,
    to: *mut T,
) {
    let from = panel.from.cast::<S>();
    for i in outer {
        for p in inner.clone() {
            let offset = p as isize * panel.inner_stride + i as isize * panel.outer_stride;
            // SAFETY: the caller's promise; the ranges lie inside the panel.
            unsafe { *to.add(p * panel.width + i) = (*from.offset(offset)).load() };
        }
    }
}

/// Reads `len` stored elements.
///
/// # Safety
/// Both runs are valid for `len` elements; `from` holds elements of type `S`.
pub(crate) unsafe fn load_run<S: Stored<T>, T>(from: Run<*const u8>, to: Run<*mut T>, len: usize) {
    let start = from.start.cast::<S>();
    // SAFETY: the caller's promise.
    unsafe {
        if from.stride == 1 && to.stride == 1 {
            for i in 0..len {
                *to.start.add(i) = (*start.add(i)).load();
            }
        } else {
            for i in 0..len as isize {
                *to.start.offset(i * to.stride) = (*start.offset(i * from.stride)).load();
            }
        }
    }
}

/// Rounds and stores `len` numbers.
///
/// # Safety
/// Both runs are valid for `len` elements; `to` holds elements of type `S`.
pub(crate) unsafe fn store_run<S: Stored<T>, T: Copy>(from: Run<*const T>, to: Run<*mut u8>, len: usize) {
    let start = to.start.cast::<S>();
    // SAFETY: the caller's promise.
    unsafe {
        if from.stride == 1 && to.stride == 1 {
            for i in 0..len {
                *start.add(i) = S::store(*from.start.add(i));
            }
        } else {
            for i in 0..len as isize {
                *start.offset(i * to.stride) = S::store(*from.start.offset(i * from.stride));
            }
        }
    }
}

/// Operands whose inner positions lie at listed offsets.
#[derive(Clone, Copy)]
pub(crate) struct Tapped<'a> {
    pub from: *const u8,
    pub outer: usize,
    pub outer_stride: isize,
    /// Offset of every inner position.
    pub taps: &'a [isize],
    /// Entries of the panel per inner position, at least `outer`; those past it are zero.
    pub width: usize,
}

/// Writes `to[p · width + i] = from[taps[p] + i · outer_stride]`.
///
/// # Safety
/// The source is valid for elements of type `S` at all these offsets; `to` for `width · taps.len()` numbers.
pub(crate) unsafe fn pack_tapped<S: Stored<T>, T: Scalar>(panel: &Tapped, to: *mut T) {
    let Tapped { from, outer, outer_stride, taps, width } = *panel;
    let step = if taps.len() > 1 { taps[1] - taps[0] } else { 1 };
    if taps.windows(2).all(|pair| pair[1] - pair[0] == step) {
        let first = taps.first().copied().unwrap_or(0) * size_of::<S>() as isize;
        // SAFETY: the caller's promise; the offsets are those of the listed ones.
        unsafe {
            let from = from.offset(first);
            let inner = taps.len();
            return pack::<S, T>(&Panel { from, outer, inner, outer_stride, inner_stride: step, width }, to);
        }
    }
    let from = from.cast::<S>();
    for (p, &tap) in taps.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(p * width);
            for i in 0..outer {
                *to.add(i) = (*from.offset(tap + i as isize * outer_stride)).load();
            }
            for i in outer..width {
                *to.add(i) = T::ZERO;
            }
        }
    }
}
