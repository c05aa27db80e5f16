//! Casts, and rounding to formats with fewer bits.

use super::arithmetic::wide;
use super::{Refusal, refusal};
use crate::builder::{Builder, Val};
use backfit_ir::{Class, DType};

/// `cast`: floats round to nearest even, once; floats to integers truncate and saturate, NaN gives 0; integers wrap.
pub fn cast(b: &mut Builder, x: &Val, to: DType) -> Result<Val, Refusal> {
    let from = x.dtype();
    match (from.class(), to.class()) {
        _ if from == to => Ok(x.clone()),
        (Class::Float, Class::Float) => Ok(float_to_float(b, x, to)),
        (Class::Float, Class::Bool) => {
            let wide = b.widen(x);
            Ok(b.cast(&wide, to))
        }
        (Class::Float, _) => Ok(to_integer(b, x, to)),
        (Class::Bool, Class::Float) => {
            let number = b.cast(x, DType::F32);
            Ok(b.cast(&number, to))
        }
        (_, Class::Float) => to_float(b, x, to),
        _ => Ok(b.cast(x, to)),
    }
}

/// Bits of mantissa, and the exponents of the smallest and of the largest normal number.
struct Format {
    mantissa: u32,
    smallest: i32,
    largest: i32,
}

fn format(dtype: DType) -> Format {
    match dtype {
        DType::F16 => Format { mantissa: 10, smallest: -14, largest: 15 },
        DType::BF16 => Format { mantissa: 7, smallest: -126, largest: 127 },
        DType::F32 => Format { mantissa: 23, smallest: -126, largest: 127 },
        _ => Format { mantissa: 52, smallest: -1022, largest: 1023 },
    }
}

fn float_to_float(b: &mut Builder, x: &Val, to: DType) -> Val {
    let half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
    if x.dtype() == DType::F64 && half(to) {
        // By way of f32 it would be rounded twice: f64 holds what it is rounded to, and so does f32.
        let Format { mantissa, smallest, largest } = format(to);
        let rounded = round_to(b, x, mantissa as i32, smallest, largest + 1);
        let single = b.cast(&rounded, DType::F32);
        return b.cast(&single, to);
    }
    if x.dtype() == to {
        return x.clone();
    }
    if half(x.dtype()) {
        let single = b.cast(x, DType::F32);
        return b.cast(&single, to);
    }
    b.cast(x, to)
}

/// An f64 rounded to a multiple of 2^(e − mantissa), e being the exponent of the number, but at least `smallest` and at
/// most `largest`. Infinities and NaN stay.
fn round_to(b: &mut Builder, x: &Val, mantissa: i32, smallest: i32, largest: i32) -> Val {
    let magnitude = b.unary("Abs", x);
    let least = b.number(DType::F64, 2f64.powi(smallest));
    let mut power = b.expand(&least, x.shape());
    let steps = 32 - ((largest - smallest) as u32).leading_zeros();
    for step in (0..steps).rev() {
        // 2¹⁰²⁴ is no number, but its root is.
        let halfway = b.with_number("Mul", &power, 2f64.powi((1 << step) / 2));
        let next = b.with_number("Mul", &halfway, 2f64.powi((1 << step) - (1 << step) / 2));
        let reached = b.test("GreaterOrEqual", &magnitude, &next);
        power = b.choose(&reached, &next, &power);
    }
    let unit = b.with_number("Mul", &power, 2f64.powi(-mantissa));
    let count = b.binary("Div", x, &unit);
    let rounded = b.unary("Round", &count);
    let rounded = b.binary("Mul", &rounded, &unit);
    let finite = b.test_number("Less", &magnitude, f64::INFINITY);
    b.choose(&finite, &rounded, x)
}

/// `reduce_precision`.
pub fn reduce_precision(b: &mut Builder, x: &Val, exponent: u32, mantissa: u32) -> Val {
    let dtype = x.dtype();
    let full = format(dtype);
    let own = 32 - (full.largest as u32).leading_zeros() + 1;
    if exponent >= own && mantissa >= full.mantissa {
        return x.clone();
    }
    let bias = (1 << (exponent.min(own) - 1)) - 1;
    let single = b.widen(x);
    let wide = b.cast(&single, DType::F64);
    let mut y = round_to(b, &wide, mantissa.min(full.mantissa) as i32, full.smallest, full.largest);
    let magnitude = b.unary("Abs", &y);
    let number = b.test_number("Less", &magnitude, f64::INFINITY);
    if exponent < own {
        let (small, zero) = (b.test_number("Less", &magnitude, 2f64.powi(1 - bias)), b.with_number("Mul", &wide, 0.0));
        y = b.choose(&small, &zero, &y);
        let (large, sign) = (b.test_number("GreaterOrEqual", &magnitude, 2f64.powi(bias + 1)), b.unary("Sign", &y));
        let beyond = b.binary("And", &large, &number);
        let infinity = b.with_number("Mul", &sign, f64::INFINITY);
        y = b.choose(&beyond, &infinity, &y);
    }
    let single = if dtype == DType::F64 { y } else { b.cast(&y, DType::F32) };
    b.cast(&single, dtype)
}

/// Counts, which are below 2⁵³, in any dtype.
pub fn counts(b: &mut Builder, x: &Val, to: DType) -> Val {
    if !to.is_float() {
        return b.cast(x, to);
    }
    let exact = b.cast(x, DType::F64);
    float_to_float(b, &exact, to)
}

fn to_float(b: &mut Builder, x: &Val, to: DType) -> Result<Val, Refusal> {
    match to {
        DType::F64 | DType::F32 => Ok(b.cast(x, to)),
        // f32 holds integers exactly as far as f16 reaches.
        DType::F16 => {
            let single = b.cast(x, DType::F32);
            Ok(b.cast(&single, to))
        }
        _ if x.dtype().bits() <= 32 => {
            let double = b.cast(x, DType::F64);
            Ok(float_to_float(b, &double, to))
        }
        _ => {
            Err(refusal("ONNX rounds integers of 64 bits twice on their way to bf16", "cast to f32, and then to bf16"))
        }
    }
}

/// Numbers are compared with the range in f64, which holds both ends of every range but for a one at the upper end.
fn to_integer(b: &mut Builder, x: &Val, to: DType) -> Val {
    let (single, wide) = (b.widen(x), wide(to));
    let x = b.cast(&single, DType::F64);
    let (low, end) = match to.class() {
        Class::Unsigned => (0.0, 2f64.powi(to.bits() as i32)),
        _ => (-(2f64.powi(to.bits() as i32 - 1)), 2f64.powi(to.bits() as i32 - 1)),
    };
    let (above, below) = (b.test_number("GreaterOrEqual", &x, end), b.test_number("LessOrEqual", &x, low));
    let (not_above, not_below) = (b.test_number("Less", &x, end), b.test_number("Greater", &x, low));
    let inside = b.binary("And", &not_above, &not_below);
    let zero = b.number(DType::F64, 0.0);
    let harmless = b.choose(&inside, &x, &zero);
    let whole = b.cast(&harmless, wide);
    let unused = 64 - to.bits() as u32;
    let (smallest, largest) = match to.class() {
        Class::Unsigned => (0, (u64::MAX >> unused) as i64),
        _ => (i64::MIN >> unused, i64::MAX >> unused),
    };
    let (smallest, largest) = (b.whole(wide, smallest), b.whole(wide, largest));
    let y = b.choose(&above, &largest, &whole);
    let y = b.choose(&below, &smallest, &y);
    b.cast(&y, to)
}
