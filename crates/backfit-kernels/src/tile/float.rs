//! Operations on f32 and f64 slots.

use super::group::{Binary, Comparison, Unary};
use crate::isa::Isa;
use crate::math;

/// `to[i] = e` for every `i`, with names for the operands' elements.
macro_rules! map {
    ($n:expr, $to:ident: $r:ty, $($a:ident: $t:ty),* => $e:expr) => {{
        // SAFETY: the caller promises `n` values behind each pointer, and that `to` overlaps no operand.
        unsafe {
            let out = std::slice::from_raw_parts_mut($to.cast::<$r>(), $n);
            $(let $a = std::slice::from_raw_parts($a.cast::<$t>(), $n);)*
            for i in 0..$n {
                $(let $a = $a[i];)*
                out[i] = $e;
            }
        }
    }};
}
pub(super) use map;

per_isa! {
    /// A unary operation on f32 values.
    ///
    /// # Safety
    /// There are `n` values behind each pointer, and they do not overlap. So for all functions of this file.
    fn unary_vector(op: Unary, x: *const u8, to: *mut u8, n: usize) = unary_body
}
per_isa! { pub(super) fn binary_f32(op: Binary, a: *const u8, b: *const u8, to: *mut u8, n: usize) = binary_body }
per_isa! { pub(super) fn binary_f32_right(op: Binary, x: *const u8, value: *const u8, to: *mut u8, n: usize) = broadcast_body::<false> }
per_isa! { pub(super) fn binary_f32_left(op: Binary, x: *const u8, value: *const u8, to: *mut u8, n: usize) = broadcast_body::<true> }
per_isa! { pub(super) fn compare_f32(op: Comparison, a: *const u8, b: *const u8, to: *mut u8, n: usize) = compare_body }
per_isa! { pub(super) fn clamp_f32(low: *const u8, x: *const u8, high: *const u8, to: *mut u8, n: usize) = clamp_body }
per_isa! { pub(super) fn select_32(mask: *const u8, a: *const u8, b: *const u8, to: *mut u8, n: usize) = select_body }

/// A unary operation on f32 values.
pub(super) unsafe fn unary_f32(isa: Isa, op: Unary, x: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { unary_vector(isa, op, x, to, n) };
    let exact = match op {
        Unary::Sin => libm::sinf,
        Unary::Cos => libm::cosf,
        Unary::Tan => libm::tanf,
        _ => return,
    };
    // SAFETY: as above.
    let (x, to) = unsafe {
        (std::slice::from_raw_parts(x.cast::<f32>(), n), std::slice::from_raw_parts_mut(to.cast::<f32>(), n))
    };
    for (value, &x) in to.iter_mut().zip(x) {
        if x.abs() >= math::LARGE_ANGLE && x.is_finite() {
            *value = exact(x);
        }
    }
}

#[inline(always)]
unsafe fn unary_body(op: Unary, x: *const u8, to: *mut u8, n: usize) {
    let one = one() as f32;
    match op {
        Unary::Neg => map!(n, to: f32, x: f32 => -x),
        Unary::Abs => map!(n, to: f32, x: f32 => x.abs()),
        Unary::Sign => map!(n, to: f32, x: f32 => math::sign(x * one)),
        Unary::Exp => map!(n, to: f32, x: f32 => math::exp(x)),
        Unary::Expm1 => map!(n, to: f32, x: f32 => math::expm1(x)),
        Unary::Log => map!(n, to: f32, x: f32 => math::log(x)),
        Unary::Log1p => map!(n, to: f32, x: f32 => math::log1p(x)),
        Unary::Sqrt => map!(n, to: f32, x: f32 => x.sqrt()),
        Unary::Rsqrt => map!(n, to: f32, x: f32 => 1.0 / x.sqrt()),
        Unary::Reciprocal => map!(n, to: f32, x: f32 => 1.0 / x),
        Unary::Sin => map!(n, to: f32, x: f32 => math::sin(x)),
        Unary::Cos => map!(n, to: f32, x: f32 => math::cos(x)),
        Unary::Tan => map!(n, to: f32, x: f32 => math::tan(x)),
        Unary::Tanh => map!(n, to: f32, x: f32 => math::tanh(x)),
        Unary::Erf => map!(n, to: f32, x: f32 => math::erf(x)),
        Unary::Floor => map!(n, to: f32, x: f32 => x.floor()),
        Unary::Ceil => map!(n, to: f32, x: f32 => x.ceil()),
        Unary::RoundEven => map!(n, to: f32, x: f32 => x.round_ties_even()),
        Unary::IsFinite => map!(n, to: i32, x: f32 => i32::from(x.abs() < f32::INFINITY)),
        Unary::Not => unreachable!("refused by check"),
    }
}

