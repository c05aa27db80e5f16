//! Rewrites a function into the dtypes of a policy.
//!
//! Every old value has a new one, stored in the dtype that its operator computes in. What reads it in another dtype reads
//! a cast, made once for each value and dtype. Parameters and results keep their dtypes.

use super::class::Class;
use super::contraction;
use super::demand::{Demand, Demands, Treatment, computes_in, fixed_values, treatment};
use super::engine;
use super::policy::Policy;
use backfit_ir::graph::FunctionResult;
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{DType, Function, Literal, Module, Node, Op, Type, ValueId};
use std::collections::HashMap;

/// Whether a composite is left as it is, because what it does is computed in f32 everywhere, or the engine has its own form.
pub fn stays_whole(policy: &Policy, f: &Function) -> bool {
    let Some(composite) = &f.composite else { return false };
    let engine = policy.engine().is_some() && engine::has_own_form(composite, f.params.len());
    let wide = |class| class == Class::Update || policy.is_wide(class);
    engine || Class::of_composite(&composite.name).is_some_and(wide)
}

/// The function in the dtypes of the policy, and how many casts that took.
pub(super) fn run(module: &Module, f: &Function, policy: &Policy, demands: Demands) -> (Function, usize) {
    let fixed = fixed_values(f);
    let uses = f.use_counts();
    let out = Rewriter::new(f);
    let mut narrower =
        Narrower { module, old: f, policy, out, fixed, demands, uses, casts: HashMap::new(), shifted: HashMap::new() };
    for node in &f.nodes {
        narrower.node(node);
    }
    let count = narrower.casts.len();
    (narrower.finish(), count)
}

/// A function while it is rewritten.
pub(super) struct Narrower<'a> {
    pub module: &'a Module,
    pub old: &'a Function,
    pub policy: &'a Policy,
    pub out: Rewriter<'a>,
    pub fixed: Vec<bool>,
    pub demands: Demands,
    pub uses: Vec<usize>,
    /// Casts of new values.
    casts: HashMap<(ValueId, DType), ValueId>,
    /// Old sums whose new values are 2⁻ᵏ of what they should be, and k.
    pub shifted: HashMap<ValueId, i32>,
}

