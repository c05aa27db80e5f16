//! `matmul(a, b)`: NumPy's matrix product over numbers.
//!
//! `[…, n, k] · […, k, m] → […, n, m]`; the axes before the last two broadcast. A 1-D left operand is a row, a 1-D right
//! operand a column, whose unit axis is not in the result.

use super::composite::{dtype, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Takes, arity, broadcast_shape, infer_unary};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::{Shape, Type};

impl Tensor {
    /// The matrix product over the last two axes; the axes before them broadcast.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        self.compose(&DEF, &[other], Attributes::new())
    }
}

/// The shapes of both operands as matrices.
fn matrices(a: &Shape, b: &Shape) -> (Vec<usize>, Vec<usize>) {
    let left = if a.rank() == 1 { vec![1, a[0]] } else { a.to_vec() };
    let right = if b.rank() == 1 { vec![b[0], 1] } else { b.to_vec() };
    (left, right)
}

fn check(types: &[Type], _: &Attributes) -> Result<(), String> {
    arity(types, 2)?;
    let (a, b) = (&types[0], &types[1]);
    infer_unary(&types[..1], Takes::Numbers)?;
    dtype("the right operand", b, a.dtype)?;
    if a.shape.rank() == 0 || b.shape.rank() == 0 {
        return Err(format!("{a} and {b}: a scalar has no matrix product; multiply with `*`"));
    }
    let (left, right) = matrices(&a.shape, &b.shape);
    let (k, l) = (left[left.len() - 1], right[right.len() - 2]);
    if k != l {
        return Err(format!("{a} and {b}: the left operand has {k} columns, the right one {l} rows"));
    }
    broadcast_shape(&left[..left.len() - 2].into(), &right[..right.len() - 2].into()).map(drop)
}

fn body(body: &Body) -> Vec<Tensor> {
    let (a, b) = (&body.operands[0], &body.operands[1]);
    let (left, right) = matrices(a.shape(), b.shape());
    let (left_batch, left_matrix) = left.split_at(left.len() - 2);
    let (right_batch, right_matrix) = right.split_at(right.len() - 2);
    let product = if right_batch.is_empty() {
        a.reshape(left.clone()).dot_general(&b.reshape(right.clone()), &[], &[(left.len() - 1, 0)])
    } else {
        let batch = broadcast_shape(&left_batch.into(), &right_batch.into()).unwrap_or_default();
        let all =
            |x: &Tensor, dims: &[usize], matrix: &[usize]| x.reshape(dims).broadcast_to([&batch, matrix].concat());
        let n = batch.rank();
        let pairs: Vec<_> = (0..n).map(|i| (i, i)).collect();
        all(a, &left, left_matrix).dot_general(&all(b, &right, right_matrix), &pairs, &[(n + 1, n)])
    };
    let mut dims = product.shape().to_vec();
    if b.rank() == 1 {
        dims.pop();
    }
    if a.rank() == 1 {
        dims.remove(dims.len() + usize::from(b.rank() == 1) - 2);
    }
    vec![product.reshape(dims)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "matmul",
    formula: "y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]",
    kind: rules(check, body),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(16.0),
    onnx: &["MatMul"],
    samples: || {
        let sample = |label: &str, a: &[usize], b: &[usize]| {
            let inputs = vec![values::tensor(a, -2.0, 2.0, 1), values::tensor(b, -2.0, 2.0, 2)];
            Sample::floats(label, inputs, |_, x| vec![x[0].matmul(&x[1])])
        };
        vec![
            sample("matrices", &[3, 4], &[4, 5]),
            sample("vectors", &[4], &[4]),
            sample("vector and matrix", &[4], &[4, 5]),
            sample("matrix and vector", &[3, 4], &[4]),
            sample("batch and matrix", &[2, 3, 4], &[4, 5]),
            sample("matrix and batch", &[3, 4], &[2, 4, 5]),
            sample("broadcast batches", &[2, 1, 3, 4], &[6, 4, 5]),
            sample("vector and batch", &[4], &[2, 4, 5]),
            sample("nothing to sum", &[3, 0], &[0, 5]),
        ]
    },
};
