//! Making a failing case small.

use super::{Case, noisy::Noisy};
use crate::compare::last;
use backfit_ir::interp::{Array, Options};
use backfit_ir::rewrite::{Rewriter, canonical_module, dead_code, inline_calls, live_functions};
use backfit_ir::{Function, Literal, Module, Role, ValueId};

/// The smallest case found that still fails: fewer results, nodes turned into inputs that have their values, calls
/// replaced by what they do.
pub fn shrink(case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    let mut best = case;
    loop {
        let before = size(&best);
        if let Some(flat) = inlined(&best).filter(&fails) {
            best = flat;
        }
        for value in main(&best).nodes.iter().flat_map(|n| n.results.clone()).collect::<Vec<_>>() {
            if let Some(alone) = Some(with_result(&best, value)).filter(|c| size(c) < size(&best) && fails(c)) {
                best = alone;
                break;
            }
        }
        let mut chunk = main(&best).nodes.len().max(1);
        while chunk > 0 {
            best = pass(best, chunk, &fails);
            chunk /= 2;
        }
        let mut at = 0;
        while at < main(&best).results.len() && main(&best).results.len() > 1 {
            match Some(without_result(&best, at)).filter(&fails) {
                Some(smaller) => best = smaller,
                None => at += 1,
            }
        }
        if size(&best) >= before {
            return best;
        }
    }
}

fn main(case: &Case) -> &Function {
    case.module.function(last(&case.module))
}

fn size(case: &Case) -> usize {
    let nodes: usize = case.module.functions.iter().map(|f| f.nodes.len()).sum();
    nodes * 100 + main(case).results.len() * 10 + case.inputs.len()
}

/// Tries to turn every run of so many nodes into inputs.
fn pass(mut best: Case, chunk: usize, fails: &impl Fn(&Case) -> bool) -> Case {
    let mut start = 0;
    while start < main(&best).nodes.len() {
        let end = (start + chunk).min(main(&best).nodes.len());
        let smaller = cut(&best, start, end);
        if size(&smaller) < size(&best) && fails(&smaller) {
            best = smaller;
        } else {
            start = end;
        }
    }
    best
}

fn with_main(case: &Case, f: Function) -> Module {
    let mut module = case.module.clone();
    *module.functions.last_mut().expect("there is a function") = f;
    let (module, _) = live_functions(&module, &[last(&module)]);
    canonical_module(&module)
}

/// The case without dead nodes and unused inputs.
fn tidy(case: &Case, f: Function, mut inputs: Vec<Literal>) -> Case {
    let f = dead_code(&f);
    let used = f.use_counts();
    let mut rewriter = Rewriter::bare(&f);
    let mut kept = Vec::new();
    let mut renumbered = vec![None; f.params.len()];
    for (index, param) in f.params.iter().enumerate() {
        let aliased = f.results.iter().any(|r| r.alias == Some(index));
        kept.push(aliased || used[param.value.index()] > 0);
        if kept[index] {
            renumbered[index] = Some(rewriter.function.params.len());
            let (ty, loc) = (f.ty(param.value).clone(), param.loc.clone());
            let value = rewriter.function.add_param(&*param.name, ty, param.role, param.init.clone(), loc);
            rewriter.map_value(param.value, value);
        }
    }
    f.nodes.iter().for_each(|node| drop(rewriter.copy_node(node)));
    let mut smaller = rewriter.finish();
    for result in &mut smaller.results {
        result.alias = result.alias.and_then(|a| renumbered[a]);
    }
    let mut keep = kept.iter();
    inputs.retain(|_| keep.next().is_none_or(|&k| k));
    Case { module: with_main(case, smaller), inputs, flush: case.flush }
}

/// The case with a value as its only result.
fn with_result(case: &Case, value: ValueId) -> Case {
    let mut f = main(case).clone();
    f.results.clear();
    f.add_result("y", value, None);
    tidy(case, f, case.inputs.clone())
}

fn without_result(case: &Case, at: usize) -> Case {
    let mut f = main(case).clone();
    f.results.remove(at);
    tidy(case, f, case.inputs.clone())
}

fn inlined(case: &Case) -> Option<Case> {
    let calls = main(case).nodes.iter().any(|n| n.op.name() == "call");
    calls.then(|| tidy(case, inline_calls(&case.module, last(&case.module), |_| true), case.inputs.clone()))
}

/// The case with the results of some nodes as inputs.
fn cut(case: &Case, start: usize, end: usize) -> Case {
    let f = main(case);
    let arguments: Vec<Array> = case.inputs.iter().map(Array::from_literal).collect();
    let options = Options { double: false, flush_subnormals: case.flush };
    let values = Noisy::new(&case.module, options, None).values(last(&case.module), &arguments);
    let mut rewriter = Rewriter::new(f);
    let mut inputs = case.inputs.clone();
    for (index, node) in f.nodes.iter().enumerate() {
        if !(start..end).contains(&index) {
            rewriter.copy_node(node);
            continue;
        }
        for &result in &node.results {
            let name = (0..).map(|i| format!("cut{i}")).find(|n| rewriter.function.param_index(n).is_none());
            let name = name.unwrap_or_default();
            let value = rewriter.function.add_param(name, f.ty(result).clone(), Role::Input, None, node.loc.clone());
            rewriter.map_value(result, value);
            inputs.push(
                values[result.index()].as_ref().map_or_else(|| Literal::zeros(f.ty(result).clone()), Array::to_literal),
            );
        }
    }
    tidy(case, rewriter.finish(), inputs)
}
