//! Operators on single elements.

use super::arithmetic::wide;
use super::{Refusal, refusal};
use crate::builder::{Builder, Val};
use backfit_ir::op::{Binary, Comparison, Unary};
use backfit_ir::{Class, DType};

/// One operand.
pub fn unary(b: &mut Builder, op: Unary, x: &Val) -> Result<Val, Refusal> {
    let dtype = x.dtype();
    match dtype.class() {
        Class::Bool => Ok(b.not(x)),
        Class::Float => {
            let wide = b.widen(x);
            let y = float_unary(b, op, &wide)?;
            Ok(if op == Unary::IsFinite { y } else { b.cast(&y, dtype) })
        }
        _ => Ok(integer_unary(b, op, x)),
    }
}

fn float_unary(b: &mut Builder, op: Unary, x: &Val) -> Result<Val, Refusal> {
    let double = x.dtype() == DType::F64;
    let name = match op {
        Unary::Neg => "Neg",
        Unary::Abs => "Abs",
        Unary::Exp => "Exp",
        Unary::Log => "Log",
        Unary::Sqrt => "Sqrt",
        Unary::Reciprocal => "Reciprocal",
        Unary::Sin => "Sin",
        Unary::Cos => "Cos",
        Unary::Tanh => "Tanh",
        Unary::Floor => "Floor",
        Unary::Ceil => "Ceil",
        Unary::RoundEven => "Round",
        Unary::Erf if double => return Err(refusal("onnxruntime has no kernel of Erf in f64", "cast to f32")),
        Unary::Erf => "Erf",
        Unary::Tan if !double => "Tan",
        Unary::Tan => {
            let (sine, cosine) = (b.unary("Sin", x), b.unary("Cos", x));
            return Ok(b.binary("Div", &sine, &cosine));
        }
        Unary::Rsqrt => {
            let root = b.unary("Sqrt", x);
            return Ok(b.unary("Reciprocal", &root));
        }
        Unary::Sign => {
            // NaN has no sign, and zeros keep theirs.
            let (sign, number) = (b.unary("Sign", x), b.test_number("Equal", x, 0.0));
            let nan = b.is_nan(x);
            let keeps = b.binary("Or", &number, &nan);
            return Ok(b.choose(&keeps, x, &sign));
        }
        Unary::Expm1 => return Ok(in_double(b, x, expm1)),
        Unary::Log1p => return Ok(in_double(b, x, log1p)),
        Unary::IsFinite => {
            let inf = b.node("IsInf", &[x], vec![], x.ty.with_dtype(DType::Bool));
            let nan = b.is_nan(x);
            let either = b.binary("Or", &inf, &nan);
            return Ok(b.not(&either));
        }
        Unary::Not => unreachable!("the type rule refuses floats"),
    };
    Ok(b.unary(name, x))
}

/// Computes in f64.
fn in_double(b: &mut Builder, x: &Val, function: fn(&mut Builder, &Val) -> Val) -> Val {
    let wide = b.cast(x, DType::F64);
    let y = function(b, &wide);
    b.cast(&y, x.dtype())
}

/// With u = eˣ: (u − 1) · x / log u, in which the errors of u cancel; x where u is 1. Source: Kahan, in Higham,
/// "Accuracy and Stability of Numerical Algorithms", 1.14.1.
fn expm1(b: &mut Builder, x: &Val) -> Val {
    let u = b.unary("Exp", x);
    let less = b.with_number("Sub", &u, 1.0);
    let log = b.unary("Log", &u);
    let (product, one) = (b.binary("Mul", &less, x), b.test_number("Equal", &u, 1.0));
    let quotient = b.binary("Div", &product, &log);
    // From there on the one is lost, or eˣ is infinite.
    let far = b.test_number("Greater", x, 40.0);
    let lost = b.test_number("Less", x, -40.0);
    let either = b.binary("Or", &far, &lost);
    let y = b.choose(&either, &less, &quotient);
    b.choose(&one, x, &y)
}

/// With u = 1 + x: log u · x / (u − 1), in which the errors of u cancel; x where u is 1. Source: as above.
fn log1p(b: &mut Builder, x: &Val) -> Val {
    let u = b.with_number("Add", x, 1.0);
    let less = b.with_number("Sub", &u, 1.0);
    let log = b.unary("Log", &u);
    let (product, one) = (b.binary("Mul", &log, x), b.test_number("Equal", &u, 1.0));
    let quotient = b.binary("Div", &product, &less);
    let far = b.test_number("Greater", x, 1e17);
    let y = b.choose(&far, &log, &quotient);
    b.choose(&one, x, &y)
}

