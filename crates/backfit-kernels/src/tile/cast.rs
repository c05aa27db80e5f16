//! Conversions between slots.

use super::float::map;
use crate::elem::{Elem, Lane};
use crate::stored::round_to_odd;

/// Converts values. The result is settled to the target type by the caller where that is only a matter of rounding or wrapping.
///
/// # Safety
/// There are `n` values behind each pointer, of the lanes of the types, and they do not overlap.
pub(super) unsafe fn cast(source: Elem, target: Elem, x: *const u8, to: *mut u8, n: usize) {
    if target == Elem::Bool {
        return match source.lane() {
            Lane::F32 => map!(n, to: i32, x: f32 => i32::from(x != 0.0)),
            Lane::F64 => map!(n, to: i32, x: f64 => i32::from(x != 0.0)),
            Lane::I32 => map!(n, to: i32, x: i32 => i32::from(x != 0)),
            Lane::I64 => map!(n, to: i32, x: i64 => i32::from(x != 0)),
        };
    }
    match (source, source.lane(), target.lane()) {
        (_, Lane::F32 | Lane::F64, Lane::I32 | Lane::I64) => {
            // SAFETY: the caller's promise.
            unsafe { float_to_integer(source, target, x, to, n) }
        }
        (_, Lane::F32, Lane::F32) | (_, Lane::I32, Lane::I32) => map!(n, to: u32, x: u32 => x),
        (_, Lane::F64, Lane::F64) | (_, Lane::I64, Lane::I64) => map!(n, to: u64, x: u64 => x),
        (_, Lane::F32, Lane::F64) => map!(n, to: f64, x: f32 => f64::from(x)),
        (_, Lane::F64, Lane::F32) if target == Elem::F32 => map!(n, to: f32, x: f64 => x as f32),
        (_, Lane::F64, Lane::F32) => map!(n, to: f32, x: f64 => round_to_odd(x)),
        (Elem::U32, _, Lane::F32) if target == Elem::F32 => map!(n, to: f32, x: u32 => x as f32),
        (Elem::U32, _, Lane::F32) => map!(n, to: f32, x: u32 => round_to_odd(f64::from(x))),
        (Elem::U32, _, Lane::F64) => map!(n, to: f64, x: u32 => f64::from(x)),
        (Elem::U32, _, Lane::I64) => map!(n, to: i64, x: u32 => i64::from(x)),
        (Elem::U64, _, Lane::F32) if target == Elem::F32 => map!(n, to: f32, x: u64 => x as f32),
        (Elem::U64, _, Lane::F32) => map!(n, to: f32, x: u64 => round_to_odd(x as f64)),
        (Elem::U64, _, Lane::F64) => map!(n, to: f64, x: u64 => x as f64),
        (_, Lane::I32, Lane::F32) if target == Elem::F32 => map!(n, to: f32, x: i32 => x as f32),
        (_, Lane::I32, Lane::F32) => map!(n, to: f32, x: i32 => round_to_odd(f64::from(x))),
        (_, Lane::I32, Lane::F64) => map!(n, to: f64, x: i32 => f64::from(x)),
        (_, Lane::I32, Lane::I64) => map!(n, to: i64, x: i32 => i64::from(x)),
        (_, Lane::I64, Lane::F32) if target == Elem::F32 => map!(n, to: f32, x: i64 => x as f32),
        (_, Lane::I64, Lane::F32) => map!(n, to: f32, x: i64 => round_to_odd(x as f64)),
        (_, Lane::I64, Lane::F64) => map!(n, to: f64, x: i64 => x as f64),
        (_, Lane::I64, Lane::I32) => map!(n, to: i32, x: i64 => x as i32),
    }
}

/// Truncates and saturates to the range of the target; NaN gives 0.
unsafe fn float_to_integer(source: Elem, target: Elem, x: *const u8, to: *mut u8, n: usize) {
    macro_rules! from {
        ($f:ty) => {
            match target {
                Elem::I8 => map!(n, to: i32, x: $f => i32::from(x as i8)),
                Elem::I16 => map!(n, to: i32, x: $f => i32::from(x as i16)),
                Elem::U8 => map!(n, to: i32, x: $f => i32::from(x as u8)),
                Elem::U16 => map!(n, to: i32, x: $f => i32::from(x as u16)),
                Elem::U32 => map!(n, to: u32, x: $f => x as u32),
                Elem::I64 => map!(n, to: i64, x: $f => x as i64),
                Elem::U64 => map!(n, to: u64, x: $f => x as u64),
                _ => map!(n, to: i32, x: $f => x as i32),
            }
        };
    }
    if source.lane() == Lane::F64 { from!(f64) } else { from!(f32) }
}

/// The same bits as another type of the same size.
///
/// # Safety
/// As for [`cast`].
pub(super) unsafe fn bitcast(source: Elem, target: Elem, x: *const u8, to: *mut u8, n: usize) {
    use crate::stored::{BF16, F16, Stored};
    let bits = |x: f32| match source {
        Elem::F16 => u32::from(F16::store(x).0),
        Elem::BF16 => u32::from(BF16::store(x).0),
        _ => x.to_bits(),
    };
    let value = |x: u32| match target {
        Elem::F16 => F16(x as u16).load(),
        Elem::BF16 => BF16(x as u16).load(),
        _ => f32::from_bits(x),
    };
    match (source.lane(), target.lane()) {
        (Lane::F32, Lane::F32) => map!(n, to: f32, x: f32 => value(bits(x))),
        (Lane::F32, _) => map!(n, to: u32, x: f32 => bits(x)),
        (_, Lane::F32) => map!(n, to: f32, x: u32 => value(x)),
        (Lane::I32, _) => map!(n, to: u32, x: u32 => x),
        _ => map!(n, to: u64, x: u64 => x),
    }
}

/// Rounds to fewer exponent and mantissa bits, ties to even; too large becomes infinity, too small zero.
///
/// # Safety
/// As for [`cast`].
pub(super) unsafe fn reduce_precision(lane: Lane, exponent: u32, mantissa: u32, x: *const u8, to: *mut u8, n: usize) {
    macro_rules! reduce {
        ($f:ty, $u:ty, $all_exponent:expr, $all_mantissa:expr) => {{
            let dropped = $all_mantissa - mantissa;
            let bias = (1 << ($all_exponent - 1)) - 1;
            let reach = (1 << (exponent - 1)) - 1;
            let sign_bit: $u = 1 << ($all_exponent + $all_mantissa);
            // Exponent fields of the greatest and least normal result.
            let greatest: $u = ((bias + reach) as $u) << $all_mantissa | ((1 << $all_mantissa) - 1);
            let least: $u = ((bias - reach + 1) as $u) << $all_mantissa;
            let infinity = <$f>::INFINITY.to_bits();
            let half: $u = if dropped == 0 { 0 } else { (1 << (dropped - 1)) - 1 };
            map!(n, to: $f, x: $f => {
                let magnitude = x.to_bits() & !sign_bit;
                let odd = if dropped == 0 { 0 } else { magnitude >> dropped & 1 };
                let rounded = (magnitude + half + odd) >> dropped << dropped;
                let rounded = if rounded > greatest { infinity } else { rounded };
                let narrow = exponent < $all_exponent;
                let rounded = if narrow && rounded < least { 0 } else { rounded };
                if x.is_nan() { x } else { <$f>::from_bits(rounded | x.to_bits() & sign_bit) }
            })
        }};
    }
    if lane == Lane::F64 { reduce!(f64, u64, 11, 52) } else { reduce!(f32, u32, 8, 23) }
}
