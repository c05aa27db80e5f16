//! From the intervals of operands to those of results.

use super::interval::Interval;
use backfit_ir::op::{Binary, Monoid, ScatterMode, Unary};
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{DType, Op, Type};
use std::f64::consts::PI;

/// How far elementary functions of a target may be off, in units of the dtype's epsilon.
const ERROR: f64 = 16.0;

/// The intervals of the results of a primitive operator other than calls and loops.
///
/// # Panics
/// For calls and loops, which [`analyse`](super::analyse) walks through.
pub fn transfer(op: &Op, x: &[Interval], operands: &[Type], results: &[Type]) -> Vec<Interval> {
    if let Op::Sort { .. } | Op::Barrier = op {
        return x.to_vec();
    }
    let (interval, error) = result(op, x, operands, &results[0]);
    vec![interval.settled(&results[0], error)]
}

/// The interval before rounding, and the error in units of epsilon.
fn result(op: &Op, x: &[Interval], operands: &[Type], ty: &Type) -> (Interval, f64) {
    let exact = |interval: Interval| (interval, 0.0);
    match op {
        Op::Constant(literal) => exact(Interval::of_literal(literal)),
        Op::Iota { ty, axis } => exact(Interval::new(0.0, ty.shape[*axis].saturating_sub(1) as f64)),
        Op::Unary(op) => (unary(*op, x[0], ty.dtype), ERROR),
        Op::Binary(op) => (binary(*op, x[0], x[1], ty.dtype), ERROR),
        Op::Compare(_) => exact(Interval::new(0.0, 1.0)),
        Op::Select => exact(x[1].join(x[2])),
        Op::Clamp => exact(least(largest(x[0], x[1]), x[2])),
        Op::Cast(to) => exact(cast(x[0], *to)),
        Op::Bitcast(to) => exact(Interval::everything(*to)),
        Op::ReducePrecision { exponent, mantissa } => exact(reduced(x[0], *exponent, *mantissa)),
        Op::Reduce { monoid, axes, accumulator } => {
            let count: usize = axes.iter().map(|&a| operands[0].shape[a]).product();
            (reduction(*monoid, x[0], count, ty.dtype), of_sum(count, *accumulator, ty.dtype))
        }
        Op::ArgReduce { axis, .. } => exact(Interval::new(0.0, operands[0].shape[*axis].saturating_sub(1) as f64)),
        Op::Cumulative { monoid, axis, .. } => {
            let count = operands[0].shape[*axis];
            let some =
                (0..2).map(|n| reduction(*monoid, x[0], n, ty.dtype)).chain([running(*monoid, x[0], count, ty.dtype)]);
            (some.reduce(Interval::join).unwrap_or(x[0]), of_sum(count, ty.dtype, ty.dtype))
        }
        Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Broadcast { .. }
        | Op::Slice { .. }
        | Op::Reverse(_)
        | Op::DynamicSlice { .. }
        | Op::Gather { .. } => exact(x[0]),
        Op::Pad { .. } | Op::DynamicUpdateSlice => exact(x[0].join(x[1])),
        Op::Concatenate { .. } => exact(x.iter().copied().reduce(Interval::join).unwrap_or(Interval::point(0.0))),
        Op::Scatter { mode: ScatterMode::Set, .. } => exact(x[0].join(x[2])),
        Op::Scatter { mode: ScatterMode::Add, .. } => {
            let count = operands[1].shape.elements();
            (x[0].plus(x[2].summed(count, false)), of_sum(count, ty.dtype, ty.dtype))
        }
        Op::DotGeneral(dot) => {
            let count = contracted(dot, &operands[0]);
            (x[0].times(x[1]).summed(count, true), of_sum(count, dot.accumulator, ty.dtype))
        }
        Op::Convolution(c) => {
            let kernel = &operands[1].shape;
            let count = kernel.elements() / kernel[c.rhs.batch].max(1);
            (x[0].times(x[1]).summed(count, false), of_sum(count, c.accumulator, ty.dtype))
        }
        Op::ReduceWindow { monoid, window } => {
            let count = window.size.iter().product();
            let mut some = running(*monoid, x[0], count, ty.dtype);
            if may_be_padding(window) {
                some = some.join(reduction(*monoid, x[0], 0, ty.dtype));
            }
            (some, of_sum(count, ty.dtype, ty.dtype))
        }
        Op::SelectAndScatter { window, .. } => {
            let count = window.size.iter().product();
            (x[1].summed(count, false), of_sum(count, ty.dtype, ty.dtype))
        }
        Op::RngBits(_) => exact(Interval::everything(DType::U32)),
        Op::Sort { .. } | Op::Barrier | Op::Call(_) | Op::Scan(_) => unreachable!("treated before"),
    }
}

