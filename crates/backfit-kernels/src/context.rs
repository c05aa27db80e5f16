//! What an instruction is given when it runs, and what it says about itself when it is validated.

use crate::isa::Isa;

/// A byte address: an offset from one of the base registers of the running function's frame.
///
/// Base 0 of the entry function is the start of the machine's memory. A call fills the base
/// registers of the callee, one per operand, result and scratch area, so that one compiled body serves
/// every call and every iteration of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addr {
    /// Index of the base register.
    pub base: u16,
    /// Bytes from it.
    pub offset: usize,
}

/// A range of bytes that an instruction may touch: `[addr, addr + bytes)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First byte.
    pub addr: Addr,
    /// Length. Zero where nothing is touched.
    pub bytes: usize,
    /// Alignment in bytes that the kernel relies on.
    pub align: usize,
    /// Whether it is written.
    pub write: bool,
}

/// The state that one thread runs an instruction with.
///
/// Invariant, established by `Program::new` and by the machine: every [`Access`] that the instruction
/// declares lies inside one allocation, is aligned as declared, and is shared with other threads only as the
/// instruction itself divides the work.
pub struct Context<'a> {
    /// This thread's number, below `threads`.
    pub thread: usize,
    /// How many threads run this instruction. They all call `run` with the same instruction;
    /// each does its own part, and the parts write disjoint bytes.
    pub threads: usize,
    /// The base registers of the running frame.
    pub bases: &'a [*mut u8],
    /// Instruction set to use.
    pub isa: Isa,
    /// This thread's private scratch (tile registers), 64-byte aligned, as long as the program's instructions asked for.
    pub scratch: *mut u8,
}

impl Context<'_> {
    /// The pointer behind an address.
    ///
    /// # Safety
    /// `addr` must belong to a declared access of the running instruction.
    pub unsafe fn pointer<T>(&self, addr: Addr) -> *mut T {
        // SAFETY: the access was validated to lie inside the allocation behind this base.
        unsafe { self.bases[addr.base as usize].add(addr.offset).cast() }
    }

    /// The half-open range of `0..items` that this thread works on, cut at multiples of `grain`.
    /// Depends only on the thread numbers and the arguments; never cuts a reduction.
    pub fn share(&self, items: usize, grain: usize) -> std::ops::Range<usize> {
        let grains = items.div_ceil(grain);
        let cut = |t: usize| (grains * t / self.threads * grain).min(items);
        cut(self.thread)..cut(self.thread + 1)
    }
}
