//! Fused groups: loops over tiles that stay in the first-level cache.

mod group;

use crate::context::{Access, Context};
pub use group::{
    Binary, Comparison, Group, Load, MAX_OUTER, MAX_REDUCED_COLS, Op, Reduction, Slot, SlotId,
    Store, TILE, Unary,
};

/// A fused group that is ready to run.
#[derive(Clone, Debug)]
pub struct Tile {
    group: Group,
}

impl Tile {
    /// Checks a group and resolves how to run it.
    pub fn new(group: Group) -> Result<Tile, String> {
        Ok(Tile { group })
    }

    /// The group as it was given.
    pub fn group(&self) -> &Group {
        &self.group
    }
}

impl Tile {
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
