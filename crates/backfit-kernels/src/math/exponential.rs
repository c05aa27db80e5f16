//! Exponentials, logarithms and what is made of them.

/// Adding and subtracting it rounds a small f32 to an integer, which is then in its low bits.
const ROUND: f32 = 12_582_912.0;
/// log₂ e
const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2, in two parts of which the first has few bits.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `x` without its sign replaced by that of `sign`.
#[inline(always)]
pub(super) fn with_sign(x: f32, sign: f32) -> f32 {
    f32::from_bits(x.to_bits() | (sign.to_bits() & 0x8000_0000))
}

/// 2^n for -126 ≤ n ≤ 127.
#[inline(always)]
fn exp2i(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// Splits x = n·ln 2 + r with |r| ≤ ln 2 / 2 (a little more): n and r.
#[inline(always)]
fn split(x: f32) -> (i32, f32) {
    let t = x.mul_add(LOG2_E, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    ((t.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32), r)
}

/// (e^r - 1 - r) / r² for |r| ≤ 0.35.
#[inline(always)]
fn exp_rest(r: f32) -> f32 {
    let p = r.mul_add(1.987_569_2e-4, 1.398_199_9e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 1.666_666_5e-1);
    p.mul_add(r, 0.5)
}

/// e^x. Error ≤ 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (n, r) = split(x);
    let p = (r * r).mul_add(exp_rest(r), r) + 1.0;
    // In two steps, so that both factors are normal and the result rounds once.
    let half = n >> 1;
    p * exp2i(half) * exp2i(n.wrapping_sub(half))
}

/// e^x - 1. Error ≤ 2 ulp.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let y = if x > 89.0 { 89.0 } else { x };
    let y = if y < -20.0 { -20.0 } else { y };
    let (n, r) = split(y);
    let q = (r * r).mul_add(exp_rest(r), r);
    // Half of the result, since 2^n itself may overflow.
    let scale = exp2i(n.wrapping_sub(1));
    let value = scale.mul_add(q, scale - 0.5) * 2.0;
    if x.abs() < 3e-8 { x } else { value }
}

/// (ln(1+f) - f) for √½ ≤ 1+f < √2, as the pair (s·(f²/2 + R), -f²/2).
#[inline(always)]
fn log_rest(f: f32) -> (f32, f32) {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let odd = z * w.mul_add(0.284_987_87, 0.666_666_6);
    let even = w * w.mul_add(0.242_790_79, 0.400_009_72);
    let half_square = 0.5 * f * f;
    (s * (half_square + (even + odd)), -half_square)
}

const LOG_LN2_HIGH: f32 = 0.693_138_1;
const LOG_LN2_LOW: f32 = 9.058_001e-6;
/// Bits of √½.
const SQRT_HALF: i32 = 0x3f35_04f3;

/// ln x. Error ≤ 1 ulp.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 33_554_432.0 } else { x };
    let bits = (scaled.to_bits() as i32).wrapping_sub(SQRT_HALF);
    let exponent = (bits >> 23) - if tiny { 25 } else { 0 };
    let f = f32::from_bits((bits & 0x7f_ffff).wrapping_add(SQRT_HALF) as u32) - 1.0;
    let k = exponent as f32;
    let (rest, square) = log_rest(f);
    let y = ((k.mul_add(LOG_LN2_LOW, rest) + square) + f) + k * LOG_LN2_HIGH;
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    // Infinity and NaN are their own logarithms.
    if x < f32::INFINITY { y } else { x }
}

/// ln(1 + x). Error ≤ 2 ulp.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let bits = (u.to_bits() as i32).wrapping_sub(SQRT_HALF);
    let exponent = bits >> 23;
    let k = exponent as f32;
    let f = f32::from_bits((bits & 0x7f_ffff).wrapping_add(SQRT_HALF) as u32) - 1.0;
    // What 1 + x lost in rounding, relative to it.
    let lost = if exponent >= 2 { 1.0 - (u - x) } else { x - (u - 1.0) };
    let correction = if exponent < 25 { lost / u } else { 0.0 };
    let whole = exponent == 0;
    let f = if whole { x } else { f };
    let correction = if whole { 0.0 } else { correction };
    let (rest, square) = log_rest(f);
    let y = (((rest + k.mul_add(LOG_LN2_LOW, correction)) + square) + f) + k * LOG_LN2_HIGH;
    let y = if x.abs() < 3e-8 { x } else { y };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    let y = if x < -1.0 { f32::NAN } else { y };
    if x < f32::INFINITY { y } else { x }
}

