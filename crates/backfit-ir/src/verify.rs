//! The verifier: what must hold of every module, and what of a module at a [`Stage`] of the pipeline.

mod function;
mod stage;

pub use stage::{LEGALITY, Legality, Stage};

use crate::error::{Error, Place, Problem, Result};
use crate::graph::{FuncId, Function, Module, Node};
use crate::op::Op;
use crate::rewrite::{callee, live_nodes};
use crate::shape::{MAX_RANK, Type};
use std::collections::HashSet;

/// Checks a module, where the target claims no composite.
///
/// ```
/// use backfit_ir::{DType, Graph, Stage, ValueId, verify};
/// let g = Graph::new();
/// g.result("y", &g.input("x", DType::F32, [4]).exp());
/// let mut module = g.finish().unwrap();
/// verify(&module, Stage::Planned).unwrap();
///
/// module.functions[0].nodes[0].operands[0] = ValueId(9);
/// assert!(verify(&module, Stage::Built).unwrap_err().to_string().contains("%9"));
/// ```
///
/// # Errors
/// Everything that is wrong.
pub fn verify(module: &Module, stage: Stage) -> Result<()> {
    verify_claimed(module, stage, |_| false)
}

/// Checks a module of which the target claims those composites whole for which `claimed` says so.
///
/// # Errors
/// Everything that is wrong.
pub fn verify_claimed(module: &Module, stage: Stage, claimed: impl Fn(&Function) -> bool) -> Result<()> {
    let mut problems = Vec::new();
    let mut names = HashSet::new();
    let mut sound = Vec::with_capacity(module.functions.len());
    for function in &module.functions {
        let before = problems.len();
        if !names.insert(function.name.as_str()) {
            problems.push(Problem::new(format!("there are two functions named '{}'", function.name)));
        }
        function::check(module, function, &sound, &mut problems);
        sound.push(problems.len() == before);
    }
    if problems.is_empty() {
        check_stage(module, stage, &claimed, &mut problems);
    }
    Error::from_problems(problems).map_or(Ok(()), Err)
}

/// The result types of an operator within a module, or what is wrong with its operands.
/// Unlike the operators' own rules it takes attributes of any size and knows calls and scans.
///
/// # Errors
/// What is wrong, in words.
pub fn infer(module: &Module, op: &Op, operands: &[Type]) -> Result<Vec<Type>, String> {
    let results = match op {
        Op::Call(function) => crate::ops::call::infer(module, *function, operands)?,
        Op::Scan(scan) => {
            if scan.carries.checked_add(scan.constants).is_none_or(|whole| whole > operands.len()) {
                let (carries, constants) = (scan.carries, scan.constants);
                return Err(format!("{} operands, but {carries} carries and {constants} constants", operands.len()));
            }
            crate::ops::scan::infer(module, scan, operands)?
        }
        op => (op.primitive().infer)(op, operands)?,
    };
    results.iter().find_map(type_flaw).map_or(Ok(results), Err)
}

/// What is wrong with a type, whatever has it.
pub fn type_flaw(ty: &Type) -> Option<String> {
    if ty.shape.rank() > MAX_RANK {
        return Some(format!("{ty} has rank {}; at most {MAX_RANK} is supported", ty.shape.rank()));
    }
    // Empty axes do not excuse the others: strides are products of those.
    let filled: Vec<usize> = ty.shape.iter().map(|&d| d.max(1)).collect();
    ty.with_shape(filled).shape.checked_elements().is_none().then(|| format!("{ty} is too large to address"))
}

/// A problem of a node: `add %7 of 'main': …`, at the user's line.
fn node_problem(function: &Function, node: &Node, what: impl std::fmt::Display) -> Problem {
    let result = node.results.first().map_or(String::new(), |v| format!(" {v}"));
    let what = format!("{}{result} of '{}': {what}", node.op.name(), function.name);
    Problem::new(what).at(Place::Source(node.loc.clone()))
}

/// Which functions become programs: those that entry points reach without crossing a claim. Entry points are
/// functions that nothing calls and that are no composite's body; so passes prune what they leave unreached.
fn compiled(module: &Module, claimed: &impl Fn(&Function) -> bool) -> Vec<bool> {
    let mut called = vec![false; module.functions.len()];
    let callees = |f: &Function| f.nodes.iter().filter_map(|n| callee(&n.op)).collect::<Vec<FuncId>>();
    module.functions.iter().flat_map(callees).for_each(|id| called[id.index()] = true);
    let entries = module.functions.iter().zip(called);
    let mut compiled: Vec<bool> = entries.map(|(f, called)| !called && f.composite.is_none()).collect();
    for index in (0..compiled.len()).rev() {
        if compiled[index] {
            for id in callees(&module.functions[index]) {
                compiled[id.index()] |= !claimed(module.function(id));
            }
        }
    }
    compiled
}

fn check_stage(module: &Module, stage: Stage, claimed: &impl Fn(&Function) -> bool, problems: &mut Vec<Problem>) {
    let legality = stage.legality();
    let compiled = compiled(module, claimed);
    for function in module.functions.iter().zip(compiled).filter_map(|(f, compiled)| compiled.then_some(f)) {
        let live = if legality.dead_nodes { vec![true; function.nodes.len()] } else { live_nodes(function) };
        for (node, live) in function.nodes.iter().zip(live) {
            if !live {
                problems.push(node_problem(function, node, format!("no result needs it, yet the module is {stage}")));
            }
            let callee = callee(&node.op).map(|id| module.function(id));
            let Some((callee, composite)) = callee.and_then(|f| Some((f, f.composite.as_ref()?))) else { continue };
            if !legality.unclaimed_composites && !claimed(callee) {
                let what = format!("'{}' is not claimed, yet the module is {stage}", composite.name);
                problems.push(node_problem(function, node, what).help("inline it, or let the target claim it"));
            }
        }
    }
}
