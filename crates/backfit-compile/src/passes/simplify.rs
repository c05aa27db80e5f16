//! The simplification table: local rewrites that keep every bit.
//!
//! Each rule has a name, and a test that runs it on random values and compares all bits.

use backfit_ir::op::{Binary, Unary};
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{Function, Literal, Node, Op, Type, ValueId};

/// What a node turns into.
#[allow(clippy::large_enum_variant)] // made and taken apart at once, never kept
#[derive(Clone, Debug, PartialEq)]
pub enum Simpler {
    /// An existing value.
    Value(ValueId),
    /// Another operator on existing values.
    Node(Op, Vec<ValueId>),
}

/// A rule of the table.
pub struct Rule {
    /// What it does, as an equation.
    pub name: &'static str,
    /// The simpler form of a node of a function, if the rule applies.
    pub apply: fn(&Function, &Node) -> Option<Simpler>,
}

/// All rules, tried in this order.
pub static RULES: &[Rule] = &[
    Rule { name: "reshape(x) = x, same shape", apply: same_reshape },
    Rule { name: "reshape(reshape(x)) = reshape(x)", apply: reshape_reshape },
    Rule { name: "transpose(x) = x, identity", apply: same_transpose },
    Rule { name: "transpose(transpose(x)) = transpose(x)", apply: transpose_transpose },
    Rule { name: "transpose(x) = reshape(x), only unit axes move", apply: transpose_of_units },
    Rule { name: "broadcast(x) = x, same shape", apply: same_broadcast },
    Rule { name: "broadcast(x) = reshape(x), same elements", apply: broadcast_as_reshape },
    Rule { name: "broadcast(broadcast(x)) = broadcast(x)", apply: broadcast_broadcast },
    Rule { name: "broadcast(reshape(x)) = broadcast(x), reshape adds unit axes", apply: broadcast_reshape },
    Rule { name: "slice(x) = x, whole", apply: whole_slice },
    Rule { name: "pad(x) = x, nothing added", apply: empty_pad },
    Rule { name: "concatenate(x) = x", apply: single_concatenate },
    Rule { name: "reduce(x) = x, no axes", apply: empty_reduce },
    Rule { name: "reduce(x) = reshape(x), unit axes", apply: unit_reduce },
    Rule { name: "cast(x) = x, same dtype", apply: same_cast },
    Rule { name: "neg(neg(x)) = x, not(not(x)) = x, reverse(reverse(x)) = x", apply: involution },
    Rule { name: "x · 1 = x, x / 1 = x", apply: times_one },
    Rule { name: "x − 0 = x, x + (−0) = x", apply: plus_nothing },
    Rule { name: "select(c, x, x) = x", apply: equal_select },
    Rule { name: "select(true, x, y) = x, select(false, x, y) = y", apply: constant_select },
    Rule { name: "maximum(x, x) = x, minimum(x, x) = x", apply: equal_extremes },
    Rule { name: "and(x, true) = x, or(x, false) = x", apply: neutral_bits },
];