fn integer_unary(b: &mut Builder, op: Unary, x: &Val) -> Val {
    let signed = x.dtype().class() == Class::Signed;
    match op {
        Unary::Neg => {
            let zero = b.whole(x.dtype(), 0);
            b.binary("Sub", &zero, x)
        }
        Unary::Abs if !signed => x.clone(),
        Unary::Abs => {
            let zero = b.whole(x.dtype(), 0);
            let (negated, below) = (b.binary("Sub", &zero, x), b.test("Less", x, &zero));
            b.choose(&below, &negated, x)
        }
        Unary::Sign => b.unary("Sign", x),
        Unary::Not => b.unary("BitwiseNot", x),
        _ => unreachable!("the type rule refuses integers"),
    }
}

/// Two operands.
pub fn binary(b: &mut Builder, op: Binary, x: &Val, y: &Val) -> Result<Val, Refusal> {
    let dtype = x.dtype();
    Ok(match (op, dtype.class()) {
        (Binary::Maximum, _) => b.extreme("Max", x, y),
        (Binary::Minimum, _) => b.extreme("Min", x, y),
        (Binary::And | Binary::Or | Binary::Xor, class) => {
            let name = match op {
                Binary::And => "And",
                Binary::Or => "Or",
                _ => "Xor",
            };
            if class == Class::Bool { b.binary(name, x, y) } else { b.binary(&format!("Bitwise{name}"), x, y) }
        }
        (Binary::Add, _) => b.binary_in(dtype.accumulator(), "Add", x, y),
        (Binary::Sub, _) => b.binary_in(dtype.accumulator(), "Sub", x, y),
        (Binary::Mul, _) => b.binary_in(dtype.accumulator(), "Mul", x, y),
        (Binary::Div, Class::Float) => b.binary_in(dtype.accumulator(), "Div", x, y),
        (Binary::Div, _) => quotient(b, x, y).0,
        (Binary::Rem, Class::Float) => {
            let (wide_x, wide_y) = (b.widen(x), b.widen(y));
            let fmod = crate::proto::AttributeProto::int("fmod", 1);
            let left = b.node("Mod", &[&wide_x, &wide_y], vec![fmod], wide_x.ty.clone());
            b.cast(&left, dtype)
        }
        (Binary::Rem, _) => quotient(b, x, y).1,
        (Binary::Pow, Class::Float) => b.binary_in(dtype.accumulator(), "Pow", x, y),
        (Binary::Pow, _) => {
            return Err(refusal("ONNX raises integers to powers in floats", "multiply, or cast to f64"));
        }
        (Binary::Atan2, _) if dtype == DType::F64 => {
            return Err(refusal("onnxruntime has no kernel of Atan in f64", "cast to f32"));
        }
        (Binary::Atan2, _) => {
            let (wide_x, wide_y) = (b.widen(x), b.widen(y));
            let angle = atan2(b, &wide_x, &wide_y);
            b.cast(&angle, dtype)
        }
        (Binary::ShiftLeft, _) => shift(b, "LEFT", x, y),
        (Binary::ShiftRight, _) => shift_right(b, x, y),
    })
}

/// Quotient and remainder of integers, without the traps of processors: by 0, and of the smallest number by −1.
fn quotient(b: &mut Builder, x: &Val, y: &Val) -> (Val, Val) {
    let (dtype, wide) = (x.dtype(), wide(x.dtype()));
    let (x, y) = (b.cast(x, wide), b.cast(y, wide));
    let [zero, one, ones] = [0, 1, -1].map(|v| b.whole(wide, v));
    let by_zero = b.test("Equal", &y, &zero);
    let harmless = b.choose(&by_zero, &one, &y);
    let (q, r) = if wide == DType::I64 {
        let minus = b.whole(wide, -1);
        let by_minus = b.test("Equal", &y, &minus);
        let harmless = b.choose(&by_minus, &one, &harmless);
        let (q, negated) = (b.binary("Div", &x, &harmless), b.binary("Sub", &zero, &x));
        let part = b.binary("Mul", &q, &harmless);
        (b.choose(&by_minus, &negated, &q), b.binary("Sub", &x, &part))
    } else {
        let q = b.binary("Div", &x, &harmless);
        let part = b.binary("Mul", &q, &harmless);
        (q, b.binary("Sub", &x, &part))
    };
    let (q, r) = (b.choose(&by_zero, &ones, &q), b.choose(&by_zero, &x, &r));
    (b.cast(&q, dtype), b.cast(&r, dtype))
}

