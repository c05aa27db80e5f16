//! The commands, one file each.

pub mod data;
pub mod eval;
pub mod export;
pub mod inspect;
pub mod predict;
pub mod ranges;
pub mod train;
