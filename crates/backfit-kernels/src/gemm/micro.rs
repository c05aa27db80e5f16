//! Micro-kernels: products whose result stays in registers while the inner dimension is walked.

use super::lanes::Lanes;

/// The greatest number of rows of a micro-kernel's tile.
pub(crate) const MAX_ROWS: usize = 12;
/// The greatest number of columns of a micro-kernel's tile.
pub(crate) const MAX_COLS: usize = 32;

/// What one call of a micro-kernel works on: a tile of `rows` (by the kernel) by one or two registers of columns.
pub(crate) struct Tile<T> {
    /// Length of the inner dimension.
    pub k: usize,
    /// First row of the left operand.
    pub a: *const T,
    /// Elements between rows of the left operand ([`Form::Strided`]).
    pub a_row: isize,
    /// Elements between inner neighbours of the left operand ([`Form::Strided`]).
    pub a_k: isize,
    /// First column of the right operand; columns are adjacent.
    pub b: *const T,
    /// Elements between inner neighbours of the right operand (but for [`Form::TapColumns`]).
    pub b_k: isize,
    /// Offset of every inner position from `b` ([`Form::TapColumns`]) or from every row of `a` ([`Form::TapRows`]).
    pub taps: *const isize,
    /// Offset of every row from `a` ([`Form::TapRows`]).
    pub rows: *const isize,
    /// First element of the result; columns are adjacent.
    pub c: *mut T,
    /// Elements between rows of the result.
    pub c_row: isize,
    /// Whether the product is added to the result.
    pub add: bool,
}

/// Computes a tile.
///
/// # Safety
/// The machine has the kernel's instruction set; the tile's pointers are valid for the kernel's rows and columns.
pub(crate) type Kernel<T> = unsafe fn(&Tile<T>);

/// Where a kernel finds its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The left operand is packed: `a[p · rows + i]`.
    Packed,
    /// The left operand is strided: `a[p · a_k + i · a_row]`.
    Strided,
    /// The left operand is packed, the right one lies at `b[taps[p] + j]`.
    TapColumns,
    /// The left operand lies at `a[taps[p] + rows[i]]`.
    TapRows,
}