#[inline(always)]
unsafe fn binary_body(op: Binary, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    let one = one() as f32;
    match op {
        Binary::Add => map!(n, to: f32, a: f32, b: f32 => a + b),
        Binary::Sub => map!(n, to: f32, a: f32, b: f32 => a - b),
        Binary::Mul => map!(n, to: f32, a: f32, b: f32 => a * b),
        Binary::Div => map!(n, to: f32, a: f32, b: f32 => a / b),
        Binary::Rem => map!(n, to: f32, a: f32, b: f32 => libm::fmodf(a * one, b * one)),
        Binary::Pow => map!(n, to: f32, a: f32, b: f32 => math::pow(a * one, b * one)),
        Binary::Atan2 => map!(n, to: f32, a: f32, b: f32 => math::atan2(a * one, b * one)),
        Binary::Maximum => map!(n, to: f32, a: f32, b: f32 => math::maximum(a, b)),
        Binary::Minimum => map!(n, to: f32, a: f32, b: f32 => math::minimum(a, b)),
        _ => unreachable!("refused by check"),
    }
}

/// Whether an operation has a form with one value on one side.
pub(super) fn broadcasts(op: Binary) -> bool {
    use Binary::{Add, Div, Maximum, Minimum, Mul, Sub};
    matches!(op, Add | Sub | Mul | Div | Maximum | Minimum)
}

/// `x op value`, or with `LEFT` `value op x`, where `value` is one value.
#[inline(always)]
unsafe fn broadcast_body<const LEFT: bool>(op: Binary, x: *const u8, value: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller promises a value.
    let value = unsafe { *value.cast::<f32>() };
    macro_rules! sides {
        (|$a:ident, $b:ident| $e:expr) => {
            map!(n, to: f32, x: f32 => {
                let ($a, $b) = if LEFT { (value, x) } else { (x, value) };
                $e
            })
        };
    }
    match op {
        Binary::Add => sides!(|a, b| a + b),
        Binary::Sub => sides!(|a, b| a - b),
        Binary::Mul => sides!(|a, b| a * b),
        Binary::Div => sides!(|a, b| a / b),
        Binary::Maximum => sides!(|a, b| math::maximum(a, b)),
        Binary::Minimum => sides!(|a, b| math::minimum(a, b)),
        _ => unreachable!("refused by `broadcasts`"),
    }
}

macro_rules! compare {
    ($op:expr, $n:expr, $a:ident, $b:ident, $to:ident, $t:ty) => {
        match $op {
            Comparison::Eq => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a == $b)),
            Comparison::Ne => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a != $b)),
            Comparison::Lt => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a < $b)),
            Comparison::Le => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a <= $b)),
            Comparison::Gt => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a > $b)),
            Comparison::Ge => map!($n, $to: i32, $a: $t, $b: $t => i32::from($a >= $b)),
        }
    };
}
pub(super) use compare;

#[inline(always)]
unsafe fn compare_body(op: Comparison, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    compare!(op, n, a, b, to, f32);
}

#[inline(always)]
unsafe fn clamp_body(low: *const u8, x: *const u8, high: *const u8, to: *mut u8, n: usize) {
    map!(n, to: f32, low: f32, x: f32, high: f32 => math::minimum(math::maximum(x, low), high));
}

#[inline(always)]
unsafe fn select_body(mask: *const u8, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    // Not a condition: the compiler would turn it into one on addresses, element by element.
    map!(n, to: u32, mask: i32, a: u32, b: u32 => {
        let keep = u32::from(mask != 0).wrapping_neg();
        (a & keep) | (b & !keep)
    });
}

