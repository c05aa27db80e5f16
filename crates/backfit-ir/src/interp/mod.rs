//! The reference interpreter: runs any function, written for clarity, trusted as the oracle.
//!
//! Float arithmetic is done in f64 and every result is rounded to its declared dtype, or, with
//! [`Options::double`], kept in f64 throughout. Integers wrap as their dtype says.

mod array;
mod run;
mod trace;

pub use array::{Array, Data, Odometer, wrap};
pub use run::{Moment, Options, Watch, run, run_watched};
pub use trace::{NonFinite, Seen, Worst, trace};