/// The kernels for one number type and instruction set.
pub(crate) struct Engine<T: 'static> {
    /// Rows of the largest tile.
    pub rows: usize,
    /// Columns of one register; the largest tile has two.
    pub lanes: usize,
    /// `[form][registers of columns − 1][rows − 1]`.
    pub kernels: [[&'static [Kernel<T>]; 2]; 4],
}

impl<T> Engine<T> {
    /// The kernel for a tile of this many rows and registers of columns.
    pub fn kernel(&self, form: Form, rows: usize, registers: usize) -> Kernel<T> {
        self.kernels[form as usize][registers - 1][rows - 1]
    }
}

/// The one micro-kernel: `left(p, i)` and `right(p)` say where operands lie.
#[inline(always)]
unsafe fn product<V: Lanes, const R: usize, const N: usize>(
    tile: &Tile<V::Item>,
    left: impl Fn(usize, usize) -> *const V::Item,
    right: impl Fn(usize) -> *const V::Item,
) {
    // SAFETY: by `Kernel`'s contract the tile's operands are valid for R rows, N registers and k inner positions.
    unsafe {
        let mut sums = [[V::zero(); N]; R];
        for p in 0..tile.k {
            let from = right(p);
            let mut columns = [V::zero(); N];
            for (j, column) in columns.iter_mut().enumerate() {
                *column = V::load(from.add(j * V::LEN));
            }
            for (i, row) in sums.iter_mut().enumerate() {
                let factor = V::splat(left(p, i));
                for (sum, column) in row.iter_mut().zip(columns) {
                    *sum = factor.mul_add(column, *sum);
                }
            }
        }
        for (i, row) in sums.iter().enumerate() {
            for (j, &sum) in row.iter().enumerate() {
                let to = tile.c.offset(i as isize * tile.c_row).add(j * V::LEN);
                let sum = if tile.add { V::load(to).add(sum) } else { sum };
                sum.store(to);
            }
        }
    }
}

#[inline(always)]
unsafe fn packed<V: Lanes, const R: usize, const N: usize>(t: &Tile<V::Item>) {
    // SAFETY: the caller's promise; the offsets stay inside the operands.
    unsafe { product::<V, R, N>(t, |p, i| t.a.add(p * R + i), |p| t.b.offset(p as isize * t.b_k)) }
}

#[inline(always)]
unsafe fn strided<V: Lanes, const R: usize, const N: usize>(t: &Tile<V::Item>) {
    // SAFETY: the caller's promise; the offsets stay inside the operands.
    unsafe {
        product::<V, R, N>(
            t,
            |p, i| t.a.offset(p as isize * t.a_k + i as isize * t.a_row),
            |p| t.b.offset(p as isize * t.b_k),
        )
    }
}

#[inline(always)]
unsafe fn tap_columns<V: Lanes, const R: usize, const N: usize>(t: &Tile<V::Item>) {
    // SAFETY: the caller's promise; `taps` has k entries, and the offsets stay inside the operands.
    unsafe { product::<V, R, N>(t, |p, i| t.a.add(p * R + i), |p| t.b.offset(*t.taps.add(p))) }
}

#[inline(always)]
unsafe fn tap_rows<V: Lanes, const R: usize, const N: usize>(t: &Tile<V::Item>) {
    // SAFETY: the caller's promise; `taps` has k and `rows` R entries, and the offsets stay inside the operands.
    unsafe {
        let rows: [*const V::Item; R] = std::array::from_fn(|i| t.a.offset(*t.rows.add(i)));
        product::<V, R, N>(t, |p, i| rows[i].offset(*t.taps.add(p)), |p| t.b.offset(p as isize * t.b_k))
    }
}

/// Declares an engine: a kernel for every form, number of registers and number of rows.
macro_rules! engine {
    ($name:ident: $register:ty, $item:ty, $($feature:literal)?, $rows:literal = $($r:literal)+) => {
        pub(crate) static $name: Engine<$item> = {
            engine!(@forms $register, $item, $($feature)?, packed strided tap_columns tap_rows);
            Engine {
                rows: $rows,
                lanes: <$register as Lanes>::LEN,
                kernels: [
                    [&[$(forms::packed::<$r, 1>),+], &[$(forms::packed::<$r, 2>),+]],
                    [&[$(forms::strided::<$r, 1>),+], &[$(forms::strided::<$r, 2>),+]],
                    [&[$(forms::tap_columns::<$r, 1>),+], &[$(forms::tap_columns::<$r, 2>),+]],
                    [&[$(forms::tap_rows::<$r, 1>),+], &[$(forms::tap_rows::<$r, 2>),+]],
                ],
            }
        };
    };
    (@forms $register:ty, $item:ty, , $($form:ident)+) => {
        mod forms {
            use super::*;
            $(pub unsafe fn $form<const R: usize, const N: usize>(tile: &Tile<$item>) {
                // SAFETY: the caller's promise.
                unsafe { super::$form::<$register, R, N>(tile) }
            })+
        }
    };
    (@forms $register:ty, $item:ty, $feature:literal, $($form:ident)+) => {
        mod forms {
            use super::*;
            $(#[target_feature(enable = $feature)]
            pub unsafe fn $form<const R: usize, const N: usize>(tile: &Tile<$item>) {
                // SAFETY: the caller's promise, the instruction set included.
                unsafe { super::$form::<$register, R, N>(tile) }
            })+
        }
    };
}

engine!(PORTABLE_F32: [f32; 4], f32, , 4 = 1 2 3 4);
engine!(PORTABLE_F64: [f64; 4], f64, , 4 = 1 2 3 4);
engine!(PORTABLE_I64: [i64; 4], i64, , 4 = 1 2 3 4);
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;
    engine!(AVX2_F32: __m256, f32, "avx2,fma", 6 = 1 2 3 4 5 6);
    engine!(AVX2_F64: __m256d, f64, "avx2,fma", 6 = 1 2 3 4 5 6);
    engine!(AVX512_F32: __m512, f32, "avx512f,avx2,fma", 12 = 1 2 3 4 5 6 7 8 9 10 11 12);
    engine!(AVX512_F64: __m512d, f64, "avx512f,avx2,fma", 12 = 1 2 3 4 5 6 7 8 9 10 11 12);
}
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;
#[cfg(target_arch = "aarch64")]
mod neon {
    use super::*;
    use std::arch::aarch64::*;
    engine!(NEON_F32: float32x4_t, f32, "neon", 12 = 1 2 3 4 5 6 7 8 9 10 11 12);
    engine!(NEON_F64: float64x2_t, f64, "neon", 12 = 1 2 3 4 5 6 7 8 9 10 11 12);
}
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::*;
