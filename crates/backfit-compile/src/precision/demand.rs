//! What a policy does with a node, and in which width the readers of a value want it.

use super::class::Class;
use super::policy::{Compute, Policy};
use backfit_ir::op::{Monoid, ScatterMode, Unary};
use backfit_ir::rewrite::callee;
use backfit_ir::{DType, FuncId, Function, Module, Node, Op, ValueId};

/// What is done with a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Treatment {
    /// It has the declared dtypes.
    Declared,
    /// It moves, picks or tests elements, in whatever dtype they are stored.
    Moves,
    /// It computes.
    Computes(Compute),
    /// It is a contraction.
    Contracts(Compute),
}

/// Who reads a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nobody cares.
    None,
    /// All readers cast it to this dtype.
    Narrow(DType),
    /// Some reader takes all of it.
    Wide,
}

impl Demand {
    fn join(self, other: Demand) -> Demand {
        match (self, other) {
            (Demand::None, d) | (d, Demand::None) => d,
            (a, b) if a == b => a,
            _ => Demand::Wide,
        }
    }
}

/// Which values are made of constants alone: tables, masks, numbers. They are what they are declared to be.
pub fn fixed_values(f: &Function) -> Vec<bool> {
    let mut fixed = vec![false; f.values.len()];
    for node in &f.nodes {
        let made_of_constants = match node.op {
            Op::RngBits(_) | Op::Call(_) | Op::Scan(_) | Op::Barrier => false,
            _ => node.operands.iter().all(|v| fixed[v.index()]),
        };
        node.results.iter().for_each(|v| fixed[v.index()] = made_of_constants);
    }
    fixed
}

/// What a node computes in that the engine has no form for: of updates, what is done to gradients and weights is f32.
pub fn computes_in(node: &Node, policy: &Policy) -> Compute {
    match Class::of(node) {
        Class::Update => Compute::F32,
        class => policy.compute(class, &node.scope),
    }
}

