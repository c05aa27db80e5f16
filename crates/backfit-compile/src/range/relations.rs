//! What intervals alone do not know: relations between the values of one function.
//!
//! x − max x ≤ 0; eᶻ of such z has a sum of at least 1; eᵢ / Σ e of terms that are not negative lies between 0 and 1; x · x ≥ 0.

use super::interval::Interval;
use backfit_ir::op::{Binary, Monoid, Unary};
use backfit_ir::{Function, Node, Op, ValueId};

/// The intervals of a node's results, tightened; `known` has those of the values before.
pub(super) fn refined(f: &Function, node: &Node, mut results: Vec<Interval>, known: &[Interval]) -> Vec<Interval> {
    let look = Look { f, known };
    let [result] = &mut results[..] else { return results };
    match &node.op {
        Op::Binary(Binary::Sub) if look.is_below_its_maximum(node) => result.high = result.high.min(0.0),
        Op::Binary(Binary::Mul) if node.operands[0] == node.operands[1] => result.low = result.low.max(0.0),
        Op::Binary(Binary::Div) if look.is_share(node) && !result.nan => *result = Interval::new(0.0, 1.0 + 1e-2),
        Op::Reduce { monoid: Monoid::Sum, axes, .. } if look.is_sum_of_shifted(node, axes) => {
            result.low = result.low.max(1.0 - 1e-2);
        }
        _ => {}
    }
    results
}

/// A function with the intervals of its values so far.
struct Look<'a> {
    f: &'a Function,
    known: &'a [Interval],
}

impl Look<'_> {
    /// The value that is repeated or reshaped to this one. A choice between a value and 0, by whether the value is finite, is
    /// the value where it is finite.
    fn source(&self, mut value: ValueId) -> ValueId {
        while let Some(node) = self.f.node_of(value) {
            value = match node.op {
                Op::Broadcast { .. } | Op::Reshape(_) => node.operands[0],
                Op::Select if self.chooses_what_is_finite(node) => node.operands[1],
                _ => break,
            };
        }
        value
    }

    fn chooses_what_is_finite(&self, node: &Node) -> bool {
        let tests = self
            .f
            .node_of(node.operands[0])
            .is_some_and(|test| test.op == Op::Unary(Unary::IsFinite) && test.operands[0] == node.operands[1]);
        let interval = self.known[node.operands[1].index()];
        tests && interval.magnitude().is_finite() && !interval.nan
    }

    /// The axes over which a value is, repeated, a reduction of another.
    fn reduction_of(&self, value: ValueId, of: ValueId, wanted: Monoid) -> Option<Vec<usize>> {
        match self.f.node_of(self.source(value)) {
            Some(Node { op: Op::Reduce { monoid, axes, .. }, operands, .. })
                if *monoid == wanted && operands[0] == of && self.is_repeated_in_place(value, of, axes) =>
            {
                Some(axes.clone())
            }
            _ => None,
        }
    }

    /// Whether a repeated reduction stands where it was reduced: its axes come back, and nothing else moves.
    fn is_repeated_in_place(&self, value: ValueId, of: ValueId, axes: &[usize]) -> bool {
        let broadcast = self.f.node_of(value).and_then(|n| match &n.op {
            Op::Broadcast { axes, .. } => Some((n.operands[0], axes)),
            _ => None,
        });
        let Some((inner, places)) = broadcast else { return false };
        let (shape, inner) = (&self.f.ty(of).shape, &self.f.ty(inner).shape);
        let kept: Vec<usize> = (0..shape.rank()).filter(|a| !axes.contains(a)).collect();
        // Either the reduced axes are there with extent 1, or they are not there at all.
        let with_units = inner.rank() == shape.rank() && places.iter().copied().eq(0..shape.rank());
        with_units && axes.iter().all(|&a| inner[a] == 1) || *places == kept && inner.rank() == kept.len()
    }

    fn is_below_its_maximum(&self, node: &Node) -> bool {
        self.reduction_of(node.operands[1], node.operands[0], Monoid::Max).is_some()
    }

    fn is_share(&self, node: &Node) -> bool {
        let [part, sum] = [node.operands[0], node.operands[1]];
        let positive = self.f.node_of(part).is_some_and(|n| n.op == Op::Unary(Unary::Exp));
        positive && self.reduction_of(sum, part, Monoid::Sum).is_some()
    }

    /// Σ e^(x − max x) over the axes of the maximum: one of the terms is 1.
    fn is_sum_of_shifted(&self, node: &Node, axes: &[usize]) -> bool {
        let argument_of = |value: ValueId, op: Op| self.f.node_of(value).filter(|n| n.op == op);
        let Some(exp) = argument_of(node.operands[0], Op::Unary(Unary::Exp)) else { return false };
        let Some(shifted) = argument_of(exp.operands[0], Op::Binary(Binary::Sub)) else { return false };
        let [x, max] = [shifted.operands[0], shifted.operands[1]];
        let over = self.reduction_of(max, x, Monoid::Max);
        self.f.ty(x).shape.elements() > 0 && over.is_some_and(|over| over == axes)
    }
}
