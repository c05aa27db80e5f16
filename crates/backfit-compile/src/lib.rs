//! From a graph to a plan: passes, stages, the memory planner, and what a target is.
//!
//! [`pipeline::lower`] takes a module through the stages in their fixed order and reports each.
//! [`plan::plan`] gives every buffer an address. [`Target`] and [`Executable`] are what targets implement.
//! This crate knows no target.

pub mod passes;
pub mod pipeline;
pub mod plan;
pub mod precision;
pub mod range;
pub mod shuttle;
pub mod target;

pub use pipeline::{Lowered, StageReport, lower};
pub use precision::Policy;
pub use target::{Executable, MemoryReport, Program, Signature, Target};