/// tanh x. Error ≤ 3 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let t = expm1(2.0 * a);
    let near = a < 0.55;
    let quotient = if near { t } else { 2.0 } / (t + 2.0);
    with_sign(if near { quotient } else { 1.0 - quotient }, x)
}

/// The error function. Error ≤ 2 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 4.0 { 4.0 } else { a };
    let s = a * a;
    let far = {
        let p = a.mul_add(-1.728_534_7e-5, 3.831_971_3e-4);
        let q = a.mul_add(-3.883_964_4e-3, 2.425_462_2e-2);
        let p = p.mul_add(s, q);
        let p = p.mul_add(a, -1.067_778_8e-1);
        let p = p.mul_add(a, -0.634_846_7);
        let p = p.mul_add(a, -1.287_175_1e-1);
        1.0 - exp(p.mul_add(a, -a))
    };
    let near = {
        let p = s.mul_add(-5.967_617e-4, 4.991_194_2e-3);
        let p = p.mul_add(s, -2.676_813_5e-2);
        let p = p.mul_add(s, 1.128_199_2e-1);
        let p = p.mul_add(s, -3.761_253_4e-1);
        let p = p.mul_add(s, 1.283_791_7e-1);
        p.mul_add(a, a)
    };
    with_sign(if a > 0.927_734_4 { far } else { near }, x)
}

/// log₂ of a positive finite f64, with an error of about 2^-40.
#[inline(always)]
fn log2_f64(x: f64) -> f64 {
    const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
    let bits = (x.to_bits() as i64).wrapping_sub(SQRT_HALF);
    let m = f64::from_bits((bits & 0xf_ffff_ffff_ffff).wrapping_add(SQRT_HALF) as u64);
    // The exponent as a float, without a conversion from i64: by the bits of 1.5·2^52.
    let magic = 6_755_399_441_055_744.0f64;
    let exponent = ((bits as u64) >> 52) as i64;
    let exponent = exponent.wrapping_sub((exponent & 0x800) << 1);
    let k = f64::from_bits((magic.to_bits() as i64).wrapping_add(exponent) as u64) - magic;
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = z.mul_add(1.0 / 15.0, 1.0 / 13.0);
    let p = p.mul_add(z, 1.0 / 11.0);
    let p = p.mul_add(z, 1.0 / 9.0);
    let p = p.mul_add(z, 1.0 / 7.0);
    let p = p.mul_add(z, 1.0 / 5.0);
    let p = p.mul_add(z, 1.0 / 3.0);
    let p = p.mul_add(z, 1.0);
    (s * (2.0 * std::f64::consts::LOG2_E)).mul_add(p, k)
}

/// 2^x in f64 for |x| ≤ 1000, with a relative error of about 2^-36.
#[inline(always)]
fn exp2_f64(x: f64) -> f64 {
    let magic = 6_755_399_441_055_744.0f64;
    let t = x + magic;
    let r = (x - (t - magic)) * std::f64::consts::LN_2;
    let p = r.mul_add(1.0 / 362_880.0, 1.0 / 40_320.0);
    let p = p.mul_add(r, 1.0 / 5_040.0);
    let p = p.mul_add(r, 1.0 / 720.0);
    let p = p.mul_add(r, 1.0 / 120.0);
    let p = p.mul_add(r, 1.0 / 24.0);
    let p = p.mul_add(r, 1.0 / 6.0);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r, 1.0);
    let p = p.mul_add(r, 1.0);
    f64::from_bits(p.to_bits().wrapping_add(t.to_bits() << 52))
}

/// x^y, with the special cases of IEEE 754 and C. Error ≤ 1 ulp.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = f64::from(x.abs());
    let l = log2_f64(a);
    let l = if a == 0.0 { -1e60 } else { l };
    let l = if a == f64::INFINITY { 1e60 } else { l };
    let l = if a == 1.0 { 0.0 } else { l };
    let product = f64::from(y) * l;
    let product = if l == 0.0 { 0.0 } else { product };
    let product = if product > 400.0 { 400.0 } else { product };
    let product = if product < -400.0 { -400.0 } else { product };
    let magnitude = exp2_f64(product) as f32;
    let whole = y == y.round_ties_even();
    let halves = 0.5 * y;
    let odd = whole && halves != halves.round_ties_even() && y.abs() < 16_777_216.0;
    let negative = x.is_sign_negative();
    let value = if negative && odd { -magnitude } else { magnitude };
    let value = if x < 0.0 && x != f32::NEG_INFINITY && !whole { f32::NAN } else { value };
    let value = if x.is_nan() || y.is_nan() { x + y } else { value };
    if y == 0.0 || x == 1.0 { 1.0 } else { value }
}
