//! `dot_general(lhs, rhs)`: the generalised matrix product.
//!
//! Result shape: batch axes, then the free axes of `lhs`, then the free axes of `rhs`, each in operand order.
//! y[b, i, j] = Σₖ lhs[b, i, k] · rhs[b, j, k], summed in increasing k in the accumulator's dtype.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use crate::attributes::{AttrResult, Attributes};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::interp::{Array, Odometer};
use crate::op::{Keyword, Op, Precision};
use crate::shape::Type;

/// The attributes of `dot_general`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotGeneral {
    /// Batch axes of the left operand.
    pub lhs_batch: Vec<usize>,
    /// Batch axes of the right operand, in the same order.
    pub rhs_batch: Vec<usize>,
    /// Contracted axes of the left operand.
    pub lhs_contract: Vec<usize>,
    /// Contracted axes of the right operand, in the same order.
    pub rhs_contract: Vec<usize>,
    /// Dtype of the sums.
    pub accumulator: DType,
    /// Dtype of the result.
    pub result: DType,
    /// How exactly products are formed.
    pub precision: Precision,
}

impl DotGeneral {
    /// The axes of an operand of this rank that are neither batch nor contracted.
    pub fn free(rank: usize, batch: &[usize], contract: &[usize]) -> Vec<usize> {
        (0..rank).filter(|a| !batch.contains(a) && !contract.contains(a)).collect()
    }

    fn check(&self, lhs: &Type, rhs: &Type) -> Result<(), String> {
        if lhs.dtype != rhs.dtype {
            return Err(format!("the operands are {} and {}; cast one of them", lhs.dtype, rhs.dtype));
        }
        if lhs.dtype.class() == Class::Bool || lhs.dtype.is_packed() {
            return Err(format!("it takes numbers, not {}", lhs.dtype));
        }
        for (words, ty, batch, contract) in
            [("left", lhs, &self.lhs_batch, &self.lhs_contract), ("right", rhs, &self.rhs_batch, &self.rhs_contract)]
        {
            let mut seen = vec![false; ty.shape.rank()];
            for &axis in batch.iter().chain(contract) {
                if axis >= seen.len() || std::mem::replace(&mut seen[axis], true) {
                    return Err(format!("axis {axis} of the {words} operand {ty} is out of range or named twice"));
                }
            }
        }
        let pairs = [(&self.lhs_batch, &self.rhs_batch, "batch"), (&self.lhs_contract, &self.rhs_contract, "contracted")];
        for (l, r, words) in pairs {
            if l.len() != r.len() {
                return Err(format!("{} {words} axes on the left, {} on the right", l.len(), r.len()));
            }
            for (&a, &b) in l.iter().zip(r.iter()) {
                if lhs.shape[a] != rhs.shape[b] {
                    return Err(format!(
                        "{words} axes differ: {lhs} has {} at axis {a}, {rhs} has {} at axis {b}",
                        lhs.shape[a], rhs.shape[b]
                    ));
                }
            }
        }
        Ok(())
    }
}

fn attributes_of(op: &Op) -> &DotGeneral {
    match op {
        Op::DotGeneral(dot) => dot,
        _ => unreachable!("a rule of dot_general"),
    }
}

fn attributes(op: &Op) -> Attributes {
    let dot = attributes_of(op);
    Attributes::new()
        .with("lhs_batch", &dot.lhs_batch)
        .with("rhs_batch", &dot.rhs_batch)
        .with("lhs_contract", &dot.lhs_contract)
        .with("rhs_contract", &dot.rhs_contract)
        .with("accumulator", dot.accumulator)
        .with("result", dot.result)
        .with("precision", dot.precision.word())
}