/// The function with all rules applied until none does, and how often each was.
pub fn run(function: &Function) -> (Function, Vec<(&'static str, usize)>) {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    let mut current = function.clone();
    loop {
        let (next, applied) = sweep(&current);
        if applied.is_empty() {
            return (next, counts);
        }
        for name in applied {
            match counts.iter_mut().find(|(n, _)| *n == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        current = backfit_ir::rewrite::dead_code(&next);
    }
}

fn sweep(function: &Function) -> (Function, Vec<&'static str>) {
    let mut rewriter = Rewriter::new(function);
    let mut applied = Vec::new();
    for node in &function.nodes {
        match RULES.iter().find_map(|rule| Some((rule.name, (rule.apply)(function, node)?))) {
            Some((name, Simpler::Value(value))) => {
                rewriter.forward(node.results[0], value);
                applied.push(name);
            }
            Some((name, Simpler::Node(op, operands))) => {
                let operands = rewriter.values(&operands);
                rewriter.replace_node(node, op, operands);
                applied.push(name);
            }
            None => {
                rewriter.copy_node(node);
            }
        }
    }
    (rewriter.finish(), applied)
}

fn operand<'f>(f: &'f Function, node: &Node, index: usize) -> Option<&'f Node> {
    f.node_of(*node.operands.get(index)?)
}

fn unchanged(f: &Function, node: &Node) -> bool {
    f.ty(node.operands[0]) == f.ty(node.results[0])
}

fn first(node: &Node) -> Option<Simpler> {
    Some(Simpler::Value(node.operands[0]))
}

fn same_reshape(f: &Function, node: &Node) -> Option<Simpler> {
    (matches!(node.op, Op::Reshape(_)) && unchanged(f, node)).then(|| first(node))?
}

fn reshape_reshape(f: &Function, node: &Node) -> Option<Simpler> {
    let (Op::Reshape(_), inner) = (&node.op, operand(f, node, 0)?) else { return None };
    matches!(inner.op, Op::Reshape(_)).then(|| Simpler::Node(node.op.clone(), inner.operands.clone()))
}

fn same_transpose(_: &Function, node: &Node) -> Option<Simpler> {
    let Op::Transpose(permutation) = &node.op else { return None };
    permutation.iter().copied().eq(0..permutation.len()).then(|| first(node))?
}

fn transpose_transpose(f: &Function, node: &Node) -> Option<Simpler> {
    let (Op::Transpose(outer), Op::Transpose(inner)) = (&node.op, &operand(f, node, 0)?.op) else { return None };
    let both = outer.iter().map(|&p| inner[p]).collect();
    Some(Simpler::Node(Op::Transpose(both), operand(f, node, 0)?.operands.clone()))
}

fn transpose_of_units(f: &Function, node: &Node) -> Option<Simpler> {
    let Op::Transpose(permutation) = &node.op else { return None };
    let shape = &f.ty(node.operands[0]).shape;
    let moved: Vec<usize> = permutation.iter().copied().filter(|&p| shape[p] != 1).collect();
    let keeps_order = moved.windows(2).all(|w| w[0] < w[1]);
    keeps_order.then(|| Simpler::Node(Op::Reshape(f.ty(node.results[0]).shape.clone()), node.operands.clone()))
}

fn same_broadcast(f: &Function, node: &Node) -> Option<Simpler> {
    (matches!(node.op, Op::Broadcast { .. }) && unchanged(f, node)).then(|| first(node))?
}

fn broadcast_as_reshape(f: &Function, node: &Node) -> Option<Simpler> {
    let Op::Broadcast { shape, .. } = &node.op else { return None };
    let same = f.ty(node.operands[0]).shape.elements() == shape.elements();
    same.then(|| Simpler::Node(Op::Reshape(shape.clone()), node.operands.clone()))
}

fn broadcast_broadcast(f: &Function, node: &Node) -> Option<Simpler> {
    let inner = operand(f, node, 0)?;
    let (Op::Broadcast { shape, axes }, Op::Broadcast { axes: inner_axes, .. }) = (&node.op, &inner.op) else {
        return None;
    };
    let axes = inner_axes.iter().map(|&a| axes[a]).collect();
    Some(Simpler::Node(Op::Broadcast { shape: shape.clone(), axes }, inner.operands.clone()))
}

fn broadcast_reshape(f: &Function, node: &Node) -> Option<Simpler> {
    let inner = operand(f, node, 0)?;
    let (Op::Broadcast { shape, axes }, Op::Reshape(middle)) = (&node.op, &inner.op) else { return None };
    let from = &f.ty(inner.operands[0]).shape;
    // Match the axes of x in order against those of the reshaped value, skipping the unit axes that were added.
    let mut matched = Vec::new();
    for (axis, &extent) in middle.iter().enumerate() {
        match from.get(matched.len()) {
            Some(&wanted) if wanted == extent => matched.push(axes[axis]),
            _ if extent == 1 => {}
            _ => return None,
        }
    }
    let fits = matched.len() == from.rank();
    fits.then(|| Simpler::Node(Op::Broadcast { shape: shape.clone(), axes: matched }, inner.operands.clone()))
}

fn whole_slice(f: &Function, node: &Node) -> Option<Simpler> {
    (matches!(node.op, Op::Slice { .. }) && unchanged(f, node)).then(|| first(node))?
}

fn empty_pad(_: &Function, node: &Node) -> Option<Simpler> {
    let Op::Pad { low, high, interior } = &node.op else { return None };
    let nothing = low.iter().chain(high).all(|&p| p == 0) && interior.iter().all(|&p| p == 0);
    nothing.then(|| first(node))?
}

fn single_concatenate(_: &Function, node: &Node) -> Option<Simpler> {
    (matches!(node.op, Op::Concatenate { .. }) && node.operands.len() == 1).then(|| first(node))?
}

fn empty_reduce(_: &Function, node: &Node) -> Option<Simpler> {
    let Op::Reduce { axes, .. } = &node.op else { return None };
    axes.is_empty().then(|| first(node))?
}

/// Not for sums of floats: 0 + (−0) is +0.
fn unit_reduce(f: &Function, node: &Node) -> Option<Simpler> {
    let Op::Reduce { axes, monoid, .. } = &node.op else { return None };
    let ty = f.ty(node.operands[0]);
    let exact = !ty.dtype.is_float() || *monoid != backfit_ir::op::Monoid::Sum;
    let units = axes.iter().all(|&a| ty.shape[a] == 1);
    (exact && units).then(|| Simpler::Node(Op::Reshape(f.ty(node.results[0]).shape.clone()), node.operands.clone()))
}

fn same_cast(f: &Function, node: &Node) -> Option<Simpler> {
    (matches!(node.op, Op::Cast(_)) && unchanged(f, node)).then(|| first(node))?
}

fn involution(f: &Function, node: &Node) -> Option<Simpler> {
    let inner = operand(f, node, 0)?;
    let involutive = matches!(node.op, Op::Unary(Unary::Neg | Unary::Not) | Op::Reverse(_));
    (involutive && inner.op == node.op).then(|| Simpler::Value(inner.operands[0]))
}

fn times_one(f: &Function, node: &Node) -> Option<Simpler> {
    match node.op {
        Op::Binary(Binary::Mul | Binary::Div) if f.splat(node.operands[1]) == Some(1.0) => first(node),
        Op::Binary(Binary::Mul) if f.splat(node.operands[0]) == Some(1.0) => Some(Simpler::Value(node.operands[1])),
        _ => None,
    }
}

/// x + 0 is not x for floats: −0 + 0 is +0.
fn plus_nothing(f: &Function, node: &Node) -> Option<Simpler> {
    let float = f.ty(node.results[0]).dtype.is_float();
    let nothing = |operand: usize, negative: bool| {
        f.splat(node.operands[operand]).is_some_and(|v| v == 0.0 && (!float || v.is_sign_negative() == negative))
    };
    match node.op {
        Op::Binary(Binary::Sub) if nothing(1, false) => first(node),
        Op::Binary(Binary::Add) if nothing(1, true) => first(node),
        Op::Binary(Binary::Add) if nothing(0, true) => Some(Simpler::Value(node.operands[1])),
        _ => None,
    }
}

fn equal_select(_: &Function, node: &Node) -> Option<Simpler> {
    let equal = node.op == Op::Select && node.operands[1] == node.operands[2];
    equal.then_some(Simpler::Value(*node.operands.get(1)?))
}

fn constant_select(f: &Function, node: &Node) -> Option<Simpler> {
    if node.op != Op::Select {
        return None;
    }
    let condition = f.splat(node.operands[0])?;
    Some(Simpler::Value(node.operands[if condition != 0.0 { 1 } else { 2 }]))
}

fn equal_extremes(_: &Function, node: &Node) -> Option<Simpler> {
    let extreme = matches!(node.op, Op::Binary(Binary::Maximum | Binary::Minimum));
    (extreme && node.operands[0] == node.operands[1]).then(|| first(node))?
}

fn neutral_bits(f: &Function, node: &Node) -> Option<Simpler> {
    let neutral = match node.op {
        Op::Binary(Binary::And) => -1,
        Op::Binary(Binary::Or) => 0,
        _ => return None,
    };
    let neutral = Literal::from_i64(Type::new(f.ty(node.results[0]).dtype, []), &[neutral]).to_i64()[0];
    let is_neutral = |v: ValueId| splat_integer(f, v) == Some(neutral);
    if is_neutral(node.operands[1]) {
        return first(node);
    }
    is_neutral(node.operands[0]).then_some(Simpler::Value(node.operands[1]))
}

/// As [`splat`], to the last of 64 bits.
fn splat_integer(f: &Function, value: ValueId) -> Option<i64> {
    let node = f.node_of(value)?;
    match &node.op {
        Op::Constant(literal) => literal.splat().and_then(|_| literal.to_i64().first().copied()),
        Op::Broadcast { .. } | Op::Reshape(_) => splat_integer(f, node.operands[0]),
        _ => None,
    }
}
