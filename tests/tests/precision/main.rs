//! Precision policies: what they compute, in which dtypes, and that training still learns.

mod dtypes;
mod forms;
mod gradients;
mod loops;
mod masters;
mod operators;
mod training;
