//! Vector registers as the micro-kernels see them.

/// A register of `LEN` numbers. Methods compile to single instructions where the caller has the instruction set.
///
/// The methods are unsafe because the machine must have the register's instruction set; pointers must be valid for
/// `LEN` elements, unaligned.
pub(crate) trait Lanes: Copy {
    type Item: Copy;
    const LEN: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const Self::Item) -> Self;
    unsafe fn store(self, to: *mut Self::Item);
    unsafe fn splat(from: *const Self::Item) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// `self · factor + term` with one rounding.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
}

/// Implements [`Lanes`] by intrinsics: `register of item × length: zero, load, store, splat, add, fma(x, y, term)`.
macro_rules! lanes {
    ($register:ty, $item:ty, $len:literal, $zero:expr, $load:ident, $store:ident, $splat:ident, $add:ident, |$x:ident, $y:ident, $z:ident| $fma:expr) => {
        impl Lanes for $register {
            type Item = $item;
            const LEN: usize = $len;
            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the machine has the instruction set, by the trait's contract.
                unsafe { $zero }
            }
            #[inline(always)]
            unsafe fn load(from: *const $item) -> Self {
                // SAFETY: as above; `from` is valid for LEN elements.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $item) {
                // SAFETY: as above; `to` is valid for LEN elements.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn splat(from: *const $item) -> Self {
                // SAFETY: as above; `from` is valid for one element.
                unsafe { $splat(*from) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, $y: Self, $z: Self) -> Self {
                let $x = self;
                // SAFETY: as above.
                unsafe { $fma }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    lanes!(
        __m256,
        f32,
        8,
        _mm256_setzero_ps(),
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_add_ps,
        |x, y, z| _mm256_fmadd_ps(x, y, z)
    );
    lanes!(
        __m256d,
        f64,
        4,
        _mm256_setzero_pd(),
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_add_pd,
        |x, y, z| _mm256_fmadd_pd(x, y, z)
    );
    lanes!(
        __m512,
        f32,
        16,
        _mm512_setzero_ps(),
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_add_ps,
        |x, y, z| _mm512_fmadd_ps(x, y, z)
    );
    lanes!(
        __m512d,
        f64,
        8,
        _mm512_setzero_pd(),
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_add_pd,
        |x, y, z| _mm512_fmadd_pd(x, y, z)
    );
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Lanes;
    use std::arch::aarch64::*;

    lanes!(float32x4_t, f32, 4, vdupq_n_f32(0.0), vld1q_f32, vst1q_f32, vdupq_n_f32, vaddq_f32, |x, y, z| vfmaq_f32(
        z, x, y
    ));
    lanes!(float64x2_t, f64, 2, vdupq_n_f64(0.0), vld1q_f64, vst1q_f64, vdupq_n_f64, vaddq_f64, |x, y, z| vfmaq_f64(
        z, x, y
    ));
}

/// Arithmetic of one lane, for registers made of plain numbers.
pub(crate) trait Scalar: Copy {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn fused(self, factor: Self, term: Self) -> Self;
}

macro_rules! scalar_float {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn fused(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term)
            }
        }
    )*};
}
scalar_float!(f32 f64);

impl Scalar for i64 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn fused(self, factor: Self, term: Self) -> Self {
        self.wrapping_mul(factor).wrapping_add(term)
    }
}

impl<T: Scalar> Lanes for [T; 4] {
    type Item = T;
    const LEN: usize = 4;
    #[inline(always)]
    unsafe fn zero() -> Self {
        [T::ZERO; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: valid for four elements, by the trait's contract.
        unsafe { from.cast::<[T; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: valid for four elements, by the trait's contract.
        unsafe { to.cast::<[T; 4]>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: valid for one element, by the trait's contract.
        [unsafe { *from }; 4]
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].plus(other[i]))
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        std::array::from_fn(|i| self[i].fused(factor[i], term[i]))
    }
}
