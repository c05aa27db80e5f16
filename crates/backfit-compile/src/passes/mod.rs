//! Passes: pure functions from a function to a better one. Every rewrite keeps every bit.

pub mod cse;
pub mod fold;
pub mod layout;
pub mod pack;
pub mod simplify;
pub mod unroll;
