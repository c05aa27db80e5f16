//! The instructions of the machine.

use crate::arg_reduce::ArgReduce;
use crate::context::{Access, Addr, Context};
use crate::convolution::Convolution;
use crate::copy::{Copy, Fill};
use crate::cumulative::Cumulative;
use crate::dynamic_copy::{DynamicSlice, DynamicUpdateSlice};
use crate::gather::Gather;
use crate::gemm::Gemm;
use crate::reduce::Reduce;
use crate::rng::RngBits;
use crate::scatter::Scatter;
use crate::sort::Sort;
use crate::tile::Tile;
use crate::window::{reduce::ReduceWindow, select::SelectAndScatter};

/// Runs another function a number of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the function, below the caller's.
    pub function: usize,
    /// Its base registers.
    pub bases: Vec<CallBase>,
    /// How many times: 1 for a plain call, more for a loop. Iterations that depend on each other
    /// need a barrier at the end of the callee.
    pub trip_count: usize,
}

/// What a call puts into a base register: `addr + iteration · stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallBase {
    /// The address in the first iteration.
    pub addr: Addr,
    /// Bytes from one iteration to the next.
    pub stride: isize,
}

macro_rules! instructions {
    ($($(#[$meta:meta])* $name:ident($type:ty),)*) => {
        /// One instruction of a program.
        #[derive(Clone, Debug)]
        pub enum Instruction {
            /// Runs another function.
            Call(Call),
            $($(#[$meta])* $name($type),)*
        }

        impl Instruction {
            /// Its name, for listings and profiles.
            pub fn name(&self) -> &'static str {
                match self {
                    Instruction::Call(_) => "Call",
                    $(Instruction::$name(_) => stringify!($name),)*
                }
            }

            /// Declares what it touches. A call itself touches nothing.
            pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
                match self {
                    Instruction::Call(_) => {}
                    $(Instruction::$name(x) => x.accesses(push),)*
                }
            }

            /// Checks that it is consistent in itself.
            pub fn check(&self) -> Result<(), String> {
                match self {
                    Instruction::Call(_) => Ok(()),
                    $(Instruction::$name(x) => x.check(),)*
                }
            }

            /// Private scratch that each thread needs, in bytes.
            pub fn scratch_bytes(&self) -> usize {
                match self {
                    Instruction::Call(_) => 0,
                    $(Instruction::$name(x) => x.scratch_bytes(),)*
                }
            }

            /// Does this thread's part. A call is the machine's business.
            ///
            /// # Safety
            /// `check` passed, every declared access is valid as [`Context`] says, and scratch is as long as asked.
            pub unsafe fn run(&self, ctx: &Context) {
                match self {
                    Instruction::Call(_) => unreachable!("the machine walks calls"),
                    // SAFETY: the caller's promise is the kernel's.
                    $(Instruction::$name(x) => unsafe { x.run(ctx) },)*
                }
            }
        }

        $(impl From<$type> for Instruction {
            fn from(x: $type) -> Self {
                Instruction::$name(x)
            }
        })*
    };
}

instructions! {
    /// A fused group of elementwise operations and row reductions.
    Tile(Tile),
    /// A strided copy.
    Copy(Copy),
    /// Writes one value over a strided region.
    Fill(Fill),
    /// A reduction over any axes.
    Reduce(Reduce),
    /// Index of the greatest or least element.
    ArgReduce(ArgReduce),
    /// A running sum, product, maximum or minimum.
    Cumulative(Cumulative),
    /// Random bits.
    RngBits(RngBits),
    /// A matrix product.
    Gemm(Gemm),
    /// A convolution.
    Convolution(Convolution),
    /// Reads slices at computed positions.
    Gather(Gather),
    /// Writes or adds slices at computed positions.
    Scatter(Scatter),
    /// A slice at a computed position.
    DynamicSlice(DynamicSlice),
    /// An update at a computed position.
    DynamicUpdateSlice(DynamicUpdateSlice),
    /// A reduction over sliding windows.
    ReduceWindow(ReduceWindow),
    /// Scatters values to the chosen element of each window.
    SelectAndScatter(SelectAndScatter),
    /// Sorts along an axis.
    Sort(Sort),
}

impl From<Call> for Instruction {
    fn from(call: Call) -> Self {
        Instruction::Call(call)
    }
}
