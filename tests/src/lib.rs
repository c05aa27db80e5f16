//! What the test suites share: cases made from the operators' samples, running them on targets, comparing results.
//!
//! Suites (cases) are separate from targets (runners): a new target gets every case for free.

pub mod catalogue;
pub mod compare;
pub mod fuzz;
pub mod onnxruntime;
pub mod oracle;
pub mod sample;
pub mod training;
