//! Views: how the elements of a value lie in the dense buffer of another.
//!
//! Transposes, broadcasts, slices, reversals and most reshapes move no data: they are views of what they are made from,
//! and kernels read through strides.

use backfit_ir::{Op, Shape, Type};

/// A strided window on a dense buffer. Offset and strides count elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Extents of the viewed value.
    pub dims: Vec<usize>,
    /// Elements between neighbours along each axis; 0 repeats, negative reverses.
    pub strides: Vec<isize>,
    /// The element at index 0 of every axis.
    pub offset: usize,
}

impl View {
    /// A whole dense buffer.
    pub fn dense(shape: &Shape) -> View {
        let strides = shape.strides().into_iter().map(|s| s as isize).collect();
        View { dims: shape.to_vec(), strides, offset: 0 }
    }

    /// Whether the elements lie in order without gaps from the start of the buffer.
    pub fn is_dense(&self) -> bool {
        let dense = View::dense(&self.dims.clone().into());
        self.offset == 0 && self.same_strides(&dense.strides)
    }

    /// Whether the strides are these, looking past axes of extent 1.
    pub fn same_strides(&self, strides: &[isize]) -> bool {
        self.dims.iter().zip(self.strides.iter().zip(strides)).all(|(&d, (a, b))| d == 1 || a == b)
    }

    /// The view that an operator makes of this one; `None` where it has to move data.
    pub fn through(&self, op: &Op, result: &Type) -> Option<View> {
        match op {
            Op::Transpose(permutation) => Some(View {
                dims: permutation.iter().map(|&p| self.dims[p]).collect(),
                strides: permutation.iter().map(|&p| self.strides[p]).collect(),
                offset: self.offset,
            }),
            Op::Broadcast { shape, axes } => {
                let mut strides = vec![0; shape.rank()];
                for (from, &to) in axes.iter().enumerate() {
                    strides[to] = if self.dims[from] == shape[to] { self.strides[from] } else { 0 };
                }
                Some(View { dims: shape.to_vec(), strides, offset: self.offset })
            }
            Op::Slice { starts, strides, .. } if result.shape.elements() > 0 => {
                let shift: isize = starts.iter().zip(&self.strides).map(|(&s, &t)| s as isize * t).sum();
                Some(View {
                    dims: result.shape.to_vec(),
                    strides: strides.iter().zip(&self.strides).map(|(&s, &t)| s as isize * t).collect(),
                    offset: self.offset.checked_add_signed(shift)?,
                })
            }
            Op::Reverse(axes) if result.shape.elements() > 0 => {
                let mut view = self.clone();
                for &axis in axes {
                    let last = (self.dims[axis] as isize - 1) * self.strides[axis];
                    view.offset = view.offset.checked_add_signed(last)?;
                    view.strides[axis] = -self.strides[axis];
                }
                Some(view)
            }
            Op::Reshape(shape) => self.reshaped(shape),
            _ => None,
        }
    }

    /// The same elements in another shape, where strides can tell it.
    fn reshaped(&self, shape: &Shape) -> Option<View> {
        if shape.elements() <= 1 {
            return Some(View { dims: shape.to_vec(), strides: vec![0; shape.rank()], offset: self.offset });
        }
        let runs = self.runs();
        let mut strides = vec![0; shape.rank()];
        let mut run = runs.iter().rev();
        let mut left = 1usize; // elements of the current run that are still to be split
        let mut stride = 0isize;
        for axis in (0..shape.rank()).rev() {
            if shape[axis] == 1 {
                continue;
            }
            if left == 1 {
                let &(size, step) = run.next()?;
                (left, stride) = (size, step);
            }
            if !left.is_multiple_of(shape[axis]) {
                return None;
            }
            strides[axis] = stride;
            stride *= shape[axis] as isize;
            left /= shape[axis];
        }
        (left == 1).then(|| View { dims: shape.to_vec(), strides, offset: self.offset })
    }

    /// Axes merged into as few (size, stride) as tell the same order, outermost first, without unit axes.
    pub fn runs(&self) -> Vec<(usize, isize)> {
        let mut runs: Vec<(usize, isize)> = Vec::new();
        for (&size, &stride) in self.dims.iter().zip(&self.strides) {
            if size == 1 {
                continue;
            }
            match runs.last_mut() {
                Some((outer, step)) if *step == stride * size as isize => {
                    *outer *= size;
                    *step = stride;
                }
                _ => runs.push((size, stride)),
            }
        }
        runs
    }

    /// The view without its unit axes.
    pub fn squeezed(&self) -> View {
        let keep: Vec<usize> = (0..self.dims.len()).filter(|&a| self.dims[a] != 1).collect();
        View {
            dims: keep.iter().map(|&a| self.dims[a]).collect(),
            strides: keep.iter().map(|&a| self.strides[a]).collect(),
            offset: self.offset,
        }
    }
}

/// Whether an operator only rearranges elements, so that its result may be a view.
pub fn is_movement(op: &Op) -> bool {
    matches!(op, Op::Transpose(_) | Op::Broadcast { .. } | Op::Slice { .. } | Op::Reverse(_) | Op::Reshape(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::DType;

    fn through(view: &View, op: Op, shape: &[usize]) -> Option<View> {
        view.through(&op, &Type::new(DType::F32, shape))
    }

    #[test]
    fn a_transposed_matrix_cannot_be_flattened_without_moving_data() {
        let view = View::dense(&[2, 3].into());
        let transposed = through(&view, Op::Transpose(vec![1, 0]), &[3, 2]).unwrap();
        assert_eq!(transposed.strides, [1, 3]);
        assert_eq!(through(&transposed, Op::Reshape([6].into()), &[6]), None);
        let split = through(&transposed, Op::Reshape([3, 1, 2].into()), &[3, 1, 2]).unwrap();
        assert_eq!((split.strides[0], split.strides[2]), (1, 3));
    }

    #[test]
    fn a_broadcast_row_can_be_split_and_merged_along_its_repeats() {
        let view = View::dense(&[4].into());
        let rows = through(&view, Op::Broadcast { shape: [6, 4].into(), axes: vec![1] }, &[6, 4]).unwrap();
        let split = through(&rows, Op::Reshape([2, 3, 2, 2].into()), &[2, 3, 2, 2]).unwrap();
        assert_eq!(split.strides, [0, 0, 2, 1]);
    }

    #[test]
    fn a_reversed_slice_starts_at_its_last_element() {
        let view = View::dense(&[10].into());
        let slice = Op::Slice { starts: vec![1], limits: vec![9], strides: vec![2] };
        let slice = through(&view, slice, &[4]).unwrap();
        assert_eq!((slice.offset, slice.strides[0]), (1, 2));
        let reversed = through(&slice, Op::Reverse(vec![0]), &[4]).unwrap();
        assert_eq!((reversed.offset, reversed.strides[0]), (7, -2));
    }
}
