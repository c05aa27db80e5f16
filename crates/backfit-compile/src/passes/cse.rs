//! Common subexpressions: nodes with the same operator and operands are computed once.
//!
//! Nothing is merged across a `barrier`, because its results are values of their own.

use backfit_ir::rewrite::Rewriter;
use backfit_ir::{Function, Op, Type, ValueId};
use std::collections::HashMap;

/// The function with equal nodes merged, and how many were.
pub fn run(function: &Function) -> (Function, usize) {
    let mut rewriter = Rewriter::new(function);
    let mut known: HashMap<Key, Vec<ValueId>> = HashMap::new();
    let mut merged = 0;
    for node in &function.nodes {
        if node.op == Op::Barrier {
            rewriter.copy_node(node);
            continue;
        }
        let operands = rewriter.values(&node.operands);
        let key = Key::new(&node.op, operands, function.types(&node.results));
        match known.get(&key) {
            Some(results) => {
                node.results.iter().zip(results).for_each(|(&old, &new)| rewriter.map_value(old, new));
                merged += 1;
            }
            None => {
                let results = rewriter.copy_node(node);
                known.insert(key, results);
            }
        }
    }
    (rewriter.finish(), merged)
}

/// What makes two nodes equal.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The operator with its attributes; of a constant the bytes.
    op: Vec<u8>,
    operands: Vec<ValueId>,
    results: Vec<Type>,
}

impl Key {
    fn new(op: &Op, operands: Vec<ValueId>, results: Vec<Type>) -> Self {
        let op = match op {
            Op::Constant(literal) => [b"constant ", literal.bytes()].concat(),
            op => format!("{op:?}").into_bytes(),
        };
        Key { op, operands, results }
    }
}
