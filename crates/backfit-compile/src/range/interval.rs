//! Sets of numbers between two.

use backfit_ir::{Class, DType, Literal, Type};

/// All numbers from `low` to `high`, infinities included where they are the ends, and perhaps NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Whether NaN may be among them.
    pub nan: bool,
}

impl Interval {
    /// The numbers between two.
    pub fn new(low: f64, high: f64) -> Self {
        Interval { low, high, nan: false }
    }

    /// One number.
    pub fn point(value: f64) -> Self {
        Interval::of([value])
    }

    /// The numbers between the least and the largest of some; NaN among them is remembered.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut all = Interval { low: f64::INFINITY, high: f64::NEG_INFINITY, nan: false };
        for value in values {
            all.nan |= value.is_nan();
            // Both ignore NaN.
            (all.low, all.high) = (all.low.min(value), all.high.max(value));
        }
        all.or_zero()
    }

    /// What a tensor holds.
    pub fn of_literal(literal: &Literal) -> Self {
        Interval::of(literal.to_f64())
    }

    /// Every number of a dtype.
    pub fn everything(dtype: DType) -> Self {
        match dtype.class() {
            Class::Float => Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, nan: true },
            Class::Bool => Interval::new(0.0, 1.0),
            Class::Signed => {
                let half = 2f64.powi(dtype.bits() as i32 - 1);
                Interval::new(-half, half - 1.0)
            }
            Class::Unsigned => Interval::new(0.0, 2f64.powi(dtype.bits() as i32) - 1.0),
        }
    }

    /// Of no elements there is nothing to say: zero does as well as anything.
    fn or_zero(self) -> Self {
        if self.low <= self.high { self } else { Interval { low: 0.0, high: 0.0, ..self } }
    }

    /// Both.
    pub fn join(self, other: Interval) -> Self {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high), nan: self.nan || other.nan }
    }

    /// Whether a number is in it.
    pub fn contains(&self, value: f64) -> bool {
        if value.is_nan() { self.nan } else { self.low <= value && value <= self.high }
    }

    /// The largest magnitude.
    pub fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Through a function that never falls.
    pub fn rising(self, f: impl Fn(f64) -> f64) -> Self {
        Interval { nan: self.nan, ..Interval::of([f(self.low), f(self.high)]) }
    }

    /// With `value` in it.
    pub fn with(self, value: f64) -> Self {
        self.join(Interval::point(value))
    }

    /// Perhaps NaN as well.
    pub fn or_nan(self, nan: bool) -> Self {
        Interval { nan: self.nan || nan, ..self }
    }

    /// Through an operation whose extremes lie at the corners.
    pub fn corners(self, other: Interval, f: impl Fn(f64, f64) -> f64) -> Self {
        let corners =
            [f(self.low, other.low), f(self.low, other.high), f(self.high, other.low), f(self.high, other.high)];
        Interval::of(corners).or_nan(self.nan || other.nan)
    }

    /// Products. Where one may be infinite and the other zero, NaN.
    pub fn times(self, other: Interval) -> Self {
        let infinite = |i: Interval| i.low.is_infinite() || i.high.is_infinite();
        let zero = |i: Interval| i.low <= 0.0 && i.high >= 0.0;
        let product = self.corners(other, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b });
        product.or_nan(infinite(self) && zero(other) || infinite(other) && zero(self))
    }

    /// Sums. Where infinities of both signs meet, NaN.
    pub fn plus(self, other: Interval) -> Self {
        let meets = self.high == f64::INFINITY && other.low == f64::NEG_INFINITY
            || self.low == f64::NEG_INFINITY && other.high == f64::INFINITY;
        let end = |a: f64, b: f64, otherwise: f64| if (a + b).is_nan() { otherwise } else { a + b };
        Interval {
            low: end(self.low, other.low, f64::NEG_INFINITY),
            high: end(self.high, other.high, f64::INFINITY),
            nan: self.nan || other.nan || meets,
        }
    }

    /// With the sign turned.
    pub fn negated(self) -> Self {
        Interval { low: -self.high, high: -self.low, nan: self.nan }
    }

    /// The sum of any number up to `count` of them, or of exactly so many.
    pub fn summed(self, count: usize, exactly: bool) -> Self {
        let n = count as f64;
        let end = |v: f64| if n == 0.0 { 0.0 } else { v * n };
        let all = Interval { low: end(self.low), high: end(self.high), nan: self.nan && count > 0 };
        let meets = count > 1 && self.low == f64::NEG_INFINITY && self.high == f64::INFINITY;
        if exactly { all.or_nan(meets) } else { all.join(Interval::new(0.0, 0.0)).or_nan(meets) }
    }

    /// As a type has it, after an error of `error` times its epsilon: floats are rounded outward and overflow to infinity;
    /// integers wrap, to anything where they do not fit.
    pub fn settled(self, ty: &Type, error: f64) -> Self {
        let everything = Interval::everything(ty.dtype);
        if !ty.dtype.is_float() {
            let fits = self.low >= everything.low && self.high <= everything.high && self.magnitude() < 2f64.powi(53);
            return if fits || ty.dtype == DType::Bool { Interval { nan: false, ..self } } else { everything };
        }
        let (epsilon, tiny) = match ty.dtype {
            DType::F16 => (2f64.powi(-10), 2f64.powi(-24)),
            DType::BF16 => (2f64.powi(-7), f64::from(f32::MIN_POSITIVE)),
            DType::F32 => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
            _ => (f64::EPSILON, f64::MIN_POSITIVE),
        };
        // Zero stays zero; what is near it may be flushed.
        let slack = |v: f64| if v == 0.0 || v.is_infinite() { 0.0 } else { v.abs() * error * epsilon + tiny };
        let round = |v: f64| Literal::scalar(ty.dtype, v).to_f64()[0];
        let towards_zero =
            |v: f64, outward: f64| if v.signum() != outward.signum() { 0f64.copysign(v) } else { outward };
        let low = self.low - slack(self.low);
        let high = self.high + slack(self.high);
        let low = if self.low > 0.0 { towards_zero(self.low, low) } else { low };
        let high = if self.high < 0.0 { towards_zero(self.high, high) } else { high };
        Interval { low: round(low), high: round(high), nan: self.nan }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_of_infinities_may_be_nan() {
        let (wide, zero) = (Interval::new(0.0, f64::INFINITY), Interval::new(0.0, 0.0));
        assert!(wide.times(zero).nan && wide.times(zero).contains(0.0));
        assert!(!Interval::new(1.0, 2.0).times(Interval::new(-3.0, 4.0)).nan);
        assert_eq!(Interval::new(1.0, 2.0).times(Interval::new(-3.0, 4.0)), Interval::new(-6.0, 8.0));
        assert!(wide.plus(wide.negated()).nan);
        assert_eq!(Interval::new(-1.0, 2.0).summed(3, true), Interval::new(-3.0, 6.0));
        assert_eq!(Interval::new(1.0, 2.0).summed(3, false), Interval::new(0.0, 6.0));
    }

    #[test]
    fn floats_overflow_and_integers_wrap() {
        let f16 = Type::new(DType::F16, []);
        assert_eq!(Interval::new(0.0, 1e5).settled(&f16, 0.0).high, f64::INFINITY);
        let i8 = Type::new(DType::I8, []);
        assert_eq!(Interval::new(0.0, 200.0).settled(&i8, 0.0), Interval::new(-128.0, 127.0));
        assert_eq!(Interval::new(0.0, 100.0).settled(&i8, 0.0), Interval::new(0.0, 100.0));
    }
}
