//! Range analysis: how large the values of a program can be, and what a chip makes of that.
//!
//! [`bounds`] computes for every value an [`Interval`] that contains it, from the ranges of inputs and of initial weights.
//! [`Observations`] has what values really were in runs of the interpreter. [`warnings`] holds either against a [`Chip`].
//!
//! | module | it has |
//! |---|---|
//! | [`interval`] | sets of numbers between two, perhaps with NaN |
//! | [`transfer`] | from the intervals of operands to those of results, for every operator |
//! | [`analyse`] | the walk through functions, calls and loops |
//! | [`relations`] | what intervals alone do not know, as that x − max x is never positive |
//! | [`observe`] | calibration runs |
//! | [`chip`] | a chip's numbers |
//! | [`warn`] | overflow, underflow, inexact sums, cancellation, each with the user's line |

pub mod analyse;
pub mod chip;
pub mod interval;
pub mod observe;
pub mod relations;
pub mod transfer;
pub mod warn;

pub use analyse::{Bounds, bounds, declared_range};
pub use chip::Chip;
pub use interval::Interval;
pub use observe::{Observations, Observed};
pub use warn::{Kind, Warning, warnings};
