//! Kernels, memory and threads: a small machine that runs planned programs.
//!
//! This crate knows nothing of graphs. A [`program::Program`] is a list of instructions over byte addresses in one
//! memory; it is validated once, when it is made, and then run any number of times without allocating.
//! All of Backfit's `unsafe` lives here, but for foreign interfaces and memory maps.
#![allow(unsafe_code)]
#![warn(unsafe_op_in_unsafe_fn)]

pub mod context;
pub mod elem;
pub mod convolution;
pub mod dynamic_copy;
pub mod gather;
pub mod gemm;
pub mod scatter;
pub mod sort;
pub mod window;
pub mod strided;
pub mod isa;