/// The rounding of a sum in units of the result's epsilon.
fn of_sum(count: usize, accumulator: DType, result: DType) -> f64 {
    let narrower = matches!((accumulator, result), (DType::F32, DType::F16 | DType::BF16));
    ERROR + if narrower { count as f64 / 256.0 } else { count as f64 }
}

/// How many products are added up for each element.
pub fn contracted(dot: &DotGeneral, lhs: &Type) -> usize {
    dot.lhs_contract.iter().map(|&a| lhs.shape[a]).product()
}

fn unary(op: Unary, x: Interval, dtype: DType) -> Interval {
    let infinite = x.magnitude().is_infinite();
    match op {
        Unary::Neg => x.negated(),
        Unary::Abs if x.low >= 0.0 => x,
        Unary::Abs => Interval { low: (-x.high).max(0.0), high: x.magnitude(), nan: x.nan },
        Unary::Sign => x.rising(|v| if v == 0.0 { 0.0 } else { v.signum() }),
        Unary::Exp => x.rising(f64::exp),
        Unary::Expm1 => x.rising(f64::exp_m1),
        Unary::Log => Interval { low: x.low.max(0.0), high: x.high.max(0.0), ..x }.rising(f64::ln).or_nan(x.low < 0.0),
        Unary::Log1p => {
            let above = Interval { low: x.low.max(-1.0), high: x.high.max(-1.0), ..x };
            above.rising(f64::ln_1p).or_nan(x.low < -1.0)
        }
        Unary::Sqrt => {
            Interval { low: x.low.max(0.0), high: x.high.max(0.0), ..x }.rising(f64::sqrt).or_nan(x.low < 0.0)
        }
        Unary::Rsqrt => {
            let above = Interval { low: x.low.max(0.0), high: x.high.max(0.0), ..x };
            let inverse = above.rising(|v| -1.0 / v.sqrt()).negated().or_nan(x.low < 0.0);
            // −0 has the inverse −∞.
            if x.low <= 0.0 && x.high >= 0.0 { inverse.with(f64::NEG_INFINITY) } else { inverse }
        }
        Unary::Reciprocal => quotient(Interval::point(1.0), x),
        Unary::Sin | Unary::Cos => Interval::new(-1.0, 1.0).or_nan(x.nan || infinite),
        Unary::Tan => Interval::everything(dtype),
        Unary::Tanh => x.rising(f64::tanh),
        // erf rises; its value at the ends is not needed.
        Unary::Erf => {
            Interval::new(if x.low >= 0.0 { 0.0 } else { -1.0 }, if x.high <= 0.0 { 0.0 } else { 1.0 }).or_nan(x.nan)
        }
        Unary::Floor => x.rising(f64::floor),
        Unary::Ceil => x.rising(f64::ceil),
        Unary::RoundEven => x.rising(f64::round_ties_even),
        Unary::IsFinite => Interval::new(0.0, 1.0),
        Unary::Not => Interval::everything(dtype),
    }
}

fn binary(op: Binary, a: Interval, b: Interval, dtype: DType) -> Interval {
    match op {
        Binary::Add => a.plus(b),
        Binary::Sub => a.plus(b.negated()),
        Binary::Mul => a.times(b),
        Binary::Div if dtype.is_float() => quotient(a, b),
        Binary::Rem if dtype.is_float() => {
            let nan = a.magnitude().is_infinite() || b.low <= 0.0 && b.high >= 0.0;
            let most = a.magnitude();
            Interval {
                low: if a.low >= 0.0 { 0.0 } else { -most },
                high: if a.high <= 0.0 { 0.0 } else { most },
                nan: a.nan || b.nan || nan,
            }
        }
        Binary::Pow if dtype.is_float() && a.low > 0.0 && a.high.is_finite() && b.magnitude().is_finite() => {
            a.corners(b, f64::powf)
        }
        Binary::Atan2 => Interval::new(-PI, PI).or_nan(a.nan || b.nan),
        Binary::Maximum => largest(a, b),
        Binary::Minimum => least(a, b),
        Binary::Div | Binary::Rem | Binary::Pow => Interval::everything(dtype),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight => Interval::everything(dtype),
    }
}

