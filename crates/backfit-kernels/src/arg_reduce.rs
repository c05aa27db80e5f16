//! Index of the greatest or least element along an axis.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided;

/// For every index of the `kept` axes, the first position of the greatest (or least) element along an axis; the first NaN wins.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgReduce {
    /// Greatest instead of least.
    pub max: bool,
    /// Type of the input.
    pub elem: Elem,
    /// Type of the output: I32 or I64.
    pub index: Elem,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output, which is contiguous in the order of `kept`.
    pub output: Addr,
    /// Size and input stride in elements of the kept axes, outermost first.
    pub kept: Vec<(usize, isize)>,
    /// Size of the searched axis, at least 1.
    pub size: usize,
    /// Input stride of the searched axis, in elements.
    pub stride: isize,
}

impl ArgReduce {
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
