//! Fused groups: loops over tiles that stay in the first-level cache.

mod cast;
mod check;
mod execute;
mod float;
mod group;
mod integer;
mod plan;
mod transfer;

use crate::context::{Access, Context};
pub use group::{
    Binary, Comparison, Group, Load, MAX_OUTER, MAX_REDUCED_COLS, Op, Reduction, Slot, SlotId, Store, TILE, Unary,
};
use plan::Plan;
pub(crate) use transfer::write_lanes;

/// A fused group that is ready to run.
#[derive(Clone, Debug)]
pub struct Tile {
    group: Group,
    plan: Plan,
}

impl Tile {
    /// Checks a group and resolves how to run it.
    pub fn new(group: Group) -> Result<Tile, String> {
        group.check()?;
        Ok(Tile { plan: Plan::new(&group), group })
    }

    /// The group as it was given.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        let group = &self.group;
        let loads = group.loads.iter().map(|l| group.access(l.addr, l.elem, &l.outer_strides, l.col_stride, false));
        let stores = group.stores.iter().map(|s| group.access(s.addr, s.elem, &s.outer_strides, s.col_stride, true));
        loads.chain(stores).flatten().for_each(push);
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        self.group.check()
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.plan.scratch_bytes
    }

    /// Does this thread's part.
    ///
    /// # Safety
    /// As for [`Instruction::run`](crate::program::Instruction::run).
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise; the plan follows from the checked group.
        unsafe { execute::run(&self.plan, ctx) }
    }
}

#[cfg(test)]
mod tests;
