//! Counts allocations of all threads while asked to: the proof that a training step makes none.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with a counter.
pub struct Counting;

fn count() {
    if COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every method passes its arguments unchanged to `System`, which fulfils the contract; the counters are
// atomics and allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the pointer stems from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer stems from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Begins to count, from zero.
pub fn start() {
    COUNT.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::SeqCst);
}

/// Ends counting and tells the number since [`start`].
pub fn stop() -> u64 {
    COUNTING.store(false, Ordering::SeqCst);
    COUNT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_allocations_between_start_and_stop_count() {
        super::start();
        let kept = std::hint::black_box(vec![0u8; 100]);
        assert!(super::stop() >= 1);
        drop(kept);
    }
}
