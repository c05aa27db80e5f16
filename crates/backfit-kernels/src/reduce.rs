//! Reductions over any set of axes.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
pub use crate::tile::Reduction;

/// Combines elements along `reduced` axes for every index of the `kept` axes.
///
/// f16 and bf16 are accumulated in f32 and rounded at the end. The order is fixed by the sizes alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// What to combine with.
    pub op: Reduction,
    /// Type of the input.
    pub elem: Elem,
    /// Type of the output: that of the input, or f32 for f16 and bf16.
    pub output_elem: Elem,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output, which is contiguous in the order of `kept`.
    pub output: Addr,
    /// Size and input stride in elements of the kept axes, outermost first.
    pub kept: Vec<(usize, isize)>,
    /// Size and input stride in elements of the reduced axes, outermost first.
    pub reduced: Vec<(usize, isize)>,
}

impl Reduce {
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
