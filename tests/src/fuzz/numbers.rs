//! Random numbers, types and values.

use backfit_ir::{DType, Literal, Shape, Type};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// An element of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A number in [−1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A permutation of 0..n.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut list: Vec<usize> = (0..n).collect();
        (1..n).for_each(|i| list.swap(i, self.below(i + 1)));
        list
    }

    /// A subset of 0..n, in order.
    pub fn subset(&mut self, n: usize) -> Vec<usize> {
        (0..n).filter(|_| self.chance(45)).collect()
    }

    /// A shape of at most so many elements.
    pub fn shape(&mut self, most: usize) -> Shape {
        let mut dims = Vec::new();
        let mut elements = 1;
        for _ in 0..self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4]) {
            let extent = self.pick(&[1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64, 130]);
            let extent = if elements * extent <= most { extent } else { 1 };
            elements *= extent;
            dims.push(extent);
        }
        dims.into()
    }

    /// A shape of exactly so many elements, of rank at most 5.
    pub fn factors(&mut self, elements: usize) -> Shape {
        let mut dims = vec![elements];
        for _ in 0..self.below(4) {
            let axis = self.below(dims.len());
            let divisors: Vec<usize> = (1..=dims[axis]).filter(|d| dims[axis].is_multiple_of(*d)).collect();
            let inner = if divisors.is_empty() { 1 } else { self.pick(&divisors) };
            dims[axis] /= inner;
            dims.insert(axis + 1, inner);
        }
        if elements == 1 && self.chance(30) { Shape::scalar() } else { dims.into() }
    }

    /// Values of a type: mostly small, with those that are special where `special` is set.
    pub fn literal(&mut self, ty: &Type, special: bool) -> Literal {
        const SPECIAL: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, 3.4e38, -1.5e-39];
        const EXTREME: [i64; 8] = [i64::MIN, i64::MAX, i32::MIN as i64, i32::MAX as i64, 255, 128, -1, 0];
        let n = ty.shape.elements();
        if ty.dtype.is_float() {
            let whole = self.chance(40);
            let values: Vec<f64> = (0..n)
                .map(|_| match special && self.chance(6) {
                    true => self.pick(&SPECIAL),
                    false if whole => self.below(65) as f64 / 8.0 - 4.0,
                    false => self.unit() * 2.0,
                })
                .collect();
            return Literal::from_f64(ty.clone(), &values);
        }
        let wide = self.chance(25);
        let values: Vec<i64> = (0..n)
            .map(|_| match special && self.chance(6) {
                true => self.pick(&EXTREME),
                false if wide => self.bits() as i64,
                false => self.below(19) as i64 - if ty.dtype == DType::Bool { 0 } else { 6 },
            })
            .collect();
        let values = if ty.dtype == DType::Bool { values.iter().map(|v| v & 1).collect() } else { values };
        Literal::from_i64(ty.clone(), &values)
    }
}
