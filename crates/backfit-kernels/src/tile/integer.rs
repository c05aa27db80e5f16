//! Operations on integer slots, which hold i32, u32, i64 or u64.

use super::float::{compare, map};
use super::group::{Binary, Comparison, Unary};

/// What integers need beyond the standard operators.
pub(super) trait Integer: Copy + Ord {
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn not(self) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn rem(self, b: Self) -> Self;
    fn pow(self, b: Self) -> Self;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn shift_left(self, b: Self) -> Self;
    fn shift_right(self, b: Self) -> Self;
}

macro_rules! integer {
    ($type:ty, $abs:expr, $negative:expr, $sign_fill:expr) => {
        impl Integer for $type {
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $abs(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                if $negative(self) { !0 } else { Self::from(self != 0) }
            }
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { self } else { self.wrapping_rem(b) }
            }
            fn pow(self, b: Self) -> Self {
                if $negative(b) {
                    return match self {
                        1 => 1,
                        x if x == !0 => {
                            if b & 1 == 0 {
                                1
                            } else {
                                !0
                            }
                        }
                        _ => 0,
                    };
                }
                let (mut result, mut base, mut exponent): (Self, Self, Self) = (1, self, b);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                result
            }
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                self & b
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                self | b
            }
            #[inline(always)]
            fn xor(self, b: Self) -> Self {
                self ^ b
            }
            #[inline(always)]
            fn shift_left(self, b: Self) -> Self {
                if (0..Self::BITS as Self).contains(&b) { self.wrapping_shl(b as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, b: Self) -> Self {
                let inside = (0..Self::BITS as Self).contains(&b);
                if inside { self.wrapping_shr(b as u32) } else { $sign_fill(self) }
            }
        }
    };
}
integer!(i32, |x: i32| x.wrapping_abs(), |x: i32| x < 0, |x: i32| x >> 31);
integer!(i64, |x: i64| x.wrapping_abs(), |x: i64| x < 0, |x: i64| x >> 63);
integer!(u32, |x| x, |_| false, |_| 0);
integer!(u64, |x| x, |_| false, |_| 0);

/// A unary operation. `bool` is told, since its negation is not that of bits.
///
/// # Safety
/// There are `n` values behind each pointer, and `to` overlaps no operand. So for all functions of this file.
pub(super) unsafe fn unary<T: Integer>(op: Unary, x: *const u8, to: *mut u8, n: usize) {
    match op {
        Unary::Neg => map!(n, to: T, x: T => x.neg()),
        Unary::Abs => map!(n, to: T, x: T => x.abs()),
        Unary::Sign => map!(n, to: T, x: T => x.sign()),
        Unary::Not => map!(n, to: T, x: T => x.not()),
        Unary::IsFinite => map!(n, to: i32, x: T => { let _ = x; 1 }),
        _ => unreachable!("refused by check"),
    }
}

/// The negation of bools.
pub(super) unsafe fn not_bool(x: *const u8, to: *mut u8, n: usize) {
    map!(n, to: i32, x: i32 => i32::from(x == 0));
}

/// A binary operation.
pub(super) unsafe fn binary<T: Integer>(op: Binary, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    match op {
        Binary::Add => map!(n, to: T, a: T, b: T => a.add(b)),
        Binary::Sub => map!(n, to: T, a: T, b: T => a.sub(b)),
        Binary::Mul => map!(n, to: T, a: T, b: T => a.mul(b)),
        Binary::Div => map!(n, to: T, a: T, b: T => a.div(b)),
        Binary::Rem => map!(n, to: T, a: T, b: T => a.rem(b)),
        Binary::Pow => map!(n, to: T, a: T, b: T => a.pow(b)),
        Binary::Maximum => map!(n, to: T, a: T, b: T => a.max(b)),
        Binary::Minimum => map!(n, to: T, a: T, b: T => a.min(b)),
        Binary::And => map!(n, to: T, a: T, b: T => a.and(b)),
        Binary::Or => map!(n, to: T, a: T, b: T => a.or(b)),
        Binary::Xor => map!(n, to: T, a: T, b: T => a.xor(b)),
        Binary::ShiftLeft => map!(n, to: T, a: T, b: T => a.shift_left(b)),
        Binary::ShiftRight => map!(n, to: T, a: T, b: T => a.shift_right(b)),
        Binary::Atan2 => unreachable!("refused by check"),
    }
}

/// A comparison.
pub(super) unsafe fn compare<T: Integer>(op: Comparison, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    compare!(op, n, a, b, to, T);
}

/// Clamps values.
pub(super) unsafe fn clamp<T: Integer>(low: *const u8, x: *const u8, high: *const u8, to: *mut u8, n: usize) {
    map!(n, to: T, low: T, x: T, high: T => x.max(low).min(high));
}