fn parse(a: &Attributes) -> AttrResult<Op> {
    Ok(Op::DotGeneral(DotGeneral {
        lhs_batch: a.sizes("lhs_batch")?,
        rhs_batch: a.sizes("rhs_batch")?,
        lhs_contract: a.sizes("lhs_contract")?,
        rhs_contract: a.sizes("rhs_contract")?,
        accumulator: a.dtype("accumulator")?,
        result: a.dtype("result")?,
        precision: Precision::from_word(a.str("precision")?)?,
    }))
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 2)?;
    let dot = attributes_of(op);
    let (lhs, rhs) = (&types[0], &types[1]);
    dot.check(lhs, rhs)?;
    let batch = dot.lhs_batch.iter().map(|&a| lhs.shape[a]);
    let left = DotGeneral::free(lhs.shape.rank(), &dot.lhs_batch, &dot.lhs_contract).into_iter().map(|a| lhs.shape[a]);
    let right = DotGeneral::free(rhs.shape.rank(), &dot.rhs_batch, &dot.rhs_contract).into_iter().map(|a| rhs.shape[a]);
    Ok(vec![Type::new(dot.result, batch.chain(left).chain(right).collect::<Vec<_>>())])
}

/// Rows of an operand as (batch, free, contracted) → element offset.
fn offsets(ty: &Type, axes: &[usize]) -> Vec<usize> {
    let strides = ty.shape.strides();
    let dims: Vec<usize> = axes.iter().map(|&a| ty.shape[a]).collect();
    Odometer::new(&dims).map(|index| index.iter().zip(axes).map(|(i, &a)| i * strides[a]).sum()).collect()
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let dot = attributes_of(op);
    let (lhs, rhs) = (x[0], x[1]);
    let lhs_free = DotGeneral::free(lhs.shape().rank(), &dot.lhs_batch, &dot.lhs_contract);
    let rhs_free = DotGeneral::free(rhs.shape().rank(), &dot.rhs_batch, &dot.rhs_contract);
    let (lb, li, lk) = (offsets(&lhs.ty, &dot.lhs_batch), offsets(&lhs.ty, &lhs_free), offsets(&lhs.ty, &dot.lhs_contract));
    let (rb, rj, rk) = (offsets(&rhs.ty, &dot.rhs_batch), offsets(&rhs.ty, &rhs_free), offsets(&rhs.ty, &dot.rhs_contract));
    let mut floats = Vec::new();
    let mut ints = Vec::new();
    for (b, c) in lb.iter().zip(&rb) {
        for i in &li {
            for j in &rj {
                let terms = lk.iter().zip(&rk).map(|(k, l)| (b + i + k, c + j + l));
                if lhs.ty.dtype.is_float() {
                    floats.push(terms.map(|(p, q)| lhs.as_floats()[p] * rhs.as_floats()[q]).sum());
                } else {
                    let product = |(p, q): (usize, usize)| lhs.as_ints()[p].wrapping_mul(rhs.as_ints()[q]);
                    ints.push(terms.map(product).fold(0, i64::wrapping_add));
                }
            }
        }
    }
    let ty = results[0].clone();
    vec![if lhs.ty.dtype.is_float() { Array::floats(ty, floats) } else { Array::ints(ty, ints) }]
}

fn flops(op: &Op, types: &[Type], results: &[Type]) -> u64 {
    let contracted: usize = attributes_of(op).lhs_contract.iter().map(|&a| types[0].shape[a]).product();
    2 * contracted as u64 * results[0].shape.elements() as u64
}

