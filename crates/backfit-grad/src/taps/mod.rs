//! What a backward function is handed by the forward function and what it computes again.

mod cut;
mod exhaustive;
mod problem;
#[cfg(test)]
mod tests;

use backfit_ir::{Function, Loc, Module, Place, Problem, Taps, ValueId, cost};
use problem::{Choice, Recomputation, Source, Step, Value};

/// What was chosen for one differentiated function; see [`Taps`].
#[derive(Clone, Debug, PartialEq)]
pub struct TapReport {
    /// The function's name.
    pub function: String,
    /// Its policy.
    pub taps: Taps,
    /// What is handed from the forward to the backward pass, without weights.
    pub kept: Vec<Tap>,
    /// Operators that the backward pass runs again.
    pub recomputed: Vec<String>,
    /// Their arithmetic operations for one call, or one step of a scan.
    pub extra_flops: u64,
}

impl TapReport {
    /// Bytes of what is kept for one call, or one step of a scan.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(|tap| tap.bytes).sum()
    }
}

/// A value that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// A parameter's name, or the operator that makes it.
    pub name: String,
    /// The user's line.
    pub loc: Loc,
    /// Its size.
    pub bytes: u64,
}

/// The nodes to run again, in order, so that `required` can be had from what the function's policy keeps.
/// `forward` has nodes up to `nodes` that are the forward pass.
pub(crate) fn choose(
    module: &Module,
    forward: &Function,
    nodes: usize,
    required: &[ValueId],
) -> Result<(Vec<usize>, TapReport), Problem> {
    let recomputation = Recomputation::new(
        values(forward, nodes),
        forward.nodes[..nodes].iter().map(|n| Step {
            operands: n.operands.iter().map(|v| v.index()).collect(),
            flops: cost::node(module, forward, n).flops,
        }),
        required.iter().map(|v| v.index()),
    );
    let choice = match &forward.taps {
        Taps::All => recomputation.follow(|_| true),
        Taps::Inputs => recomputation.follow(|_| false),
        Taps::Named(names) => {
            let leaving = leaving(forward, nodes, names)?;
            recomputation.follow(|v| leaving[v])
        }
        Taps::Budget(bytes) => within(&recomputation, *bytes).map_err(|least| too_small(forward, *bytes, least))?,
    };
    let report = report(forward, &recomputation, &choice);
    Ok((choice.again, report))
}

fn values(forward: &Function, nodes: usize) -> Vec<Value> {
    let mut values: Vec<Value> =
        forward.values.iter().map(|v| Value { bytes: v.ty.bytes() as u64, source: Source::Free }).collect();
    for param in forward.params.iter().filter(|p| !p.role.is_resident()) {
        values[param.value.index()].source = Source::Input;
    }
    for (index, node) in forward.nodes[..nodes].iter().enumerate().filter(|(_, n)| !n.operands.is_empty()) {
        node.results.iter().for_each(|v| values[v.index()].source = Source::Step(index));
    }
    values
}

/// The best choice within a budget, or the fewest bytes that can be kept.
fn within(recomputation: &Recomputation, budget: u64) -> Result<Choice, u64> {
    match exhaustive::best(recomputation, budget) {
        Some(found) => found,
        None => cut::best(recomputation, budget),
    }
}

fn too_small(forward: &Function, budget: u64, least: u64) -> Problem {
    let what = format!(
        "the budget of {budget} bytes per call for what '{}' keeps for its backward pass is too small",
        forward.name
    );
    let help = format!("give it at least {least} bytes per call; a budget for a stack of layers is one for all layers");
    let problem = Problem::new(what).help(help);
    match forward.nodes.first() {
        Some(node) => problem.at(Place::Source(node.loc.clone())),
        None => problem,
    }
}

/// For every value whether it leaves a scope of one of these names.
fn leaving(forward: &Function, nodes: usize, names: &[String]) -> Result<Vec<bool>, Problem> {
    let inside = |scope: &str, name: &str| scope.split('/').any(|part| part == name);
    let forward_nodes = &forward.nodes[..nodes];
    let mut leaving = vec![false; forward.values.len()];
    for name in names {
        let mut defined = vec![false; forward.values.len()];
        let within = |node: &&backfit_ir::Node| inside(&node.scope, name);
        forward_nodes.iter().filter(within).flat_map(|n| &n.results).for_each(|v| defined[v.index()] = true);
        if !defined.contains(&true) {
            let what = format!("'{}' keeps what leaves the scope '{name}', but has no such scope", forward.name);
            let parts = forward_nodes.iter().flat_map(|n| n.scope.split('/')).filter(|part| !part.is_empty());
            let mut scopes: Vec<&str> = parts.collect();
            scopes.sort_unstable();
            scopes.dedup();
            return Err(Problem::new(what).help(format!("its scopes are {}", scopes.join(", "))));
        }
        let outside = forward_nodes.iter().filter(|n| !inside(&n.scope, name)).flat_map(|n| n.operands.iter().copied());
        for value in outside.chain(forward.results.iter().map(|r| r.value)) {
            leaving[value.index()] |= defined[value.index()];
        }
    }
    Ok(leaving)
}

fn report(forward: &Function, recomputation: &Recomputation, choice: &Choice) -> TapReport {
    let kept = choice.kept.iter().map(|&v| {
        let value = ValueId(v as u32);
        let (name, loc) = match forward.node_of(value) {
            Some(node) => (node.op.name().to_owned(), node.loc.clone()),
            None => {
                let param =
                    forward.params.iter().find(|p| p.value == value).expect("a value without a node is a parameter");
                (param.name.clone(), param.loc.clone())
            }
        };
        Tap { name, loc, bytes: recomputation.values[v].bytes }
    });
    TapReport {
        function: forward.name.clone(),
        taps: forward.taps.clone(),
        kept: kept.collect(),
        recomputed: choice.again.iter().map(|&n| forward.nodes[n].op.name().to_owned()).collect(),
        extra_flops: choice.flops,
    }
}
