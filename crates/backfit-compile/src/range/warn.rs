//! What a chip makes of the values of a program, in words, with the user's line.

use super::analyse::Bounds;
use super::chip::Chip;
use super::observe::{Observations, Observed};
use crate::precision::class::is_backward;
use backfit_ir::op::{Binary, Monoid, Unary};
use backfit_ir::{DType, FuncId, Function, Module, Node, Op, Place, Problem, ValueId};
use std::collections::HashSet;

/// A share of elements that is worth a warning.
const SHARE: f64 = 0.01;
/// Bits of a significand that are to be left after a difference.
const BITS_LEFT: u32 = 3;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A value is larger than any that the chip stores.
    Overflow,
    /// The result of a contraction is larger than those that the chip gives.
    ProductCeiling,
    /// Gradients are too small to be stored.
    GradientUnderflow,
    /// Integers are added beyond where all of them can be told apart.
    InexactSum,
    /// Differences of nearly equal numbers.
    Cancellation,
}

/// Something that may go wrong, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// What.
    pub kind: Kind,
    /// In words, at the user's line.
    pub problem: Problem,
}

/// What may go wrong on a chip. Without observations it is what the bounds allow; with some, it is what was seen. Gradient
/// underflow and cancellation only show in observations. Of several nodes with one line and kind, the first is told.
pub fn warnings(module: &Module, bounds: &Bounds, observations: Option<&Observations>, chip: &Chip) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut told = HashSet::new();
    for (index, f) in module.functions.iter().enumerate() {
        let id = FuncId(index as u32);
        let integral = integral_values(f);
        for node in &f.nodes {
            let look = Look { f, id, node, bounds, observations, chip, integral: &integral };
            for (kind, what, help) in look.all() {
                if told.insert((kind, node.loc.clone())) {
                    let mut problem = Problem::new(what).at(Place::Source(node.loc.clone())).help(help);
                    if !node.scope.is_empty() {
                        problem = problem.because(format!("'{}' stands in '{}'", node.op.name(), node.scope));
                    }
                    found.push(Warning { kind, problem });
                }
            }
        }
    }
    found
}

/// One node, looked at.
struct Look<'a> {
    f: &'a Function,
    id: FuncId,
    node: &'a Node,
    bounds: &'a Bounds,
    observations: Option<&'a Observations>,
    chip: &'a Chip,
    integral: &'a [bool],
}

