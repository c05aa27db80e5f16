//! The one reduction tree.
//!
//! The elements of a reduction are numbered in logical order. Element i belongs to block i / 1024 and lane i % 16. A block's lane is
//! folded in order from the neutral value; the blocks of a lane are folded in order; the sixteen lanes are folded in halves.
//! So the bits depend on the number of elements alone, not on layout, tiling, threads or instruction set.

use crate::math;
use crate::tile::Reduction;

/// Lanes of the tree.
pub(crate) const LANES: usize = 16;
/// Elements of a block.
pub(crate) const BLOCK: usize = 1024;

/// An operation that reductions combine with.
pub(crate) trait Combine<T: Copy> {
    /// What changes nothing.
    const NEUTRAL: T;
    /// The operation.
    fn combine(a: T, b: T) -> T;
}

pub(crate) struct Sum;
pub(crate) struct Product;
pub(crate) struct Max;
pub(crate) struct Min;
pub(crate) struct And;
pub(crate) struct Or;

macro_rules! combine {
    ($type:ty, $op:ident, $neutral:expr, |$a:ident, $b:ident| $e:expr) => {
        impl Combine<$type> for $op {
            const NEUTRAL: $type = $neutral;
            #[inline(always)]
            fn combine($a: $type, $b: $type) -> $type {
                $e
            }
        }
    };
}
macro_rules! float {
    ($type:ty, $max:path, $min:path) => {
        combine!($type, Sum, 0.0, |a, b| a + b);
        combine!($type, Product, 1.0, |a, b| a * b);
        combine!($type, Max, <$type>::NEG_INFINITY, |a, b| $max(a, b));
        combine!($type, Min, <$type>::INFINITY, |a, b| $min(a, b));
    };
}
macro_rules! integer {
    ($type:ty) => {
        combine!($type, Sum, 0, |a, b| a.wrapping_add(b));
        combine!($type, Product, 1, |a, b| a.wrapping_mul(b));
        combine!($type, Max, <$type>::MIN, |a, b| if a > b { a } else { b });
        combine!($type, Min, <$type>::MAX, |a, b| if a < b { a } else { b });
        combine!($type, And, !0, |a, b| a & b);
        combine!($type, Or, 0, |a, b| a | b);
    };
}
float!(f32, math::maximum, math::minimum);
float!(f64, math::maximum_f64, math::minimum_f64);
integer!(i32);
integer!(u32);
integer!(i64);
integer!(u64);

/// A fold under way.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T>(pub [T; LANES]);

impl<T: Copy> Lanes<T> {
    #[inline(always)]
    pub(crate) fn neutral<C: Combine<T>>() -> Self {
        Lanes([C::NEUTRAL; LANES])
    }

    /// Folds another block in.
    #[inline(always)]
    pub(crate) fn add<C: Combine<T>>(&mut self, block: &Lanes<T>) {
        for l in 0..LANES {
            self.0[l] = C::combine(self.0[l], block.0[l]);
        }
    }

    /// Folds the lanes in halves.
    #[inline(always)]
    pub(crate) fn finish<C: Combine<T>>(mut self) -> T {
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                self.0[l] = C::combine(self.0[l], self.0[l + half]);
            }
            half /= 2;
        }
        self.0[0]
    }
}

/// Folds a contiguous row, whose elements `load` turns into lane values.
#[inline(always)]
pub(crate) fn fold_row<S: crate::stored::Stored, C: Combine<S::Lane>>(row: &[S]) -> S::Lane {
    let mut total = Lanes::neutral::<C>();
    for block in row.chunks(BLOCK) {
        let mut lanes = Lanes::neutral::<C>();
        let mut chunks = block.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, x) in lanes.0.iter_mut().zip(chunk) {
                *lane = C::combine(*lane, x.load());
            }
        }
        for (lane, x) in lanes.0.iter_mut().zip(chunks.remainder()) {
            *lane = C::combine(*lane, x.load());
        }
        total.add::<C>(&lanes);
    }
    total.finish::<C>()
}

