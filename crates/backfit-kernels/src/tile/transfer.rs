//! Between memory and slots.

use crate::elem::Elem;
use crate::isa::Isa;
use crate::stored::{Stored, with_stored};

/// Reads `n` elements, `stride` apart, into a slot.
///
/// # Safety
/// The elements are readable and the slot has room for `n` values of the element's lane; they do not overlap.
pub(super) unsafe fn load(isa: Isa, elem: Elem, from: *const u8, stride: isize, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 && elem.fills_lane() {
            return std::ptr::copy_nonoverlapping(from, to, n * elem.size());
        }
        if stride == 1 {
            return widen(isa, elem, from, to, n);
        }
        with_stored!(elem, S => load_strided::<S>(from.cast(), stride, to.cast(), n));
    }
}

/// Writes `n` values of a slot to elements, `stride` apart.
///
/// # Safety
/// As for [`load`], the other way round.
pub(super) unsafe fn store(isa: Isa, elem: Elem, from: *const u8, to: *mut u8, stride: isize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 && elem.fills_lane() {
            return std::ptr::copy_nonoverlapping(from, to, n * elem.size());
        }
        if stride == 1 {
            return narrow(isa, elem, from, to, n);
        }
        with_stored!(elem, S => store_strided::<S>(from.cast(), to.cast(), stride, n));
    }
}

unsafe fn load_strided<S: Stored>(from: *const S, stride: isize, to: *mut S::Lane, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let to = std::slice::from_raw_parts_mut(to, n);
        if stride == 0 {
            to.fill((*from).load());
        } else {
            for (i, value) in to.iter_mut().enumerate() {
                *value = (*from.offset(i as isize * stride)).load();
            }
        }
    }
}

unsafe fn store_strided<S: Stored>(from: *const S::Lane, to: *mut S, stride: isize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        for (i, &value) in std::slice::from_raw_parts(from, n).iter().enumerate() {
            *to.offset(i as isize * stride) = S::store(value);
        }
    }
}

per_isa! { fn widen(elem: Elem, from: *const u8, to: *mut u8, n: usize) = widen_body }
per_isa! { fn narrow(elem: Elem, from: *const u8, to: *mut u8, n: usize) = narrow_body }
per_isa! {
    /// Rounds or wraps the values of a slot to what the element type can hold.
    ///
    /// # Safety
    /// The slot has `n` values of the element's lane.
    pub(super) fn settle(elem: Elem, slot: *mut u8, n: usize) = settle_body
}

#[inline(always)]
unsafe fn widen_body(elem: Elem, from: *const u8, to: *mut u8, n: usize) {
    with_stored!(elem, S => {
        // SAFETY: the caller's promise.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(from.cast::<S>(), n), std::slice::from_raw_parts_mut(to.cast(), n))
        };
        for i in 0..n {
            to[i] = from[i].load();
        }
    });
}

#[inline(always)]
unsafe fn narrow_body(elem: Elem, from: *const u8, to: *mut u8, n: usize) {
    with_stored!(elem, S => {
        // SAFETY: the caller's promise.
        let (from, to) = unsafe {
            (std::slice::from_raw_parts(from.cast(), n), std::slice::from_raw_parts_mut(to.cast::<S>(), n))
        };
        for i in 0..n {
            to[i] = S::store(from[i]);
        }
    });
}

#[inline(always)]
unsafe fn settle_body(elem: Elem, slot: *mut u8, n: usize) {
    with_stored!(elem, S => {
        // SAFETY: the caller's promise.
        let values = unsafe { std::slice::from_raw_parts_mut(slot.cast(), n) };
        for value in values {
            *value = S::store(*value).load();
        }
    });
}

/// Writes `n` lane values to contiguous elements.
///
/// # Safety
/// As for [`store`].
pub(crate) unsafe fn write_lanes(isa: Isa, elem: Elem, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { store(isa, elem, from, to, 1, n) }
}
