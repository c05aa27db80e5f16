//! Strided copies and fills.

use crate::context::{Access, Addr, Context};
use crate::strided::{self, Axis, MAX_RANK};

/// Copies elements between two strided regions that do not overlap: transposition, broadcast, slice, reversal, interior padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Size of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output element at index 0 of every axis.
    pub output: Addr,
    /// The axes, outermost first.
    pub axes: Vec<Axis>,
}

/// Writes one value over a strided region.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// Size of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// The element, in the low bytes (little-endian).
    pub bits: u64,
    /// Address of the element at index 0 of every axis.
    pub output: Addr,
    /// Size and stride in elements of each axis, outermost first.
    pub axes: Vec<(usize, isize)>,
}

impl Copy {
    /// Declares what it touches.
    pub fn accesses(&self, _push: &mut dyn FnMut(Access)) {
        todo!()
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        todo!()
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Does this thread's part.
    ///
    /// # Safety
    /// As for [`Instruction::run`](crate::program::Instruction::run).
    pub unsafe fn run(&self, _ctx: &Context) {
        todo!()
    }
}

impl Fill {
    /// Declares what it touches.
    pub fn accesses(&self, _push: &mut dyn FnMut(Access)) {
        todo!()
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        todo!()
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Does this thread's part.
    ///
    /// # Safety
    /// As for [`Instruction::run`](crate::program::Instruction::run).
    pub unsafe fn run(&self, _ctx: &Context) {
        todo!()
    }
}
