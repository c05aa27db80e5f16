//! Forms for an engine that stores nothing but f16 and has wide sums within contractions only.
//!
//! * A sum is a contraction with ones. Where it is only divided by, as in a mean, it is scaled by a power of two before, so that
//!   it stays as small as the mean. A running sum is a contraction with a triangle of ones.
//! * Norms divide by the largest magnitude before they square: with s = max(max |x|, √ε), 1 / √(mean x² + ε) =
//!   1 / (s √(mean (x/s)² + (√ε/s)²)), in which no square exceeds 1 and no ε vanishes.
//! * A number that is added, or bounds from below, and is smaller than the smallest normal f16, 2⁻¹⁴, becomes that: such
//!   numbers guard divisions.
//!
//! * Adam, where a policy has updates in f16 (`adam.rs`).
//!
//! Windows and scattered sums stay narrow.

use super::adam;
use super::class::Class;
use super::demand::{Treatment, treatment};
use super::narrow::Narrower;
use super::policy::Compute;
use backfit_ir::op::{Binary, Monoid, Unary};
use backfit_ir::ops::adam_update::AdamUpdate;
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::ops::norm::RowNorm;
use backfit_ir::{Composite, DType, Literal, Node, Op, Type, ValueId};

/// The smallest normal f16.
pub(super) const SMALLEST: f64 = 1.0 / 16384.0;

/// Running sums over longer axes stay narrow: the triangle would not be small.
const LONGEST_TRIANGLE: usize = 1024;

/// Whether a composite stays whole because it has a form of its own here.
pub(super) fn has_own_form(composite: &Composite, operands: usize) -> bool {
    RowNorm::of(composite, operands).is_some() || AdamUpdate::of(composite).is_some()
}

/// Rewrites a node that has another form on an engine; whether it did.
pub(super) fn rewrite(n: &mut Narrower, node: &Node) -> bool {
    if let Op::Call(callee) = node.op {
        let Some(composite) = &n.module.function(callee).composite else { return false };
        if let Some(form) = RowNorm::of(composite, node.operands.len()) {
            return norm(n, node, form);
        }
        return AdamUpdate::of(composite).is_some_and(|rule| adam::rewrite(n, node, rule));
    }
    if treatment(n.old, node, &n.fixed, n.policy) != Treatment::Computes(Compute::F16) {
        return false;
    }
    match &node.op {
        Op::Reduce { monoid: Monoid::Sum, axes, .. } => sum(n, node, axes),
        Op::Cumulative { monoid: Monoid::Sum, axis, reverse, exclusive } => {
            running_sum(n, node, *axis, *reverse, *exclusive)
        }
        Op::Binary(Binary::Div) => quotient(n, node),
        Op::Binary(Binary::Add | Binary::Maximum) => guard(n, node),
        _ => false,
    }
}

/// Σ x as a contraction with ones, or with 2⁻ᵏ where only a quotient reads it.
fn sum(n: &mut Narrower, node: &Node, axes: &[usize]) -> bool {
    let old = node.results[0];
    let count: usize = axes.iter().map(|&a| n.old.ty(node.operands[0]).shape[a]).product();
    let shift = if is_only_divided(n, old) { halvings(count) } else { 0 };
    let x = n.operands(node, DType::F16)[0];
    let total = weighted_sum(n, node, x, axes, 2f64.powi(-shift));
    n.out.map_value(old, total);
    if shift > 0 {
        n.shifted.insert(old, shift);
    }
    true
}

/// By how many halvings a sum of so many elements becomes no larger than they are; by no more than the smallest normal f16
/// stands for.
fn halvings(count: usize) -> i32 {
    (count.max(1).next_power_of_two().ilog2() as i32).min(14)
}

fn is_only_divided(n: &Narrower, sum: ValueId) -> bool {
    let divides =
        |node: &Node| node.op == Op::Binary(Binary::Div) && node.operands[0] == sum && node.operands[1] != sum;
    let computed = |node: &Node| treatment(n.old, node, &n.fixed, n.policy) == Treatment::Computes(Compute::F16);
    n.uses[sum.index()] == 1 && n.old.nodes.iter().any(|node| divides(node) && computed(node))
}

