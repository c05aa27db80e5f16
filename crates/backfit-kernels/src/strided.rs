//! Strided regions: where they lie, and walking over them without allocating.

use crate::context::{Access, Addr};

/// The greatest number of axes of one walk.
pub const MAX_RANK: usize = 16;

/// One axis of a loop over an input and an output, with strides in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Iterations.
    pub size: usize,
    /// Elements between neighbours in the input (0 broadcasts, negative reverses).
    pub input: isize,
    /// Elements between neighbours in the output.
    pub output: isize,
}

/// The bytes touched by elements at `Σ index·stride`, for every index below the sizes; an error where they cannot be counted.
pub fn access(
    addr: Addr,
    elem_bytes: usize,
    axes: impl Iterator<Item = (usize, isize)> + Clone,
    write: bool,
) -> Result<Access, String> {
    let mut access = Access { addr, bytes: 0, align: elem_bytes, write };
    if axes.clone().any(|(size, _)| size == 0) {
        return Ok(access);
    }
    let (mut low, mut high) = (0i128, 0i128);
    for (size, stride) in axes {
        let reach = (size as i128 - 1) * stride as i128;
        if reach.unsigned_abs() > isize::MAX as u128 {
            return Err(format!("a strided region at {addr:?} leaves the address space"));
        }
        low += reach.min(0);
        high += reach.max(0);
    }
    let bytes = elem_bytes as i128;
    let start = addr.offset as i128 + low * bytes;
    let length = (high - low + 1) * bytes;
    if start < 0 || start + length > isize::MAX as i128 {
        return Err(format!("a strided region at {addr:?} leaves the address space"));
    }
    access.addr.offset = start as usize;
    access.bytes = length as usize;
    Ok(access)
}

/// A product of sizes, or an error.
pub fn product(sizes: impl Iterator<Item = usize>) -> Result<usize, String> {
    let mut total = 1usize;
    let mut empty = false;
    for size in sizes {
        empty |= size == 0;
        total = total
            .checked_mul(size.max(1))
            .filter(|&t| t <= isize::MAX as usize)
            .ok_or("a region has too many elements")?;
    }
    Ok(if empty { 0 } else { total })
}

/// A position in a row-major walk over up to [`MAX_RANK`] axes, with `K` offsets kept up to date.
#[derive(Clone)]
pub struct Walk<const K: usize> {
    rank: usize,
    sizes: [usize; MAX_RANK],
    strides: [[isize; K]; MAX_RANK],
    index: [usize; MAX_RANK],
    /// The present offsets, in the unit of the strides.
    pub offsets: [isize; K],
}

impl<const K: usize> Walk<K> {
    /// A walk over `axes` (size and strides), standing at the start. At most [`MAX_RANK`] axes.
    pub fn new(axes: impl Iterator<Item = (usize, [isize; K])>) -> Self {
        let mut walk =
            Walk { rank: 0, sizes: [1; MAX_RANK], strides: [[0; K]; MAX_RANK], index: [0; MAX_RANK], offsets: [0; K] };
        for (size, strides) in axes {
            walk.sizes[walk.rank] = size;
            walk.strides[walk.rank] = strides;
            walk.rank += 1;
        }
        walk
    }

    /// Moves to the position with this row-major number.
    pub fn seek(&mut self, mut number: usize) {
        self.offsets = [0; K];
        for axis in (0..self.rank).rev() {
            let size = self.sizes[axis].max(1);
            self.index[axis] = number % size;
            number /= size;
            for k in 0..K {
                self.offsets[k] += self.index[axis] as isize * self.strides[axis][k];
            }
        }
    }

    /// Moves to the next position (after the last, back to the first).
    #[inline(always)]
    pub fn advance(&mut self) {
        for axis in (0..self.rank).rev() {
            self.index[axis] += 1;
            for k in 0..K {
                self.offsets[k] += self.strides[axis][k];
            }
            if self.index[axis] < self.sizes[axis] {
                return;
            }
            for k in 0..K {
                self.offsets[k] -= self.sizes[axis] as isize * self.strides[axis][k];
            }
            self.index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_positions_in_row_major_order() {
        let axes = [(2, [12, 1]), (3, [-4, 2]), (4, [1, 0])];
        let mut walk = Walk::new(axes.into_iter());
        let mut jumping = walk.clone();
        for number in 0..24 {
            let (i, j, k) = (number as isize / 12, number as isize / 4 % 3, number as isize % 4);
            jumping.seek(number);
            assert_eq!(walk.offsets, [12 * i - 4 * j + k, i + 2 * j]);
            assert_eq!(jumping.offsets, walk.offsets);
            walk.advance();
        }
        assert_eq!(walk.offsets, [0, 0]);
    }

    #[test]
    fn regions_before_the_base_or_past_the_address_space_are_refused() {
        let addr = Addr { base: 0, offset: 8 };
        let all = |axes: &[(usize, isize)]| access(addr, 4, axes.iter().copied(), false);
        assert_eq!(all(&[(3, -1)]).map(|a| (a.addr.offset, a.bytes)), Ok((0, 12)));
        assert!(all(&[(4, -1)]).is_err());
        assert!(all(&[(usize::MAX, isize::MAX)]).is_err());
        assert_eq!(all(&[(0, 5), (7, 1)]).map(|a| a.bytes), Ok(0));
    }
}
