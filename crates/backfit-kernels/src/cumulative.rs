//! Running sums, products, maxima and minima.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::strided::{self, Axis};
use crate::tile::Reduction;

/// Combines along an axis, keeping every intermediate result. The order is that of the axis (or against it, if `reverse`).
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulative {
    /// Sum, Product, Max or Min.
    pub op: Reduction,
    /// Type of input and output. f16 and bf16 are accumulated in f32 and rounded when written.
    pub elem: Elem,
    /// From the last element to the first.
    pub reverse: bool,
    /// Each result leaves out its own element; the first is the operation's neutral value.
    pub exclusive: bool,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output element at index 0 of every axis.
    pub output: Addr,
    /// The other axes, outermost first.
    pub outer: Vec<Axis>,
    /// The axis to combine along.
    pub axis: Axis,
}

impl Cumulative {
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
