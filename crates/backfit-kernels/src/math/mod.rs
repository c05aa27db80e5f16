//! Elementary functions for f32, written so that loops over them vectorise.
//!
//! Each is branch-free (selections only), takes every input, and gives the same bits on every instruction set.
//! The stated errors are the greatest found against f64, in units in the last place of the result, over a sweep of all inputs
//! ([`tests`](self)). Subnormal results are right unless the thread flushes them.

mod exponential;
mod trigonometric;

pub use exponential::{erf, exp, expm1, log, log1p, pow, tanh};
pub use trigonometric::{LARGE_ANGLE, atan2, cos, sin, tan};

/// -1, 0 or 1; zeros and NaN are kept.
#[inline(always)]
pub fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

/// The greater value; NaN where either is, and +0 above -0.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() & b.to_bits());
    let ordered = if a == b { equal } else { b };
    if a > b || a.is_nan() { a } else { ordered }
}

/// The lesser value; NaN where either is, and -0 below +0.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() | b.to_bits());
    let ordered = if a == b { equal } else { b };
    if a < b || a.is_nan() { a } else { ordered }
}

/// [`maximum`] for f64.
#[inline(always)]
pub fn maximum_f64(a: f64, b: f64) -> f64 {
    let equal = f64::from_bits(a.to_bits() & b.to_bits());
    let ordered = if a == b { equal } else { b };
    if a > b || a.is_nan() { a } else { ordered }
}

/// [`minimum`] for f64.
#[inline(always)]
pub fn minimum_f64(a: f64, b: f64) -> f64 {
    let equal = f64::from_bits(a.to_bits() | b.to_bits());
    let ordered = if a == b { equal } else { b };
    if a < b || a.is_nan() { a } else { ordered }
}

#[cfg(test)]
mod tests;
