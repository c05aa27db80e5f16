//! How stored elements become lane values and back.

/// An element as it lies in memory.
pub(crate) trait Stored: Copy {
    /// What arithmetic on it is done in.
    type Lane: Copy;
    /// To a lane value.
    fn load(self) -> Self::Lane;
    /// From a lane value: rounds or wraps.
    fn store(lane: Self::Lane) -> Self;
}

/// The bits of a half-precision float.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub u16);

/// The bits of a bfloat16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct BF16(pub u16);

/// One byte; not 0 is true.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bool(pub u8);

macro_rules! stored {
    ($($type:ty => $lane:ty),*) => {$(
        impl Stored for $type {
            type Lane = $lane;
            #[inline(always)]
            fn load(self) -> $lane {
                self as $lane
            }
            #[inline(always)]
            fn store(lane: $lane) -> Self {
                lane as $type
            }
        }
    )*};
}
stored!(f32 => f32, f64 => f64, i64 => i64, u64 => u64, i32 => i32, u32 => u32, i16 => i32, i8 => i32, u16 => i32, u8 => i32);

impl Stored for Bool {
    type Lane = i32;
    #[inline(always)]
    fn load(self) -> i32 {
        i32::from(self.0 != 0)
    }
    #[inline(always)]
    fn store(lane: i32) -> Self {
        Bool(u8::from(lane != 0))
    }
}

impl Stored for BF16 {
    type Lane = f32;
    #[inline(always)]
    fn load(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
    /// Ties to even; NaN stays NaN.
    #[inline(always)]
    fn store(lane: f32) -> Self {
        let bits = lane.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let nan = bits >> 16 | 0x40;
        BF16(if lane.is_nan() { nan } else { rounded } as u16)
    }
}

impl Stored for F16 {
    type Lane = f32;
    /// Exact. Uses no subnormal f32, so that flushing does not change it.
    #[inline(always)]
    fn load(self) -> f32 {
        let shifted = (u32::from(self.0) & 0x7fff) << 13;
        let exponent = shifted & 0x0f80_0000;
        let normal = shifted.wrapping_add(112 << 23);
        let special = normal.wrapping_add(112 << 23);
        // 2^-14 + mantissa, minus 2^-14.
        let tiny = f32::from_bits(normal.wrapping_add(1 << 23)) - f32::from_bits(113 << 23);
        let magnitude = if exponent == 0 { tiny.to_bits() } else { normal };
        let magnitude = if exponent == 0x0f80_0000 { special } else { magnitude };
        f32::from_bits(magnitude | (u32::from(self.0) & 0x8000) << 16)
    }
    /// Ties to even; overflow gives infinity; NaN stays NaN.
    #[inline(always)]
    fn store(lane: f32) -> Self {
        let bits = lane.to_bits();
        let sign = bits >> 16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        // Below 2^-14: adding ½ rounds to a multiple of 2^-24.
        let tiny = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
        let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        let value = if magnitude < 113 << 23 { tiny } else { normal };
        let value = if magnitude >= 143 << 23 { 0x7c00 } else { value };
        let value = if magnitude > 0x7f80_0000 { nan } else { value };
        F16((value | sign) as u16)
    }
}

/// To f32, rounded to odd: rounding the result further to f16 or bf16 gives what rounding the f64 once would.
#[inline(always)]
pub(crate) fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let wide = f64::from(near);
    let outward = wide.abs() > x.abs();
    let toward_zero = near.to_bits().wrapping_sub(u32::from(outward));
    if wide == x || x.is_nan() { near } else { f32::from_bits(toward_zero | 1) }
}

/// Runs the body with `$t` standing for the stored type of an [`Elem`](crate::elem::Elem).
macro_rules! with_stored {
    ($elem:expr, $t:ident => $body:expr) => {
        match $elem {
            $crate::elem::Elem::F64 => {
                type $t = f64;
                $body
            }
            $crate::elem::Elem::F32 => {
                type $t = f32;
                $body
            }
            $crate::elem::Elem::F16 => {
                type $t = $crate::stored::F16;
                $body
            }
            $crate::elem::Elem::BF16 => {
                type $t = $crate::stored::BF16;
                $body
            }
            $crate::elem::Elem::I64 => {
                type $t = i64;
                $body
            }
            $crate::elem::Elem::I32 => {
                type $t = i32;
                $body
            }
            $crate::elem::Elem::I16 => {
                type $t = i16;
                $body
            }
            $crate::elem::Elem::I8 => {
                type $t = i8;
                $body
            }
            $crate::elem::Elem::U64 => {
                type $t = u64;
                $body
            }
            $crate::elem::Elem::U32 => {
                type $t = u32;
                $body
            }
            $crate::elem::Elem::U16 => {
                type $t = u16;
                $body
            }
            $crate::elem::Elem::U8 => {
                type $t = u8;
                $body
            }
            $crate::elem::Elem::Bool => {
                type $t = $crate::stored::Bool;
                $body
            }
        }
    };
}
pub(crate) use with_stored;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_convert_as_the_half_crate_says() {
        for bits in 0..=u16::MAX {
            let (f, b) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            assert!(F16(bits).load() == f.to_f32() || f.is_nan() && F16(bits).load().is_nan());
            assert!(BF16(bits).load() == b.to_f32() || b.is_nan() && BF16(bits).load().is_nan());
        }
        for bits in (0..=u32::MAX).step_by(if cfg!(miri) { 9_999_991 } else { 997 }) {
            let x = f32::from_bits(bits);
            let (f, b) = (half::f16::from_f32(x), half::bf16::from_f32(x));
            assert!(F16::store(x).0 == f.to_bits() || f.is_nan() && F16::store(x).load().is_nan(), "{x:e}");
            assert!(BF16::store(x).0 == b.to_bits() || b.is_nan() && BF16::store(x).load().is_nan(), "{x:e}");
        }
    }

    #[test]
    fn rounding_to_odd_first_rounds_once() {
        // Just above a tie of f16, by less than an f32 can tell.
        let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(F16::store(round_to_odd(x)).load(), 1.0 + 2f32.powi(-10));
        assert_eq!(F16::store(x as f32).load(), 1.0);
        assert_eq!(round_to_odd(-f64::MAX), -f32::MAX);
        assert_eq!(round_to_odd(f64::INFINITY), f32::INFINITY);
    }
}
