//! `transpose(x)`: permutes axes; result axis i is operand axis `permutation[i]`.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{arity, no_flops};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// Permutes axes: result axis i is axis `permutation[i]` of this tensor.
    #[track_caller]
    pub fn transpose(&self, permutation: &[usize]) -> Tensor {
        if permutation.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        self.graph().push1(Op::Transpose(permutation.to_vec()), &[self])
    }

    /// Exchanges two axes, negative from the end.
    #[track_caller]
    pub fn swap_axes(&self, a: i64, b: i64) -> Tensor {
        let rank = self.rank();
        match (crate::axis_index(a, rank), crate::axis_index(b, rank)) {
            (Some(a), Some(b)) => {
                let mut permutation: Vec<usize> = (0..rank).collect();
                permutation.swap(a, b);
                self.transpose(&permutation)
            }
            _ => self.fail(format!("swap_axes: {} has no axes {a} and {b}", self.ty())),
        }
    }
}

fn permutation(op: &Op) -> &[usize] {
    match op {
        Op::Transpose(permutation) => permutation,
        _ => unreachable!("a rule of transpose"),
    }
}

/// The permutation that undoes another.
pub fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, &p)| inverse[p] = i);
    inverse
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let permutation = permutation(op);
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..types[0].shape.rank()) {
        return Err(format!("{permutation:?} is not a permutation of the axes of {}", types[0]));
    }
    Ok(vec![types[0].with_shape(permutation.iter().map(|&p| types[0].shape[p]).collect::<Vec<_>>())])
}

fn eval(op: &Op, x: &[&Array], ty: &[Type]) -> Vec<Array> {
    let from = x[0].shape().strides();
    let to = ty[0].shape.strides();
    let strides: Vec<usize> = permutation(op).iter().map(|&p| from[p]).collect();
    let index = |i: usize| (0..to.len()).map(|a| i / to[a] % ty[0].shape[a] * strides[a]).sum();
    vec![x[0].pick(ty[0].clone(), index)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "transpose",
    formula: "y[i₀,i₁,…] = x[…] with axes permuted",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("permutation", permutation(op)),
        parse: |a| Ok(Op::Transpose(a.sizes("permutation")?)),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|vjp| vec![Some(vjp.cotangent().transpose(&inverse(permutation(vjp.op))))]),
    tolerance: Tolerance::Exact,
    onnx: &["Transpose"],
    samples: || {
        vec![
            Sample::floats("matrix", vec![values::tensor([3, 5], -2.0, 2.0, 1)], |_, x| vec![x[0].transpose(&[1, 0])]),
            Sample::floats("rank 4", vec![values::tensor([2, 3, 4, 5], -2.0, 2.0, 1)], |_, x| vec![x[0].transpose(&[2, 0, 3, 1])]),
        ]
    },
};
