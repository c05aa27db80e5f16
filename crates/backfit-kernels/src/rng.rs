//! Counter-based random bits.

use crate::context::{Access, Addr, Context};

/// Philox4x32-10: element `i` is word `i % 4` of the block with counter `(i/4 low, i/4 high, c2, c3)` and key `(k0, k1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RngBits {
    /// Address of four u32: k0, k1, c2, c3.
    pub key: Addr,
    /// Address of the output, u32.
    pub output: Addr,
    /// Number of elements.
    pub count: usize,
}

impl RngBits {
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
