//! The number types that sums are held in, and how stored elements become them.

use super::lanes::Scalar;
use super::micro::{self, Engine};
use super::pack::{self, Panel, Tapped};
use crate::elem::Elem;
use crate::isa::Isa;
use crate::stored::{self, BF16, F16};

/// A stored element that is read as, and rounded from, the number type `T`.
pub(crate) trait Stored<T>: Copy {
    fn load(self) -> T;
    fn store(value: T) -> Self;
}

macro_rules! stored {
    ($($t:ty: $($s:ty)*;)*) => {$($(
        impl Stored<$t> for $s {
            #[inline(always)]
            fn load(self) -> $t {
                self as $t
            }
            #[inline(always)]
            fn store(value: $t) -> Self {
                value as $s
            }
        }
    )*)*};
}
stored!(f32: f32; f64: f64 f32; i64: i64 i32 i16 i8 u64 u32 u16 u8;);

macro_rules! stored_half {
    ($($s:ty)*) => {$(
        impl Stored<f32> for $s {
            #[inline(always)]
            fn load(self) -> f32 {
                stored::Stored::load(self)
            }
            #[inline(always)]
            fn store(value: f32) -> Self {
                stored::Stored::store(value)
            }
        }
        impl Stored<f64> for $s {
            #[inline(always)]
            fn load(self) -> f64 {
                f64::from(stored::Stored::load(self))
            }
            #[inline(always)]
            fn store(value: f64) -> Self {
                stored::Stored::store(stored::round_to_odd(value))
            }
        }
    )*};
}
stored_half!(F16 BF16);

/// A strided run of elements in memory.
#[derive(Clone, Copy)]
pub(crate) struct Run<P> {
    pub start: P,
    pub stride: isize,
}

/// A number type that sums are held in: f32, f64, or i64 for every integer type (which then wraps when it is stored).
pub(crate) trait Number: Scalar + Send + Sync + 'static {
    /// The element type that is this number, bit for bit.
    const ELEM: Elem;
    /// The micro-kernels for an instruction set.
    fn engine(isa: Isa) -> &'static Engine<Self>;
    /// Packs a panel of stored elements; see [`pack::pack`].
    ///
    /// # Safety
    /// As [`pack::pack`], the panel holding elements of type `elem`.
    unsafe fn pack(elem: Elem, panel: &Panel, to: *mut Self);
    /// Packs stored elements at listed offsets; see [`pack::pack_tapped`].
    ///
    /// # Safety
    /// As [`pack::pack_tapped`], the panel holding elements of type `elem`.
    unsafe fn pack_tapped(elem: Elem, panel: &Tapped, to: *mut Self);
    /// Reads `len` stored elements.
    ///
    /// # Safety
    /// Both runs are valid for `len` elements; `from` holds elements of type `elem`.
    unsafe fn load_run(elem: Elem, from: Run<*const u8>, to: Run<*mut Self>, len: usize);
    /// Rounds and stores `len` numbers.
    ///
    /// # Safety
    /// Both runs are valid for `len` elements; `to` holds elements of type `elem`.
    unsafe fn store_run(elem: Elem, from: Run<*const Self>, to: Run<*mut u8>, len: usize);
}

macro_rules! number {
    ($t:ty, $own:ident, |$isa:ident| $engine:expr, $($elem:ident $s:ty),+) => {
        impl Number for $t {
            const ELEM: Elem = Elem::$own;
            fn engine($isa: Isa) -> &'static Engine<Self> {
                $engine
            }
            unsafe fn pack(elem: Elem, panel: &Panel, to: *mut Self) {
                match elem {
                    // SAFETY: the caller's promise.
                    $(Elem::$elem => unsafe { pack::pack::<$s, $t>(panel, to) },)+
                    _ => unreachable!("refused by `check`"),
                }
            }
            unsafe fn pack_tapped(elem: Elem, panel: &Tapped, to: *mut Self) {
                match elem {
                    // SAFETY: the caller's promise.
                    $(Elem::$elem => unsafe { pack::pack_tapped::<$s, $t>(panel, to) },)+
                    _ => unreachable!("refused by `check`"),
                }
            }
            unsafe fn load_run(elem: Elem, from: Run<*const u8>, to: Run<*mut Self>, len: usize) {
                match elem {
                    // SAFETY: the caller's promise.
                    $(Elem::$elem => unsafe { pack::load_run::<$s, $t>(from, to, len) },)+
                    _ => unreachable!("refused by `check`"),
                }
            }
            unsafe fn store_run(elem: Elem, from: Run<*const Self>, to: Run<*mut u8>, len: usize) {
                match elem {
                    // SAFETY: the caller's promise.
                    $(Elem::$elem => unsafe { pack::store_run::<$s, $t>(from, to, len) },)+
                    _ => unreachable!("refused by `check`"),
                }
            }
        }
    };
}

number!(f32, F32, |isa| match isa {
    #[cfg(target_arch = "x86_64")]
    Isa::Avx2 => &micro::AVX2_F32,
    #[cfg(target_arch = "x86_64")]
    Isa::Avx512 => &micro::AVX512_F32,
    #[cfg(target_arch = "aarch64")]
    Isa::Neon => &micro::NEON_F32,
    _ => &micro::PORTABLE_F32,
}, F32 f32, F16 F16, BF16 BF16);
number!(f64, F64, |isa| match isa {
    #[cfg(target_arch = "x86_64")]
    Isa::Avx2 => &micro::AVX2_F64,
    #[cfg(target_arch = "x86_64")]
    Isa::Avx512 => &micro::AVX512_F64,
    #[cfg(target_arch = "aarch64")]
    Isa::Neon => &micro::NEON_F64,
    _ => &micro::PORTABLE_F64,
}, F64 f64, F32 f32, F16 F16, BF16 BF16);
number!(i64, I64, |_isa| &micro::PORTABLE_I64,
    I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8, Bool u8);

/// Whether a product of these element types, summed in `acc`, is offered; the result must fit what was summed.
pub(crate) fn check_elems(inputs: [Elem; 2], out: Elem, acc: Elem) -> Result<(), String> {
    let fits = |elem: Elem| match acc {
        Elem::F32 => matches!(elem, Elem::F32 | Elem::F16 | Elem::BF16),
        Elem::F64 => elem.is_float(),
        _ => !acc.is_float() && !elem.is_float() && acc != Elem::Bool,
    };
    let stores = acc.is_float() || (out != Elem::Bool && out.size() <= acc.size());
    if inputs.into_iter().all(fits) && fits(out) && stores {
        return Ok(());
    }
    Err(format!(
        "products of {:?} and {:?} summed in {acc:?} and stored as {out:?} are not offered",
        inputs[0], inputs[1]
    ))
}

/// Runs `$body` with `$t` the number type for `$acc`.
macro_rules! with_number {
    ($acc:expr, $t:ident => $body:expr) => {
        match $acc {
            $crate::elem::Elem::F32 => {
                type $t = f32;
                $body
            }
            $crate::elem::Elem::F64 => {
                type $t = f64;
                $body
            }
            _ => {
                type $t = i64;
                $body
            }
        }
    };
}
pub(crate) use with_number;
