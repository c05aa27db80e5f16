//! Which values have the same bits on every target.

use backfit_ir::op::{Binary, Monoid, ScatterMode, Unary};
use backfit_ir::rewrite::callee;
use backfit_ir::{Function, Module, Op};

/// For every value of a function whether it is exact, given which parameters are.
pub fn exact_values(module: &Module, f: &Function) -> Vec<bool> {
    let mut exact = vec![true; f.values.len()];
    for node in &f.nodes {
        let operands = node.operands.iter().all(|v| exact[v.index()]);
        let floats = node.operands.iter().chain(&node.results).any(|&v| f.ty(v).dtype.is_float());
        let own = match callee(&node.op) {
            Some(id) => all_exact(module, module.function(id)),
            None => !floats || is_exact(&node.op),
        };
        node.results.iter().for_each(|v| exact[v.index()] = operands && own);
    }
    exact
}

fn all_exact(module: &Module, f: &Function) -> bool {
    exact_values(module, f).into_iter().all(|exact| exact)
}

/// Whether an operator gives the exact result on floats, rounded once.
pub fn is_exact(op: &Op) -> bool {
    let extreme = |monoid: &Monoid| matches!(monoid, Monoid::Max | Monoid::Min | Monoid::And | Monoid::Or);
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
        Op::Reduce { monoid, .. } | Op::Cumulative { monoid, .. } | Op::ReduceWindow { monoid, .. } => extreme(monoid),
        Op::Scatter { mode, .. } => *mode == ScatterMode::Set,
        Op::DotGeneral(_) | Op::Convolution(_) | Op::SelectAndScatter { .. } | Op::Call(_) | Op::Scan(_) => false,
        _ => true,
    }
}