/// What the policy does with a node of a function.
pub fn treatment(f: &Function, node: &Node, fixed: &[bool], policy: &Policy) -> Treatment {
    let all = || node.operands.iter().chain(&node.results).map(|&v| f.ty(v).dtype);
    let other_floats = all().any(|d| d.is_float() && d != DType::F32);
    // An engine computes its own tables; elsewhere what is made of constants is as exact as it is declared.
    let as_made = policy.engine().is_none() && node.results.iter().all(|v| fixed[v.index()]);
    if other_floats || !all().any(|d| d == DType::F32) || as_made {
        return Treatment::Declared;
    }
    let compute = computes_in(node, policy);
    match &node.op {
        Op::Constant(_)
        | Op::Iota { .. }
        | Op::RngBits(_)
        | Op::Bitcast(_)
        | Op::ReducePrecision { .. }
        | Op::Call(_)
        | Op::Scan(_) => Treatment::Declared,
        // Numbers that become floats. Elsewhere their readers round them.
        Op::Cast(DType::F32) if policy.engine().is_some() => Treatment::Computes(compute),
        Op::Cast(_) => Treatment::Declared,
        Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Broadcast { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Concatenate { .. }
        | Op::Reverse(_)
        | Op::DynamicSlice { .. }
        | Op::DynamicUpdateSlice
        | Op::Gather { .. }
        | Op::Scatter { mode: ScatterMode::Set, .. }
        | Op::Sort { .. }
        | Op::ArgReduce { .. }
        | Op::Reduce { monoid: Monoid::Max | Monoid::Min, .. }
        | Op::Cumulative { monoid: Monoid::Max | Monoid::Min, .. }
        | Op::ReduceWindow { monoid: Monoid::Max | Monoid::Min, .. }
        | Op::Compare(_)
        | Op::Unary(Unary::IsFinite)
        | Op::Barrier => Treatment::Moves,
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Select
        | Op::Clamp
        | Op::Reduce { .. }
        | Op::Cumulative { .. }
        | Op::Scatter { .. }
        | Op::ReduceWindow { .. }
        | Op::SelectAndScatter { .. } => Treatment::Computes(compute),
        Op::DotGeneral(_) | Op::Convolution(_) => Treatment::Contracts(compute),
    }
}

/// For every value in which width its readers want it. Contractions round their sums once, to what all readers want.
/// `results` tells of the function's results, `params` of the parameters of functions that stand before it.
fn demands(f: &Function, fixed: &[bool], policy: &Policy, results: &[Demand], params: &[Vec<Demand>]) -> Vec<Demand> {
    let mut demands = vec![Demand::None; f.values.len()];
    // Truth values and integers are never narrowed, so what they are made from is not either on their account.
    let ask = |demands: &mut Vec<Demand>, value: ValueId, demand: Demand| {
        if f.ty(value).dtype == DType::F32 {
            demands[value.index()] = demands[value.index()].join(demand);
        }
    };
    f.results.iter().zip(results).for_each(|(r, demand)| ask(&mut demands, r.value, *demand));
    for node in f.nodes.iter().rev() {
        if let Some(callee) = callee(&node.op) {
            let wanted = params[callee.index()].iter().enumerate();
            let wanted = wanted.map(|(i, d)| if i < carried(&node.op) { Demand::Wide } else { *d });
            node.operands.iter().zip(wanted).for_each(|(&v, demand)| ask(&mut demands, v, demand));
            continue;
        }
        let of_operands = match treatment(f, node, fixed, policy) {
            Treatment::Declared => Demand::Wide,
            Treatment::Moves => node.results.iter().map(|v| demands[v.index()]).fold(Demand::None, Demand::join),
            Treatment::Computes(c) | Treatment::Contracts(c) if c.dtype() == DType::F32 => Demand::Wide,
            Treatment::Computes(c) | Treatment::Contracts(c) => Demand::Narrow(c.dtype()),
        };
        node.operands.iter().for_each(|&v| ask(&mut demands, v, of_operands));
    }
    demands
}

/// How many leading operands and results of a node keep their dtype because a loop carries them.
fn carried(op: &Op) -> usize {
    if let Op::Scan(scan) = op { scan.carries } else { 0 }
}

/// In which width the values of a function are wanted.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// Every value.
    pub values: Vec<Demand>,
    /// The results, by callers.
    pub results: Vec<Demand>,
}

/// The demands of every function of a module whose entry points are `roots`. What composites that stay whole take and give
/// is wide, and so is what loops carry.
pub fn of_module(module: &Module, roots: &[FuncId], policy: &Policy) -> Vec<Demands> {
    let fixed: Vec<Vec<bool>> = module.functions.iter().map(fixed_values).collect();
    let mut params: Vec<Vec<Demand>> = Vec::new();
    for (f, fixed) in module.functions.iter().zip(&fixed) {
        let wide = vec![Demand::Wide; f.results.len()];
        let own = match f.composite {
            Some(_) => vec![Demand::Wide; f.params.len()],
            None => {
                let demands = demands(f, fixed, policy, &wide, &params);
                f.params.iter().map(|p| demands[p.value.index()]).collect()
            }
        };
        params.push(own);
    }
    let mut results: Vec<Vec<Demand>> = module.functions.iter().map(|f| vec![Demand::None; f.results.len()]).collect();
    roots.iter().for_each(|root| results[root.index()].fill(Demand::Wide));
    let mut all = vec![Demands::default(); module.functions.len()];
    for (index, f) in module.functions.iter().enumerate().rev() {
        let values = demands(f, &fixed[index], policy, &results[index], &params);
        for node in &f.nodes {
            let Some(callee) = callee(&node.op) else { continue };
            for (i, &value) in node.results.iter().enumerate() {
                let demand = if i < carried(&node.op) { Demand::Wide } else { values[value.index()] };
                results[callee.index()][i] = results[callee.index()][i].join(demand);
            }
        }
        all[index] = Demands { values, results: results[index].clone() };
    }
    all
}