/// A fold that is given its elements in order, piece by piece; the same tree as [`fold_row`].
pub(crate) struct Fold<S: crate::stored::Stored> {
    total: Lanes<S::Lane>,
    block: Lanes<S::Lane>,
    position: usize,
}

impl<S: crate::stored::Stored> Fold<S> {
    #[inline(always)]
    pub(crate) fn new<C: Combine<S::Lane>>() -> Self {
        Fold { total: Lanes::neutral::<C>(), block: Lanes::neutral::<C>(), position: 0 }
    }

    /// The next element.
    #[inline(always)]
    pub(crate) fn push<C: Combine<S::Lane>>(&mut self, x: S) {
        let lane = &mut self.block.0[self.position % LANES];
        *lane = C::combine(*lane, x.load());
        self.position += 1;
        if self.position.is_multiple_of(BLOCK) {
            self.end_block::<C>();
        }
    }

    /// The next elements.
    #[inline(always)]
    pub(crate) fn extend<C: Combine<S::Lane>>(&mut self, mut row: &[S]) {
        while !self.position.is_multiple_of(LANES) && !row.is_empty() {
            self.push::<C>(row[0]);
            row = &row[1..];
        }
        let mut chunks = row.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, x) in self.block.0.iter_mut().zip(chunk) {
                *lane = C::combine(*lane, x.load());
            }
            self.position += LANES;
            if self.position.is_multiple_of(BLOCK) {
                self.end_block::<C>();
            }
        }
        for &x in chunks.remainder() {
            self.push::<C>(x);
        }
    }

    #[inline(always)]
    fn end_block<C: Combine<S::Lane>>(&mut self) {
        self.total.add::<C>(&self.block);
        self.block = Lanes::neutral::<C>();
    }

    #[inline(always)]
    pub(crate) fn finish<C: Combine<S::Lane>>(mut self) -> S::Lane {
        if !self.position.is_multiple_of(BLOCK) {
            self.end_block::<C>();
        }
        self.total.finish::<C>()
    }
}

/// Whether the operation is one of bits.
pub(crate) fn is_bitwise(op: Reduction) -> bool {
    matches!(op, Reduction::And | Reduction::Or)
}

/// For bool, sums and maxima are or; products and minima are and.
pub(crate) fn of_bool(op: Reduction) -> Reduction {
    match op {
        Reduction::Sum | Reduction::Max | Reduction::Or => Reduction::Or,
        Reduction::Product | Reduction::Min | Reduction::And => Reduction::And,
    }
}

/// Runs the body with `$c` standing for a reduction of floats (bitwise ones are excluded by `check`).
macro_rules! with_float_combine {
    ($op:expr, $c:ident => $body:expr) => {
        match $op {
            $crate::tile::Reduction::Product => {
                type $c = $crate::fold::Product;
                $body
            }
            $crate::tile::Reduction::Max => {
                type $c = $crate::fold::Max;
                $body
            }
            $crate::tile::Reduction::Min => {
                type $c = $crate::fold::Min;
                $body
            }
            _ => {
                type $c = $crate::fold::Sum;
                $body
            }
        }
    };
}
/// Runs the body with `$c` standing for a reduction of integers.
macro_rules! with_integer_combine {
    ($op:expr, $c:ident => $body:expr) => {
        match $op {
            $crate::tile::Reduction::Sum => {
                type $c = $crate::fold::Sum;
                $body
            }
            $crate::tile::Reduction::Product => {
                type $c = $crate::fold::Product;
                $body
            }
            $crate::tile::Reduction::Max => {
                type $c = $crate::fold::Max;
                $body
            }
            $crate::tile::Reduction::Min => {
                type $c = $crate::fold::Min;
                $body
            }
            $crate::tile::Reduction::And => {
                type $c = $crate::fold::And;
                $body
            }
            $crate::tile::Reduction::Or => {
                type $c = $crate::fold::Or;
                $body
            }
        }
    };
}
pub(crate) use {with_float_combine, with_integer_combine};