/// weight · Σ x over axes, with a wide sum.
fn weighted_sum(n: &mut Narrower, node: &Node, x: ValueId, axes: &[usize], weight: f64) -> ValueId {
    let ty = n.out.function.ty(x).clone();
    let dims: Vec<usize> = axes.iter().map(|&a| ty.shape[a]).collect();
    let weights = n.splat(node, ty.with_shape(dims), weight);
    n.emit(node, contraction(vec![], axes.to_vec(), (0..axes.len()).collect()), vec![x, weights])
}

/// A contraction of f16 with equal batch axes on both sides.
fn contraction(batch: Vec<usize>, lhs_contract: Vec<usize>, rhs_contract: Vec<usize>) -> Op {
    Op::DotGeneral(DotGeneral {
        lhs_batch: batch.clone(),
        rhs_batch: batch,
        lhs_contract,
        rhs_contract,
        accumulator: DType::F32,
        result: DType::F16,
        precision: Default::default(),
    })
}

/// A quotient whose dividend is scaled: the divisor is scaled as well.
fn quotient(n: &mut Narrower, node: &Node) -> bool {
    let Some(shift) = n.shifted.get(&node.operands[0]).copied() else { return false };
    let factor = 2f64.powi(-shift);
    let sum = n.out.value(node.operands[0]);
    let ty = n.out.function.ty(sum).clone();
    let divisor = match n.old.splat(node.operands[1]) {
        Some(count) => n.splat(node, ty, count * factor),
        None => {
            let divisor = n.read(node, node.operands[1], DType::F16);
            let factor = n.splat(node, ty, factor);
            n.emit(node, Op::Binary(Binary::Mul), vec![divisor, factor])
        }
    };
    n.replace(node, node.op.clone(), vec![sum, divisor]);
    true
}

/// A sum with a number that guards a division.
fn guard(n: &mut Narrower, node: &Node) -> bool {
    let tiny = |v: &ValueId| n.old.splat(*v).filter(|c| *c > 0.0 && *c < SMALLEST);
    let Some(at) = node.operands.iter().position(|v| tiny(v).is_some()) else { return false };
    let mut operands = n.operands(node, DType::F16);
    let ty = n.out.function.ty(operands[at]).clone();
    operands[at] = n.splat(node, ty, SMALLEST);
    n.replace(node, node.op.clone(), operands);
    true
}

/// A running sum as a contraction with a triangle of ones.
fn running_sum(n: &mut Narrower, node: &Node, axis: usize, reverse: bool, exclusive: bool) -> bool {
    let x = n.operands(node, DType::F16)[0];
    let ty = n.out.function.ty(x).clone();
    let (rank, size) = (ty.shape.rank(), ty.shape[axis]);
    if size > LONGEST_TRIANGLE {
        return false;
    }
    let counts = |from: usize, to: usize| match (reverse, exclusive) {
        (false, false) => from <= to,
        (false, true) => from < to,
        (true, false) => from >= to,
        (true, true) => from > to,
    };
    let entries: Vec<f64> = (0..size * size).map(|i| f64::from(u8::from(counts(i / size, i % size)))).collect();
    let triangle = Literal::from_f64(ty.with_shape([size, size]), &entries);
    let triangle = n.emit(node, Op::Constant(triangle), vec![]);
    let sums = n.emit(node, contraction(vec![], vec![axis], vec![0]), vec![x, triangle]);
    // The summed axis came out last.
    let back = (0..rank).map(|a| match a.cmp(&axis) {
        std::cmp::Ordering::Less => a,
        std::cmp::Ordering::Equal => rank - 1,
        std::cmp::Ordering::Greater => a - 1,
    });
    n.replace(node, Op::Transpose(back.collect()), vec![sums]);
    true
}

/// A norm of rows with its results for the gradient, where it computes in f16.
fn norm(n: &mut Narrower, node: &Node, form: RowNorm) -> bool {
    let compute = n.policy.compute(Class::Reduction, &node.scope);
    if compute != Compute::F16 || !n.is_f32(node.operands[0]) {
        return false;
    }
    let mut operands = n.operands(node, DType::F16);
    // Weights may be of a dtype of their own.
    for value in &mut operands {
        if n.out.function.ty(*value).dtype != DType::F16 {
            *value = n.emit(node, Op::Cast(DType::F16), vec![*value]);
        }
    }
    let ty = n.out.function.ty(operands[0]).clone();
    let mut rows = Rows { n, node, ty };
    let mean = form.centered.then(|| rows.mean(operands[0]));
    let centered = mean.map_or(operands[0], |mean| rows.with(Binary::Sub, operands[0], mean));
    let (mut y, inverse) = rows.normal(centered, form.epsilon);
    if form.weight {
        y = rows.with_channels(Binary::Mul, y, operands[1]);
    }
    if form.bias {
        y = rows.with_channels(Binary::Add, y, operands[1 + usize::from(form.weight)]);
    }
    let statistics: Vec<ValueId> = mean.into_iter().chain([inverse]).map(|s| rows.kept(s)).collect();
    node.results.iter().zip([y].into_iter().chain(statistics)).for_each(|(&old, new)| n.out.map_value(old, new));
    true
}