fn quotient(a: Interval, b: Interval) -> Interval {
    let everything = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, nan: a.nan || b.nan };
    let both_infinite = a.magnitude().is_infinite() && b.magnitude().is_infinite();
    let zero_by_zero = a.low <= 0.0 && a.high >= 0.0;
    if b.low <= 0.0 && b.high >= 0.0 {
        return everything.or_nan(zero_by_zero || both_infinite);
    }
    a.corners(b, |a, b| if a == 0.0 || b.is_infinite() { 0.0 } else { a / b }).or_nan(both_infinite)
}

fn largest(a: Interval, b: Interval) -> Interval {
    Interval { low: a.low.max(b.low), high: a.high.max(b.high), nan: a.nan || b.nan }
}

fn least(a: Interval, b: Interval) -> Interval {
    Interval { low: a.low.min(b.low), high: a.high.min(b.high), nan: a.nan || b.nan }
}

fn cast(x: Interval, to: DType) -> Interval {
    if to.is_float() {
        return x;
    }
    let everything = Interval::everything(to);
    if to == DType::Bool {
        return everything;
    }
    // Floats saturate, NaN gives 0; integers wrap, which is settled later.
    let whole = Interval::new(x.low.trunc(), x.high.trunc());
    if x.nan || !x.magnitude().is_finite() || whole.low < everything.low || whole.high > everything.high {
        return everything;
    }
    whole
}

fn reduced(x: Interval, exponent: u32, mantissa: u32) -> Interval {
    let largest = 2f64.powi(1 << (exponent.clamp(1, 11) - 1));
    let grown = Interval {
        low: x.low - x.low.abs() * 2f64.powi(-(mantissa as i32)),
        high: x.high + x.high.abs() * 2f64.powi(-(mantissa as i32)),
        ..x
    };
    let grown = if grown.high >= largest / 2.0 { grown.with(f64::INFINITY) } else { grown };
    let grown = if grown.low <= -largest / 2.0 { grown.with(f64::NEG_INFINITY) } else { grown };
    // What is too small becomes zero.
    grown.with(0.0)
}

/// Of exactly so many elements.
fn reduction(monoid: Monoid, x: Interval, count: usize, dtype: DType) -> Interval {
    let neutral = |v: f64| if dtype.is_float() { Interval::point(v) } else { Interval::everything(dtype) };
    match monoid {
        Monoid::Sum => x.summed(count, true),
        Monoid::Product if count == 0 => Interval::point(1.0),
        Monoid::Product => {
            let most = x.magnitude().powi(count.min(1 << 20) as i32);
            let least = if x.magnitude() < 1.0 { 0.0 } else { most.min(1.0) };
            let product = if count == 1 { x } else { Interval::new(-most.max(least), most.max(least)) };
            product.or_nan(x.nan || x.magnitude().is_infinite())
        }
        Monoid::Max if count == 0 => neutral(f64::NEG_INFINITY),
        Monoid::Min if count == 0 => neutral(f64::INFINITY),
        Monoid::Max | Monoid::Min => x,
        Monoid::And | Monoid::Or => Interval::everything(dtype),
    }
}

/// Of any number of elements from one up to `count`.
fn running(monoid: Monoid, x: Interval, count: usize, dtype: DType) -> Interval {
    let one = if count > 0 { x } else { reduction(monoid, x, 0, dtype) };
    match monoid {
        Monoid::Sum | Monoid::Product => one.join(reduction(monoid, x, count, dtype)),
        _ => one,
    }
}

fn may_be_padding(window: &Window) -> bool {
    let extent = |a: usize| (window.size[a] - 1) * window.dilation[a] + 1;
    // Elements may lie between those of a dilated window.
    (0..window.size.len())
        .any(|a| window.pad_low[a].max(window.pad_high[a]) >= window.size[a] || extent(a) > window.size[a])
}
