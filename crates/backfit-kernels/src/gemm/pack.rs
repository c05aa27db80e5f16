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
            to.add(p * panel.width).cast::<[T; W]>().write_unaligned(row.map(S::load));
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
                let block = rows.map(|r| r.add(p).cast::<[S; 4]>().read_unaligned().map(S::load));
                for q in 0..4 {
                    let column = [block[0][q], block[1][q], block[2][q], block[3][q]];
                    to.add((p + q) * panel.width + i).cast::<[T; 4]>().write_unaligned(column);
                }
            }
        }
        copy_block::<S, T>(panel, 0..outer, inner..panel.inner, to);
        copy_block::<S, T>(panel, outer..panel.outer, 0..panel.inner, to);
    }
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
