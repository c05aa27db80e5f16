//! The CPU target: one native program per function, planned ahead, run by a fixed pool of threads.
//!
//! A function goes through [`fuse`] (which nodes are one pass over memory), [`frame`] (jobs, buffers, the plan) and
//! [`emit`] (instructions of the machine in `backfit-kernels`). This crate knows no other target and no training loop.

pub mod emit;
mod executable;
pub mod frame;
pub mod fuse;
mod report;
mod target;
pub mod view;

pub use executable::CpuExecutable;
pub use target::Cpu;
