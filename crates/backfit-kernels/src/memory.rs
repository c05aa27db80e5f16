//! The one memory that a machine runs in.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;

/// Alignment of a memory's first byte, and the most that an access may ask.
pub const ALIGNMENT: usize = 4096;

/// From this size on, a memory is aligned to huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// A fixed, zeroed, aligned allocation.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a memory owns its bytes, which have no thread affinity; it hands out references only through its own borrows.
unsafe impl Send for Memory {}
// SAFETY: as above; `&Memory` only reads.
unsafe impl Sync for Memory {}

impl Memory {
    /// A memory of `bytes` zeroes, or an error where the size is impossible or there is not so much.
    pub fn new(bytes: usize) -> Result<Memory, String> {
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { ALIGNMENT };
        let layout = Layout::from_size_align(bytes.max(1), align)
            .map_err(|_| format!("a memory of {bytes} bytes is impossible"))?;
        // SAFETY: the layout's size is at least 1.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or_else(|| format!("there is no memory of {bytes} bytes"))?;
        Ok(Memory { start, layout })
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Never: a memory has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of a range; `None` where it leaves the memory.
    pub fn read(&self, range: Range<usize>) -> Option<&[u8]> {
        // SAFETY: the allocation is initialised, lives as long as `self`, and is written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len()) }.get(range)
    }

    /// The bytes of a range, to be written; `None` where it leaves the memory.
    pub fn write(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        // SAFETY: as in `read`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }.get_mut(range)
    }

    /// The first byte, for the machine.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_zeroed_aligned_and_bounded() {
        for bytes in [0, 100, HUGE_PAGE + 1] {
            let mut memory = Memory::new(bytes).unwrap();
            assert!(memory.read(0..bytes).unwrap().iter().all(|&b| b == 0));
            assert!((memory.start() as usize).is_multiple_of(ALIGNMENT));
            assert!(memory.read(0..bytes.max(1) + 1).is_none());
            assert!(memory.write(bytes + 2..bytes + 3).is_none());
        }
        assert!(Memory::new(usize::MAX).is_err());
    }

    #[test]
    fn more_memory_than_there_is_is_refused() {
        let bytes = isize::MAX as usize - HUGE_PAGE;
        assert_eq!(Memory::new(bytes).unwrap_err(), format!("there is no memory of {bytes} bytes"));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut memory = Memory::new(64).unwrap();
        memory.write(8..12).unwrap().copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(memory.read(7..13), Some(&[0, 1, 2, 3, 4, 0][..]));
    }
}