/// Builds what works on the rows of a tensor.
struct Rows<'n, 'a> {
    n: &'n mut Narrower<'a>,
    node: &'n Node,
    /// The type of the tensor.
    ty: Type,
}

impl Rows<'_, '_> {
    fn last(&self) -> usize {
        self.ty.shape.rank() - 1
    }

    fn row_type(&self) -> Type {
        self.ty.with_shape(&self.ty.shape[..self.last()])
    }

    fn emit(&mut self, op: Op, operands: Vec<ValueId>) -> ValueId {
        self.n.emit(self.node, op, operands)
    }

    /// A number for each row.
    fn number(&mut self, value: f64) -> ValueId {
        self.n.splat(self.node, self.row_type(), value)
    }

    /// x with what each row has of its own.
    fn with(&mut self, op: Binary, x: ValueId, row: ValueId) -> ValueId {
        let shape = self.ty.shape.clone();
        let row = self.emit(Op::Broadcast { shape, axes: (0..self.last()).collect() }, vec![row]);
        self.emit(Op::Binary(op), vec![x, row])
    }

    /// x with what each channel has of its own.
    fn with_channels(&mut self, op: Binary, x: ValueId, channels: ValueId) -> ValueId {
        let shape = self.ty.shape.clone();
        let channels = self.emit(Op::Broadcast { shape, axes: vec![self.last()] }, vec![channels]);
        self.emit(Op::Binary(op), vec![x, channels])
    }

    fn mean(&mut self, x: ValueId) -> ValueId {
        let count = self.ty.shape[self.last()].max(1);
        let factor = 2f64.powi(-halvings(count));
        let sum = weighted_sum(self.n, self.node, x, &[self.last()], factor);
        let count = self.number(count as f64 * factor);
        self.emit(Op::Binary(Binary::Div), vec![sum, count])
    }

    /// x / √(mean x² + ε), and for each row 1 / √(mean x² + ε).
    fn normal(&mut self, x: ValueId, epsilon: f64) -> (ValueId, ValueId) {
        let last = self.last();
        let root = epsilon.sqrt().max(SMALLEST);
        let magnitude = self.emit(Op::Unary(Unary::Abs), vec![x]);
        let largest = Op::Reduce { monoid: Monoid::Max, axes: vec![last], accumulator: DType::F32 };
        let largest = self.emit(largest, vec![magnitude]);
        let root = self.number(root);
        let scale = self.emit(Op::Binary(Binary::Maximum), vec![largest, root]);
        let scaled = self.with(Binary::Div, x, scale);
        let squares = self.emit(contraction((0..last).collect(), vec![last], vec![last]), vec![scaled, scaled]);
        let count = self.number(self.ty.shape[last].max(1) as f64);
        let mean = self.emit(Op::Binary(Binary::Div), vec![squares, count]);
        let epsilon = self.emit(Op::Binary(Binary::Div), vec![root, scale]);
        let epsilon = self.emit(Op::Binary(Binary::Mul), vec![epsilon, epsilon]);
        let total = self.emit(Op::Binary(Binary::Add), vec![mean, epsilon]);
        let deviation = self.emit(Op::Unary(Unary::Sqrt), vec![total]);
        let normal = self.with(Binary::Div, scaled, deviation);
        let whole = self.emit(Op::Binary(Binary::Mul), vec![scale, deviation]);
        (normal, self.emit(Op::Unary(Unary::Reciprocal), vec![whole]))
    }

    /// A statistic with the last axis kept.
    fn kept(&mut self, row: ValueId) -> ValueId {
        let dims: Vec<usize> = self.ty.shape[..self.last()].iter().copied().chain([1]).collect();
        self.emit(Op::Reshape(dims.into()), vec![row])
    }
}
