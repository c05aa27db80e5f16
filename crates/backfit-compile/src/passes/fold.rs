//! Constant folding: small nodes whose operands are all constants are evaluated by the reference interpreter.
//!
//! Only operators whose results are exactly rounded are folded, so that a value has the same bits folded and computed.

use backfit_ir::interp::Array;
use backfit_ir::op::{Binary, Unary};
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{Function, Literal, Node, Op, ValueId};
use std::collections::HashMap;

/// Larger results are left to be computed: they would bloat the program.
const MAX_ELEMENTS: usize = 1024;

/// The function with constant nodes folded, and how many were.
pub fn run(function: &Function, flush_subnormals: bool) -> (Function, usize) {
    let mut rewriter = Rewriter::new(function);
    let mut constants: HashMap<ValueId, Literal> = HashMap::new();
    let mut folded = 0;
    for node in &function.nodes {
        if let Op::Constant(literal) = &node.op {
            constants.insert(node.results[0], literal.clone());
        } else if let Some(literal) = evaluate(function, node, &constants, flush_subnormals) {
            rewriter.replace_node(node, Op::Constant(literal.clone()), vec![]);
            constants.insert(node.results[0], literal);
            folded += 1;
            continue;
        }
        rewriter.copy_node(node);
    }
    (rewriter.finish(), folded)
}

fn evaluate(function: &Function, node: &Node, constants: &HashMap<ValueId, Literal>, flush: bool) -> Option<Literal> {
    let small = node.results.len() == 1 && function.ty(node.results[0]).shape.elements() <= MAX_ELEMENTS;
    if !small || node.operands.is_empty() || !is_exact(&node.op) {
        return None;
    }
    let operands: Option<Vec<Array>> =
        node.operands.iter().map(|v| constants.get(v).map(Array::from_literal)).collect();
    let mut operands = operands?;
    operands.iter_mut().for_each(|a| a.round(flush));
    let results = function.types(&node.results);
    let mut value = (node.op.primitive().eval)(&node.op, &operands.iter().collect::<Vec<_>>(), &results).swap_remove(0);
    value.round(flush);
    Some(value.to_literal())
}

/// Whether an operator moves data or rounds exactly, in every dtype. A broadcast is exact but better left alone:
/// targets read the small operand.
fn is_exact(op: &Op) -> bool {
    match op {
        Op::Unary(op) => matches!(
            op,
            Unary::Neg
                | Unary::Abs
                | Unary::Sign
                | Unary::Sqrt
                | Unary::Reciprocal
                | Unary::Floor
                | Unary::Ceil
                | Unary::RoundEven
                | Unary::IsFinite
                | Unary::Not
        ),
        Op::Binary(op) => !matches!(op, Binary::Pow | Binary::Atan2),
        Op::Compare(_)
        | Op::Select
        | Op::Clamp
        | Op::Cast(_)
        | Op::Bitcast(_)
        | Op::ReducePrecision { .. }
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Concatenate { .. }
        | Op::Reverse(_)
        | Op::RngBits(_) => true,
        Op::Constant(_)
        | Op::Iota { .. }
        | Op::Reduce { .. }
        | Op::ArgReduce { .. }
        | Op::Cumulative { .. }
        | Op::Broadcast { .. }
        | Op::DynamicSlice { .. }
        | Op::DynamicUpdateSlice
        | Op::Gather { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. }
        | Op::DotGeneral(_)
        | Op::Convolution(_)
        | Op::ReduceWindow { .. }
        | Op::SelectAndScatter { .. }
        | Op::Call(_)
        | Op::Scan(_)
        | Op::Barrier => false,
    }
}
