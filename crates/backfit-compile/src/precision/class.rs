//! Of which class an operator is.

use backfit_ir::op::Monoid;
use backfit_ir::ops::family::Family;
use backfit_ir::{Node, Op, scope};

/// What an operator is to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Products of matrices and convolutions.
    Contraction,
    /// What works on each element by itself, and whatever is of no other class.
    Elementwise,
    /// Sums, products and running sums; means, variances, norms.
    Reduction,
    /// Softmax and log-sum-exp.
    Softmax,
    /// Losses and metrics.
    Loss,
    /// What the training step appends to the gradients: guard, clipping, updates, counters. It is computed in f32, whatever a
    /// policy says, but for Adam on an f16 engine.
    Update,
    /// Random numbers.
    Random,
}

/// What stands for a sum that a loop's derivative carries from step to step.
const SUM: &str = "sum.backward";

impl Class {
    /// All classes, in the order of the table.
    pub const ALL: [Class; 7] = [
        Class::Contraction,
        Class::Elementwise,
        Class::Reduction,
        Class::Softmax,
        Class::Loss,
        Class::Update,
        Class::Random,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Class::Contraction => "contraction",
            Class::Elementwise => "elementwise",
            Class::Reduction => "reduction",
            Class::Softmax => Family::Softmax.word(),
            Class::Loss => Family::Loss.word(),
            Class::Update => Family::Update.word(),
            Class::Random => Family::Random.word(),
        }
    }

    /// The class of a composite, its derivatives included, where all of it is of one.
    pub fn of_composite(name: &str) -> Option<Class> {
        Family::of(name).map(|family| match family {
            Family::Statistics => Class::Reduction,
            Family::Softmax => Class::Softmax,
            Family::Loss => Class::Loss,
            Family::Update => Class::Update,
            Family::Random => Class::Random,
        })
    }

    /// The class of a node: that of the outermost composite it belongs to, else that of its operator.
    ///
    /// Its scope tells: inlined nodes and derivatives have the composite's name there.
    pub fn of(node: &Node) -> Class {
        if node.scope.split('/').next() == Some(scope::STEP) {
            return Class::Update;
        }
        let of_part = |part: &str| if part == SUM { Some(Class::Reduction) } else { Class::of_composite(part) };
        scope::composites(&node.scope).find_map(of_part).unwrap_or_else(|| Class::of_operator(&node.op))
    }

    fn of_operator(op: &Op) -> Class {
        match op {
            Op::DotGeneral(_) | Op::Convolution(_) => Class::Contraction,
            Op::Reduce { .. }
            | Op::Cumulative { .. }
            | Op::SelectAndScatter { .. }
            | Op::Scatter { .. }
            | Op::ReduceWindow { monoid: Monoid::Sum | Monoid::Product, .. } => Class::Reduction,
            _ => Class::Elementwise,
        }
    }
}

/// Whether a node is part of a derivative.
pub fn is_backward(node: &Node) -> bool {
    scope::composites(&node.scope).any(|name| name.ends_with(".backward"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::op::Binary;
    use backfit_ir::{Loc, Op};

    fn class(op: Op, scope: &str) -> Class {
        let loc = Loc { file: "f.rs".into(), line: 1 };
        Class::of(&Node { op, operands: vec![], results: vec![], scope: scope.into(), loc })
    }

    #[test]
    fn the_outermost_composite_decides_then_the_operator() {
        let add = || Op::Binary(Binary::Add);
        assert_eq!(class(add(), "encoder/0"), Class::Elementwise);
        assert_eq!(class(add(), "attn/scaled_dot_product_attention.backward()/softmax.backward()"), Class::Softmax);
        assert_eq!(class(add(), "cross_entropy()/softmax_cross_entropy()"), Class::Loss);
        assert_eq!(class(add(), "step()/adam_update()"), Class::Update);
        assert_eq!(class(add(), "lion_update()"), Class::Update);
        assert_eq!(class(Op::Barrier, "fc1/gelu()"), Class::Elementwise);
        let sum = Op::Reduce { monoid: Monoid::Sum, axes: vec![0], accumulator: backfit_ir::DType::F32 };
        assert_eq!(class(add(), "step/mean"), Class::Elementwise);
        assert_eq!(class(sum, "fc1/linear.backward()"), Class::Reduction);
    }
}
