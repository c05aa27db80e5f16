//! Products of matrices and convolutions in the dtypes of a policy. Sums are f32.

use super::class::is_backward;
use super::demand::Demand;
use super::narrow::Narrower;
use super::policy::Compute;
use backfit_ir::op::Binary;
use backfit_ir::{DType, Node, Op, ValueId};

/// Which parts of the operands are multiplied, smallest products first. Those left out are below the last bit of f32.
const PRODUCTS: [(usize, usize); 6] = [(0, 2), (1, 1), (2, 0), (0, 1), (1, 0), (0, 0)];

/// Rewrites a contraction of f32.
pub(super) fn rewrite(n: &mut Narrower, node: &Node, compute: Compute) {
    match compute {
        Compute::F32 => {
            let operands = n.operands(node, DType::F32);
            n.replace(node, node.op.clone(), operands);
        }
        Compute::F16 | Compute::Bf16 => narrow(n, node, compute.dtype()),
        Compute::Bf16x3 => split(n, node),
    }
}

/// Operands in a narrow dtype; the sum is rounded to what its readers want, on an engine always.
fn narrow(n: &mut Narrower, node: &Node, dtype: DType) {
    let result = match n.demands.values[node.results[0].index()] {
        Demand::Narrow(wanted) => wanted,
        _ if n.policy.engine().is_some() => dtype,
        _ => DType::F32,
    };
    let operands = n.operands(node, dtype);
    let product = n.emit(node, with_result(&node.op, result), operands);
    let ceiling = n.policy.engine().filter(|_| !is_backward(node)).map(|engine| engine.product_ceiling);
    let product = match ceiling {
        Some(ceiling) => {
            let ty = n.out.function.ty(product).clone();
            let (low, high) = (n.splat(node, ty.clone(), -ceiling), n.splat(node, ty, ceiling));
            n.emit(node, Op::Clamp, vec![low, product, high])
        }
        None => product,
    };
    n.out.map_value(node.results[0], product);
}

/// The contraction with f32 sums and a result of this dtype.
pub(super) fn with_result(op: &Op, result: DType) -> Op {
    let mut op = op.clone();
    match &mut op {
        Op::DotGeneral(dot) => (dot.accumulator, dot.result) = (DType::F32, result),
        Op::Convolution(convolution) => (convolution.accumulator, convolution.result) = (DType::F32, result),
        _ => unreachable!("a contraction"),
    }
    op
}

/// The sum of six products of bf16 parts.
fn split(n: &mut Narrower, node: &Node) {
    let operands = n.operands(node, DType::F32);
    let lhs = parts(n, node, operands[0]);
    let rhs = parts(n, node, operands[1]);
    let mut sum: Option<ValueId> = None;
    for (left, right) in PRODUCTS {
        let product = n.emit(node, with_result(&node.op, DType::F32), vec![lhs[left], rhs[right]]);
        sum = Some(match sum {
            Some(before) => n.emit(node, Op::Binary(Binary::Add), vec![before, product]),
            None => product,
        });
    }
    if let Some(sum) = sum {
        n.out.map_value(node.results[0], sum);
    }
}

/// Three bf16 numbers that add up to an f32 one: each is what the ones before it leave, rounded. All differences are exact.
fn parts(n: &mut Narrower, node: &Node, value: ValueId) -> [ValueId; 3] {
    let mut rest = value;
    [0, 1, 2].map(|part| {
        let narrow = n.emit(node, Op::Cast(DType::BF16), vec![rest]);
        if part < 2 {
            let wide = n.emit(node, Op::Cast(DType::F32), vec![narrow]);
            rest = n.emit(node, Op::Binary(Binary::Sub), vec![rest, wide]);
        }
        narrow
    })
}
