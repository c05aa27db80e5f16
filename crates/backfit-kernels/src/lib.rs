//! Kernels, memory and threads: a small machine that runs planned programs.
//!
//! This crate knows nothing of graphs. A [`program::Program`] is a list of instructions over byte addresses in one
//! memory; it is validated once, when it is made, and then run any number of times without allocating.
//! All of Backfit's `unsafe` lives here, but for foreign interfaces and memory maps.
#![allow(unsafe_code)]
#![warn(unsafe_op_in_unsafe_fn)]

pub mod arg_reduce;
pub mod context;
pub mod convolution;
pub mod copy;
pub mod cumulative;
pub mod dynamic_copy;
pub mod elem;
mod fold;
pub mod gather;
pub mod gemm;
#[cfg(test)]
mod harness;
mod index;
#[macro_use]
pub mod isa;
pub mod machine;
pub mod math;
pub mod memory;
pub mod pool;
pub mod program;
pub mod reduce;
pub mod rng;
pub mod scatter;
pub mod sort;
mod stored;
pub mod strided;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod window;