/// `BitShift` is defined on unsigned integers, and only for less places than there are bits.
fn shift(b: &mut Builder, direction: &str, x: &Val, places: &Val) -> Val {
    let (bits, places) = (b.cast(x, DType::U64), b.cast(places, DType::U64));
    let width = b.whole(DType::U64, x.dtype().bits() as i64);
    let inside = b.test("Less", &places, &width);
    let mask = b.cast(&inside, DType::U64);
    let places = b.binary("Mul", &places, &mask);
    let attribute = crate::proto::AttributeProto::text("direction", direction);
    let moved = b.node("BitShift", &[&bits, &places], vec![attribute], bits.ty.clone());
    let moved = b.binary("Mul", &moved, &mask);
    b.cast(&moved, x.dtype())
}

/// Negative numbers are flipped, moved, and flipped back, so that ones move in.
fn shift_right(b: &mut Builder, x: &Val, places: &Val) -> Val {
    if x.dtype().class() == Class::Unsigned {
        return shift(b, "RIGHT", x, places);
    }
    let (wide, far) = (b.cast(x, DType::I64), b.cast(places, DType::I64));
    let zero = b.whole(DType::I64, 0);
    let below = b.test("Less", &wide, &zero);
    let sign = b.cast(&below, DType::I64);
    let mask = b.binary("Sub", &zero, &sign);
    let flipped = b.binary("BitwiseXor", &wide, &mask);
    // 64 bits, of which the narrower dtype's own are the lowest: as many places as it has bits leave nothing.
    let moved = shift(b, "RIGHT", &flipped, &far);
    let y = b.binary("BitwiseXor", &moved, &mask);
    b.cast(&y, x.dtype())
}

/// The angle of the point (x, y) from the arc tangent of a number in 0..=1, mirrored at the diagonal and at the axes.
fn atan2(b: &mut Builder, y: &Val, x: &Val) -> Val {
    use std::f64::consts::{FRAC_PI_2, PI};
    let (far_y, far_x) = (b.unary("Abs", y), b.unary("Abs", x));
    let (more, less) = (b.binary("Max", &far_y, &far_x), b.binary("Min", &far_y, &far_x));
    let ratio = b.binary("Div", &less, &more);
    let [zero, one] = [0.0, 1.0].map(|v| b.number(y.dtype(), v));
    // 0 / 0 at the origin; ∞ / ∞ on the diagonals at infinity.
    let origin = b.test("Equal", &more, &zero);
    let ratio = b.choose(&origin, &zero, &ratio);
    let (same, infinite) = (b.test("Equal", &far_y, &far_x), b.test_number("Equal", &more, f64::INFINITY));
    let diagonal = b.binary("And", &same, &infinite);
    let ratio = b.choose(&diagonal, &one, &ratio);
    let angle = b.unary("Atan", &ratio);
    let (steep, half) = (b.test("Greater", &far_y, &far_x), b.number(y.dtype(), FRAC_PI_2));
    let mirrored = b.binary("Sub", &half, &angle);
    let angle = b.choose(&steep, &mirrored, &angle);
    let (left, whole) = (is_negative(b, x), b.number(y.dtype(), PI));
    let mirrored = b.binary("Sub", &whole, &angle);
    let angle = b.choose(&left, &mirrored, &angle);
    let (down, negated) = (is_negative(b, y), b.unary("Neg", &angle));
    b.choose(&down, &negated, &angle)
}

/// Whether the sign is set, of zeros too.
fn is_negative(b: &mut Builder, x: &Val) -> Val {
    let zero = b.number(x.dtype(), 0.0);
    let (number, inverse) = (b.test("Less", x, &zero), b.unary("Reciprocal", x));
    let of_zero = b.test("Less", &inverse, &zero);
    b.binary("Or", &number, &of_zero)
}

/// A relation.
pub fn compare(b: &mut Builder, relation: Comparison, x: &Val, y: &Val) -> Val {
    let (x, y) = (b.widen(x), b.widen(y));
    match relation {
        Comparison::Eq => b.test("Equal", &x, &y),
        Comparison::Ne => {
            let equal = b.test("Equal", &x, &y);
            b.not(&equal)
        }
        Comparison::Lt => b.test("Less", &x, &y),
        Comparison::Le => b.test("LessOrEqual", &x, &y),
        Comparison::Gt => b.test("Greater", &x, &y),
        Comparison::Ge => b.test("GreaterOrEqual", &x, &y),
    }
}

/// `clamp(low, x, high)`.
pub fn clamp(b: &mut Builder, low: &Val, x: &Val, high: &Val) -> Val {
    let raised = b.extreme("Max", x, low);
    b.extreme("Min", &raised, high)
}