/// With y[b, i, j] = Σₖ l[b, i, k] r[b, j, k]: dl[b, i, k] = Σⱼ g[b, i, j] r[b, j, k], transposed to l's axis order; dr alike.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let dot = attributes_of(vjp.op);
    let (lhs, rhs) = (&vjp.operands[0], &vjp.operands[1]);
    let lhs_free = DotGeneral::free(lhs.rank(), &dot.lhs_batch, &dot.lhs_contract);
    let rhs_free = DotGeneral::free(rhs.rank(), &dot.rhs_batch, &dot.rhs_contract);
    let batch: Vec<usize> = (0..dot.lhs_batch.len()).collect();
    let g_left: Vec<usize> = (batch.len()..batch.len() + lhs_free.len()).collect();
    let g_right: Vec<usize> = (batch.len() + lhs_free.len()..batch.len() + lhs_free.len() + rhs_free.len()).collect();
    let side = |other: &Tensor, g_contract: &[usize], other_batch: &[usize], other_free: &[usize], own: [&[usize]; 3], other_contract: &[usize]| {
        let product = vjp.graph.push1(
            Op::DotGeneral(DotGeneral {
                lhs_batch: batch.clone(),
                rhs_batch: other_batch.to_vec(),
                lhs_contract: g_contract.to_vec(),
                rhs_contract: other_free.to_vec(),
                result: other.dtype(),
                ..dot.clone()
            }),
            &[vjp.cotangent(), other],
        );
        // The product's axes are: batch, own free axes, then the other operand's contracted axes in its order.
        let mut contracted: Vec<usize> = (0..other_contract.len()).collect();
        contracted.sort_by_key(|&i| other_contract[i]);
        let [own_batch, own_free, own_contract] = own;
        let position: Vec<usize> =
            own_batch.iter().chain(own_free).copied().chain(contracted.iter().map(|&i| own_contract[i])).collect();
        let mut permutation = vec![0; position.len()];
        position.iter().enumerate().for_each(|(from, &to)| permutation[to] = from);
        product.transpose(&permutation)
    };
    vec![
        vjp.when(0, || {
            side(rhs, &g_right, &dot.rhs_batch, &rhs_free, [&dot.lhs_batch, &lhs_free, &dot.lhs_contract], &dot.rhs_contract)
        }),
        vjp.when(1, || {
            side(lhs, &g_left, &dot.lhs_batch, &lhs_free, [&dot.rhs_batch, &rhs_free, &dot.rhs_contract], &dot.lhs_contract)
        }),
    ]
}

impl Tensor {
    /// The generalised matrix product with the usual accumulator: f32 for half precision, else the dtype itself.
    /// Pairs of axes are given as (left, right).
    #[track_caller]
    pub fn dot_general(&self, rhs: &Tensor, batch: &[(usize, usize)], contract: &[(usize, usize)]) -> Tensor {
        let side = |pairs: &[(usize, usize)], right: bool| pairs.iter().map(|&(l, r)| if right { r } else { l }).collect();
        let dot = DotGeneral {
            lhs_batch: side(batch, false),
            rhs_batch: side(batch, true),
            lhs_contract: side(contract, false),
            rhs_contract: side(contract, true),
            accumulator: self.dtype().accumulator(),
            result: self.dtype(),
            precision: Precision::Full,
        };
        self.graph().push1(Op::DotGeneral(dot), &[self, rhs])
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "dot_general",
    formula: "y[b,i,j] = Σₖ lhs[b,i,k] · rhs[b,j,k]",
    kind: Kind::Primitive(Primitive { attributes, parse, infer, eval, flops }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: || {
        vec![
            Sample::floats("matrix product", vec![values::tensor([3, 4], -2.0, 2.0, 1), values::tensor([4, 5], -2.0, 2.0, 2)], |_, x| {
                vec![x[0].dot_general(&x[1], &[], &[(1, 0)])]
            }),
            Sample::floats("batch and two contracted axes in another order",
                vec![values::tensor([2, 3, 4, 5], -2.0, 2.0, 1), values::tensor([5, 2, 7, 3], -2.0, 2.0, 2)],
                |_, x| vec![x[0].dot_general(&x[1], &[(0, 1)], &[(3, 0), (1, 3)])],
            ),
            Sample::floats("outer product", vec![values::tensor([3], -2.0, 2.0, 1), values::tensor([2], -2.0, 2.0, 2)], |_, x| {
                vec![x[0].dot_general(&x[1], &[], &[])]
            }),
            Sample::floats("nothing to sum", vec![values::floats([2, 0], &[]), values::floats([0, 3], &[])], |_, x| {
                vec![x[0].dot_general(&x[1], &[], &[(1, 0)])]
            }),
            Sample::integers("wrapping sums", vec![values::integers([1, 2], &[100, 100]), values::integers([2, 1], &[2, 100])], |_, x| {
                vec![x[0].dot_general(&x[1], &[], &[(1, 0)])]
            }),
        ]
    },
};
