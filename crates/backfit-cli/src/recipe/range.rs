//! Which numbers a step, which computes with f32, can be given.

/// What [`is_positive`] asks.
pub const POSITIVE: &str = "a positive number within the range of f32";
/// What [`is_not_negative`] asks.
pub const NOT_NEGATIVE: &str = "0 or a positive number within the range of f32";
/// What [`is_share`] asks.
pub const SHARE: &str = "at least 0 and below 1, as an f32 too";

/// Whether it is above 0 and, as an f32, neither 0 nor subnormal nor infinite.
pub fn is_positive(value: f64) -> bool {
    value > 0.0 && (value as f32).is_normal()
}

/// Whether it is 0 or positive in that sense.
pub fn is_not_negative(value: f64) -> bool {
    value == 0.0 || is_positive(value)
}

/// Whether it is not negative in that sense, and does not become 1 by rounding.
pub fn is_share(value: f64) -> bool {
    is_not_negative(value) && (value as f32) < 1.0
}