impl Narrower<'_> {
    fn node(&mut self, node: &Node) {
        if self.policy.engine().is_some() && engine::rewrite(self, node) {
            return;
        }
        match treatment(self.old, node, &self.fixed, self.policy) {
            Treatment::Declared => self.declared(node),
            Treatment::Moves => self.moved(node),
            Treatment::Computes(compute) => self.computed(node, compute.dtype()),
            Treatment::Contracts(compute) => contraction::rewrite(self, node, compute),
        }
    }

    /// The node in the dtypes that it has.
    fn declared(&mut self, node: &Node) {
        let operands = node.operands.iter().map(|&v| self.read(node, v, self.old.ty(v).dtype)).collect();
        self.out.replace_node(node, node.op.clone(), operands);
    }

    /// The node in the dtype in which its operands are stored, or, where they differ, in that of its class. What all readers
    /// want narrow is cast before it grows; on an engine nothing is moved wide.
    fn moved(&mut self, node: &Node) {
        let elements = |v: &ValueId| self.old.ty(*v).shape.elements();
        let grows = node.results.len() == 1 && elements(&node.results[0]) >= elements(&node.operands[0]);
        let stored = |v: &ValueId| self.out.function.ty(self.out.value(*v)).dtype;
        let computed = node.operands.iter().filter(|v| self.is_f32(**v) && !self.fixed[v.index()]);
        let mut dtypes: Vec<DType> = computed.map(stored).collect();
        dtypes.dedup();
        let each_its_own = matches!(node.op, Op::Barrier | Op::Sort { .. });
        let common = match (&dtypes[..], self.demands.values[node.results[0].index()]) {
            (_, Demand::Narrow(dtype)) if grows => dtype,
            (&[one], _) if self.policy.engine().is_none() => one,
            _ => computes_in(node, self.policy).dtype(),
        };
        let operand = |narrower: &mut Self, v: ValueId| match () {
            () if !narrower.is_f32(v) => narrower.out.value(v),
            () if each_its_own => narrower.out.value(v),
            () => narrower.read(node, v, common),
        };
        let operands = node.operands.iter().map(|&v| operand(self, v)).collect();
        self.replace(node, node.op.clone(), operands);
    }

    /// The node with f32 replaced by `dtype`.
    fn computed(&mut self, node: &Node, dtype: DType) {
        let operands = self.operands(node, dtype);
        let op = match node.op.clone() {
            Op::Reduce { monoid, axes, .. } => Op::Reduce { monoid, axes, accumulator: dtype.accumulator() },
            Op::Cast(DType::F32) => Op::Cast(dtype),
            op => op,
        };
        self.replace(node, op, operands);
    }

    /// The operands, those that are f32 in another dtype.
    pub fn operands(&mut self, node: &Node, dtype: DType) -> Vec<ValueId> {
        let read = |narrower: &mut Self, v| {
            if narrower.is_f32(v) { narrower.read(node, v, dtype) } else { narrower.out.value(v) }
        };
        node.operands.iter().map(|&v| read(self, v)).collect()
    }

    /// Whether an old value is declared f32.
    pub fn is_f32(&self, old: ValueId) -> bool {
        self.old.ty(old).dtype == DType::F32
    }

    /// The new value of an old one in a dtype.
    pub fn read(&mut self, reader: &Node, old: ValueId, dtype: DType) -> ValueId {
        let new = self.out.value(old);
        if self.out.function.ty(new).dtype == dtype {
            return new;
        }
        if let Some(&known) = self.casts.get(&(new, dtype)) {
            return known;
        }
        let made = self.fixed[old.index()].then(|| self.fixed_in(old, dtype)).flatten();
        let made = made.unwrap_or_else(|| self.emit(reader, Op::Cast(dtype), vec![new]));
        self.casts.insert((new, dtype), made);
        made
    }

    /// A constant, or a constant in another shape, in another dtype.
    fn fixed_in(&mut self, old: ValueId, dtype: DType) -> Option<ValueId> {
        let node = self.old.node_of(old)?;
        match &node.op {
            Op::Constant(literal) => {
                let literal = Literal::from_f64(literal.ty().with_dtype(dtype), &literal.to_f64());
                Some(self.emit(node, Op::Constant(literal), vec![]))
            }
            Op::Iota { ty, axis } if self.policy.engine().is_some() => {
                Some(self.emit(node, Op::Iota { ty: ty.with_dtype(dtype), axis: *axis }, vec![]))
            }
            Op::Broadcast { .. } | Op::Reshape(_) => {
                let operand = self.read(node, node.operands[0], dtype);
                Some(self.emit(node, node.op.clone(), vec![operand]))
            }
            _ => None,
        }
    }

    /// Adds a node with one result at the place of another.
    ///
    /// # Panics
    /// Where the operator does not take these operands: a defect of the stage.
    pub fn emit(&mut self, like: &Node, op: Op, operands: Vec<ValueId>) -> ValueId {
        let types = self.out.function.types(&operands);
        let results = (op.primitive().infer)(&op, &types).unwrap_or_else(|why| panic!("{}: {why}", op.name()));
        self.out.add_node(like, op, operands, results)[0]
    }

    /// A number everywhere.
    pub fn splat(&mut self, like: &Node, ty: Type, value: f64) -> ValueId {
        let scalar = self.emit(like, Op::Constant(Literal::scalar(ty.dtype, value)), vec![]);
        if ty.shape.rank() == 0 {
            return scalar;
        }
        self.emit(like, Op::Broadcast { shape: ty.shape, axes: vec![] }, vec![scalar])
    }

    /// Adds a node in the place of an old one, whose results then have other dtypes.
    pub fn replace(&mut self, node: &Node, op: Op, operands: Vec<ValueId>) {
        let types = self.out.function.types(&operands);
        let results = (op.primitive().infer)(&op, &types).unwrap_or_else(|why| panic!("{}: {why}", op.name()));
        let new = self.out.add_node(node, op, operands, results);
        node.results.iter().zip(new).for_each(|(&old, new)| self.out.map_value(old, new));
    }

    /// Results in their declared dtypes; those that all callers narrow are narrow before they are widened.
    fn finish(mut self) -> Function {
        let mut results = Vec::new();
        for (result, demand) in self.old.results.iter().zip(self.demands.results.clone()) {
            let declared = self.old.ty(result.value).dtype;
            let value = match (self.old.nodes.last(), demand) {
                (Some(last), Demand::Narrow(dtype)) if declared == DType::F32 => {
                    let narrow = self.read(last, result.value, dtype);
                    self.emit(last, Op::Cast(DType::F32), vec![narrow])
                }
                (Some(last), _) => self.read(self.old.node_of(result.value).unwrap_or(last), result.value, declared),
                (None, _) => self.out.value(result.value),
            };
            results.push(FunctionResult { value, ..result.clone() });
        }
        self.out.function.results = results;
        self.out.function
    }
}
