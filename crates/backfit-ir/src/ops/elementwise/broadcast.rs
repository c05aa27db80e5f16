//! Broadcasting by NumPy's rule: shapes are aligned at the end, unit axes stretch.

use crate::builder::Tensor;
use crate::dtype::DType;
use crate::error::Problem;
use crate::op::Op;
use crate::shape::Shape;
use std::panic::Location;

/// The shape that two shapes broadcast to by NumPy's rule: aligned at the end, unit axes stretch.
pub fn broadcast_shape(a: &Shape, b: &Shape) -> Result<Shape, String> {
    let rank = a.rank().max(b.rank());
    let extent = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |j| s[j]);
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (x, y) = (extent(a, i), extent(b, i));
        if x != y && x != 1 && y != 1 {
            return Err(format!("shapes {a} and {b} do not broadcast: {x} against {y}, counting axes from the end"));
        }
        dims.push(if x == 1 { y } else { x });
    }
    Ok(dims.into())
}

/// The shape that all these tensors broadcast to.
fn common_shape(tensors: &[&Tensor]) -> Result<Shape, String> {
    tensors.iter().try_fold(Shape::scalar(), |shape, t| broadcast_shape(&shape, t.shape()))
}

impl Tensor {
    /// This tensor repeated to `shape` by NumPy's rule: aligned at the end, unit axes stretch.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        if *self.shape() == shape {
            return self.clone();
        }
        if self.value().is_some() && broadcast_shape(self.shape(), &shape).as_ref() != Ok(&shape) {
            return self.fail(format!("broadcast: {} cannot be repeated to {shape}", self.shape()));
        }
        let first = shape.rank() - self.rank().min(shape.rank());
        let axes = (first..shape.rank()).collect();
        self.graph().push1(Op::Broadcast { shape, axes }, &[self])
    }

    /// Both tensors, broadcast to their common shape.
    #[track_caller]
    pub fn broadcast_with(&self, other: &Tensor) -> Option<(Tensor, Tensor)> {
        Tensor::broadcast_all([self, other]).map(|[a, b]| (a, b))
    }

    /// All these tensors, broadcast to their common shape; `None` where one of them is poison or they do not fit.
    #[track_caller]
    pub fn broadcast_all<const N: usize>(tensors: [&Tensor; N]) -> Option<[Tensor; N]> {
        if tensors.iter().any(|t| t.value().is_none()) {
            return None;
        }
        match common_shape(&tensors) {
            Ok(shape) => {
                let mut all = tensors.map(Tensor::clone);
                // Not within a closure, which would not see the caller's line.
                for tensor in &mut all {
                    *tensor = tensor.broadcast_to(&shape);
                }
                Some(all)
            }
            Err(why) => {
                tensors.first()?.graph().problem(Problem::new(why), Location::caller());
                None
            }
        }
    }

    /// An elementwise operator after broadcasting; poison with the dtype of the first operand where they do not fit.
    #[track_caller]
    pub fn elementwise<const N: usize>(op: Op, operands: [&Tensor; N]) -> Tensor {
        let first = operands[0];
        match common_shape(&operands) {
            Ok(shape) => match Tensor::broadcast_all(operands) {
                Some(same) => first.graph().push1(op, &same.each_ref()),
                None => first.graph().poison(first.ty().with_shape(shape)),
            },
            Err(_) if operands.iter().any(|t| t.value().is_none()) => first.graph().poison(first.ty().clone()),
            Err(why) => first.fail(format!("{}: {why}", op.name())),
        }
    }

    /// An elementwise binary operator after broadcasting.
    #[track_caller]
    pub fn binary(&self, op: Op, other: &Tensor) -> Tensor {
        Tensor::elementwise(op, [self, other])
    }

    /// This tensor, or, where it is poison, poison of another dtype: the one that the operation would have given.
    pub(crate) fn or_poison(self, dtype: DType) -> Tensor {
        if self.value().is_some() { self } else { self.graph().poison(self.ty().with_dtype(dtype)) }
    }
}

/// Sums a cotangent over the axes along which its operand was broadcast, down to `shape`.
pub fn sum_to(cotangent: &Tensor, shape: &Shape) -> Tensor {
    let extra = cotangent.rank() - shape.rank();
    let axes: Vec<i64> = (0..cotangent.rank())
        .filter(|&i| i < extra || (shape[i - extra] == 1 && cotangent.shape()[i] != 1))
        .map(|i| i as i64)
        .collect();
    cotangent.sum(&axes).reshape(shape)
}