type Finding = (Kind, String, &'static str);

impl Look<'_> {
    fn all(&self) -> Vec<Finding> {
        let Some(&value) = self.node.results.first() else { return vec![] };
        if !self.f.ty(value).dtype.is_float() || matches!(self.node.op, Op::Constant(_) | Op::Call(_) | Op::Scan(_)) {
            return vec![];
        }
        let findings =
            [self.too_large(value), self.inexact_sum(value), self.underflow(value), self.cancellation(value)];
        findings.into_iter().flatten().collect()
    }

    fn observed(&self, value: ValueId) -> Option<&Observed> {
        self.observations.and_then(|o| o.of(self.id, value))
    }

    /// The largest magnitude that was seen or, without observations, that is possible.
    fn magnitude(&self, value: ValueId) -> Option<f64> {
        match self.observations {
            Some(_) => self.observed(value).map(Observed::magnitude),
            None => self.bounds.of(self.id, value).map(|b| b.magnitude()),
        }
    }

    fn verb(&self) -> &'static str {
        if self.observations.is_some() { "reaches" } else { "may reach" }
    }

    /// Told where it arises: where the operands are not too large themselves.
    fn too_large(&self, value: ValueId) -> Option<Finding> {
        let contraction = matches!(self.node.op, Op::DotGeneral(_) | Op::Convolution(_));
        let limit = if contraction { self.chip.product_ceiling } else { self.chip.max_finite };
        let magnitude = self.magnitude(value).filter(|m| *m > limit)?;
        let arises = |v: &ValueId| self.magnitude(*v).is_none_or(|m| m <= self.chip.max_finite);
        if !self.node.operands.iter().all(arises) {
            return None;
        }
        let (name, verb, chip) = (self.node.op.name(), self.verb(), &self.chip.name);
        let what = format!("{name} {verb} {magnitude:.3e}; {chip} holds at most {limit:.4e}");
        Some(match contraction && magnitude <= self.chip.max_finite {
            true => (Kind::ProductCeiling, what, "scale an operand down, and the result up afterwards"),
            false => (Kind::Overflow, what, "scale the operands, or keep this scope in f32"),
        })
    }

    fn inexact_sum(&self, value: ValueId) -> Option<Finding> {
        let limit = match &self.node.op {
            Op::DotGeneral(_) | Op::Convolution(_) => self.chip.exact_accumulator,
            Op::Binary(Binary::Add | Binary::Sub)
            | Op::Reduce { monoid: Monoid::Sum, .. }
            | Op::Cumulative { monoid: Monoid::Sum, .. }
            | Op::ReduceWindow { monoid: Monoid::Sum, .. } => self.chip.exact_sum,
            _ => return None,
        };
        let magnitude =
            self.magnitude(value).filter(|m| *m > limit && m.is_finite() && self.integral[value.index()])?;
        let (name, verb, chip) = (self.node.op.name(), self.verb(), &self.chip.name);
        let what = format!("{name} of integers {verb} {magnitude}; {chip} adds integers exactly up to {limit}");
        Some((Kind::InexactSum, what, "count in an integer dtype"))
    }

    fn underflow(&self, value: ValueId) -> Option<Finding> {
        let observed = self.observed(value).filter(|_| is_backward(self.node))?;
        let share = observed.share_below(self.chip.smallest);
        (share > SHARE).then(|| {
            let (name, percent, chip) = (self.node.op.name(), share * 100.0, &self.chip.name);
            let what = format!(
                "{percent:.0} % of a gradient vanish: {name} is below {:.1e} there, {chip}'s smallest number",
                self.chip.smallest
            );
            (Kind::GradientUnderflow, what, "scale the loss")
        })
    }

    fn cancellation(&self, value: ValueId) -> Option<Finding> {
        let observed = self.observed(value)?;
        let bits = self.chip.significand.saturating_sub(BITS_LEFT);
        let share = observed.share_cancelled(bits);
        (share > SHARE).then(|| {
            let (name, percent, chip) = (self.node.op.name(), share * 100.0, &self.chip.name);
            let what = format!(
                "{name} cancels {bits} and more of {chip}'s {} bits in {percent:.0} % of the elements",
                self.chip.significand
            );
            (Kind::Cancellation, what, "keep this scope in f32, or subtract earlier")
        })
    }
}

/// Which values are integers whatever the inputs: casts of integers and counts, and what is made of them by sums, products and choice.
fn integral_values(f: &Function) -> Vec<bool> {
    let mut integral: Vec<bool> = f.values.iter().map(|v| !v.ty.dtype.is_float()).collect();
    for node in &f.nodes {
        let all = || node.operands.iter().all(|v| integral[v.index()]);
        let whole = match &node.op {
            Op::Constant(literal) => literal.ty().dtype.is_float() && literal.to_f64().iter().all(|v| v.fract() == 0.0),
            Op::Iota { .. } => true,
            Op::Unary(Unary::Neg | Unary::Abs | Unary::Sign | Unary::Floor | Unary::Ceil | Unary::RoundEven) => true,
            Op::Unary(_)
            | Op::Binary(Binary::Div | Binary::Pow | Binary::Atan2)
            | Op::Bitcast(_)
            | Op::ReducePrecision { .. } => false,
            Op::Call(_) | Op::Scan(_) => false,
            _ => all(),
        };
        let whole = whole && (!matches!(node.op, Op::Unary(Unary::Neg | Unary::Abs)) || all());
        for &result in &node.results {
            integral[result.index()] |= whole && f.ty(result).dtype != DType::Bool;
        }
    }
    integral
}
