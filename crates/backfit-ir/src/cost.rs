//! Arithmetic and bytes per operator.

use crate::graph::{Function, Module, Node};
use crate::op::Op;

/// What a node costs at one run of its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Arithmetic operations; a multiply-add counts as two.
    pub flops: u64,
    /// Bytes read and written if nothing were fused.
    pub bytes: u64,
}

/// The cost of one node, callees included.
pub fn node(module: &Module, f: &Function, node: &Node) -> Cost {
    let values = node.operands.iter().chain(&node.results);
    let own = values.map(|&v| f.ty(v).bytes() as u64).sum();
    match &node.op {
        Op::Call(callee) => function(module, module.function(*callee)),
        Op::Scan(scan) => {
            let body = function(module, module.function(scan.body));
            let n = scan.trip_count as u64;
            Cost { flops: body.flops.saturating_mul(n), bytes: body.bytes.saturating_mul(n) }
        }
        op => {
            let flops = (op.primitive().flops)(op, &f.types(&node.operands), &f.types(&node.results));
            Cost { flops, bytes: own }
        }
    }
}

/// The cost of one run of a function.
pub fn function(module: &Module, f: &Function) -> Cost {
    f.nodes.iter().map(|n| node(module, f, n)).fold(Cost::default(), |a, b| Cost {
        flops: a.flops.saturating_add(b.flops),
        bytes: a.bytes.saturating_add(b.bytes),
    })
}