/// Selects 64-bit values.
pub(super) unsafe fn select_64(mask: *const u8, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    map!(n, to: u64, mask: i32, a: u64, b: u64 => {
        let keep = u64::from(mask != 0).wrapping_neg();
        (a & keep) | (b & !keep)
    });
}

/// A unary operation on f64 values.
pub(super) unsafe fn unary_f64(op: Unary, x: *const u8, to: *mut u8, n: usize) {
    let sign = |x: f64| {
        if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else {
            x
        }
    };
    let one = one();
    match op {
        Unary::Neg => map!(n, to: f64, x: f64 => -x),
        Unary::Abs => map!(n, to: f64, x: f64 => x.abs()),
        Unary::Sign => map!(n, to: f64, x: f64 => sign(x * one)),
        Unary::Exp => map!(n, to: f64, x: f64 => libm::exp(x * one)),
        Unary::Expm1 => map!(n, to: f64, x: f64 => libm::expm1(x * one)),
        Unary::Log => map!(n, to: f64, x: f64 => libm::log(x * one)),
        Unary::Log1p => map!(n, to: f64, x: f64 => libm::log1p(x * one)),
        Unary::Sqrt => map!(n, to: f64, x: f64 => x.sqrt()),
        Unary::Rsqrt => map!(n, to: f64, x: f64 => 1.0 / x.sqrt()),
        Unary::Reciprocal => map!(n, to: f64, x: f64 => 1.0 / x),
        Unary::Sin => map!(n, to: f64, x: f64 => libm::sin(x * one)),
        Unary::Cos => map!(n, to: f64, x: f64 => libm::cos(x * one)),
        Unary::Tan => map!(n, to: f64, x: f64 => libm::tan(x * one)),
        Unary::Tanh => map!(n, to: f64, x: f64 => libm::tanh(x * one)),
        Unary::Erf => map!(n, to: f64, x: f64 => libm::erf(x * one)),
        Unary::Floor => map!(n, to: f64, x: f64 => (x * one).floor()),
        Unary::Ceil => map!(n, to: f64, x: f64 => (x * one).ceil()),
        Unary::RoundEven => map!(n, to: f64, x: f64 => x.round_ties_even()),
        Unary::IsFinite => map!(n, to: i32, x: f64 => i32::from(x.is_finite())),
        Unary::Not => unreachable!("refused by check"),
    }
}

/// 1, which the compiler does not know. Times it, a subnormal number is zero where the thread flushes them: code that
/// takes numbers apart by their bits would otherwise see what its own arithmetic does not.
fn one() -> f64 {
    std::hint::black_box(1.0)
}

/// A binary operation on f64 values.
pub(super) unsafe fn binary_f64(op: Binary, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    let one = one();
    match op {
        Binary::Add => map!(n, to: f64, a: f64, b: f64 => a + b),
        Binary::Sub => map!(n, to: f64, a: f64, b: f64 => a - b),
        Binary::Mul => map!(n, to: f64, a: f64, b: f64 => a * b),
        Binary::Div => map!(n, to: f64, a: f64, b: f64 => a / b),
        Binary::Rem => map!(n, to: f64, a: f64, b: f64 => libm::fmod(a * one, b * one)),
        Binary::Pow => map!(n, to: f64, a: f64, b: f64 => libm::pow(a * one, b * one)),
        Binary::Atan2 => map!(n, to: f64, a: f64, b: f64 => libm::atan2(a * one, b * one)),
        Binary::Maximum => map!(n, to: f64, a: f64, b: f64 => math::maximum_f64(a, b)),
        Binary::Minimum => map!(n, to: f64, a: f64, b: f64 => math::minimum_f64(a, b)),
        _ => unreachable!("refused by check"),
    }
}

/// A comparison of f64 values.
pub(super) unsafe fn compare_f64(op: Comparison, a: *const u8, b: *const u8, to: *mut u8, n: usize) {
    compare!(op, n, a, b, to, f64);
}

/// Clamps f64 values.
pub(super) unsafe fn clamp_f64(low: *const u8, x: *const u8, high: *const u8, to: *mut u8, n: usize) {
    map!(n, to: f64, low: f64, x: f64, high: f64 => math::minimum_f64(math::maximum_f64(x, low), high));
}
