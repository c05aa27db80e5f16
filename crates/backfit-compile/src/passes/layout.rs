//! Layout: transposes disappear into the axis numbers of matrix products.
//!
//! A kernel reads its operands through strides, so a transposed operand costs nothing. The order of every sum stays.

use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::rewrite::{Rewriter, dead_code};
use backfit_ir::{Function, Node, Op, ValueId};

/// The function with transposes folded into products, and how many were.
pub fn run(function: &Function) -> (Function, usize) {
    let mut rewriter = Rewriter::new(function);
    let mut folded = 0;
    for node in &function.nodes {
        let simpler = swapped_result(function, node).or_else(|| transposed_operands(function, node));
        match simpler {
            Some((op, operands)) => {
                let operands = rewriter.values(&operands);
                rewriter.replace_node(node, op, operands);
                folded += 1;
            }
            None => {
                rewriter.copy_node(node);
            }
        }
    }
    (dead_code(&rewriter.finish()), folded)
}

/// dot(transpose(a), b) = dot(a, b) with a's axes renumbered, where the free axes keep their order.
fn transposed_operands(f: &Function, node: &Node) -> Option<(Op, Vec<ValueId>)> {
    let Op::DotGeneral(dot) = &node.op else { return None };
    let mut dot = dot.clone();
    let mut operands = node.operands.clone();
    let DotGeneral { lhs_batch, lhs_contract, rhs_batch, rhs_contract, .. } = &mut dot;
    for (operand, batch, contract) in [(0, lhs_batch, lhs_contract), (1, rhs_batch, rhs_contract)] {
        let Some(Node { op: Op::Transpose(permutation), operands: inner, .. }) = f.node_of(operands[operand]) else {
            continue;
        };
        let free = DotGeneral::free(permutation.len(), batch, contract);
        if free.windows(2).all(|w| permutation[w[0]] < permutation[w[1]]) {
            batch.iter_mut().chain(contract.iter_mut()).for_each(|axis| *axis = permutation[*axis]);
            operands[operand] = inner[0];
        }
    }
    (operands != node.operands).then_some((Op::DotGeneral(dot), operands))
}

/// transpose(dot(a, b)) = dot(b, a), where the transpose exchanges the two groups of free axes.
fn swapped_result(f: &Function, node: &Node) -> Option<(Op, Vec<ValueId>)> {
    let Op::Transpose(permutation) = &node.op else { return None };
    let product = f.node_of(node.operands[0])?;
    let Op::DotGeneral(dot) = &product.op else { return None };
    let batch = dot.lhs_batch.len();
    let left = f.ty(product.operands[0]).shape.rank() - batch - dot.lhs_contract.len();
    let rank = permutation.len();
    let swap = (0..batch).chain(batch + left..rank).chain(batch..batch + left);
    if !swap.eq(permutation.iter().copied()) {
        return None;
    }
    let swapped = DotGeneral {
        lhs_batch: dot.rhs_batch.clone(),
        rhs_batch: dot.lhs_batch.clone(),
        lhs_contract: dot.rhs_contract.clone(),
        rhs_contract: dot.lhs_contract.clone(),
        ..dot.clone()
    };
    Some((Op::DotGeneral(swapped), vec![product.operands[1], product.operands[0]]))
}
