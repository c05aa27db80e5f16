//! The first half of a step: gradients of all trainable weights, and new values of all state.

use super::scale::Scale;
use crate::reverse::gradients_and_taps;
use crate::taps::TapReport;
use backfit_ir::{Error, Function, Graph, Literal, Place, Problem, RNG_KEY, Role, Tensor, ValueId};

/// What forward and backward pass leave to the update.
pub(super) struct Computed {
    /// The loss and the reports, under their names.
    pub results: Vec<(String, Tensor)>,
    /// The trainable weights, under their names.
    pub weights: Vec<(String, Tensor)>,
    /// Their gradients, times the loss scale and the divisor.
    pub gradients: Vec<Tensor>,
    /// The total weight of the micro-batches over which gradients are summed, f64.
    pub divisor: Option<Tensor>,
    /// Old and new values of state and random key.
    pub states: Vec<(Tensor, Tensor)>,
    /// What differentiated functions hand from the forward to the backward pass.
    pub taps: Vec<TapReport>,
}

/// Appends the backward pass to the function `main`, which `graph` continues.
///
/// # Errors
/// A trainable weight that the loss does not depend on; a missing derivative.
pub(super) fn differentiate(
    graph: &Graph,
    main: &Function,
    results: &[(String, ValueId)],
    scale: Option<&Scale>,
) -> Result<Computed, Error> {
    let trainable = main.params.iter().filter(|p| p.role == Role::Weight { trainable: true });
    let weights: Vec<(String, Tensor)> = trainable.map(|p| (p.name.clone(), graph.tensor(p.value))).collect();
    check_reached(main, &weights, results[0].1)?;
    let loss = graph.tensor(results[0].1);
    let seed = scale.map_or_else(|| loss.like(1.0), |scale| scale.factor.cast(loss.dtype()));
    let targets: Vec<&Tensor> = weights.iter().map(|(_, weight)| weight).collect();
    let (gradients, taps) = gradients_and_taps(&loss, &targets, &seed)?;
    let updated = main.results.iter().filter_map(|r| r.alias.map(|a| (main.params[a].value, r.value)));
    let mut states: Vec<_> = updated.map(|(old, new)| (graph.tensor(old), graph.tensor(new))).collect();
    states.extend(next_key(graph, main));
    let results = results.iter().map(|(name, value)| (name.clone(), graph.tensor(*value))).collect();
    Ok(Computed { results, weights, gradients, divisor: None, states, taps })
}

/// The key of random operators, if there are any, and the key with the step counted in it.
fn next_key(graph: &Graph, main: &Function) -> Option<(Tensor, Tensor)> {
    let param = main.params.iter().find(|p| p.name == RNG_KEY)?;
    let key = graph.tensor(param.value);
    let one = graph.constant(Literal::from_i64(key.ty().clone(), &[0, 0, 1, 0]));
    let next = &key + &one;
    Some((key, next))
}

/// Refuses trainable weights that the loss does not depend on: a user's slip more often than not.
fn check_reached(main: &Function, weights: &[(String, Tensor)], loss: ValueId) -> Result<(), Error> {
    let mut reached = vec![false; main.values.len()];
    reached[loss.index()] = true;
    for node in main.nodes.iter().rev() {
        if node.results.iter().any(|v| reached[v.index()]) {
            node.operands.iter().for_each(|v| reached[v.index()] = true);
        }
    }
    let is_weight = |name: &str| weights.iter().any(|(weight, _)| weight == name);
    let lost = main.params.iter().filter(|p| is_weight(&p.name) && !reached[p.value.index()]).map(|param| {
        Problem::new(format!("the loss does not depend on the weight '{}'", param.name))
            .at(Place::Source(param.loc.clone()))
            .help("use it, or declare it with a role other than a trainable weight")
    });
    let mut problems: Vec<Problem> = lost.collect();
    if weights.is_empty() {
        problems.push(
            Problem::new("there is no trainable weight").help("make one with `Graph::weight` or a layer of `nn`"),
        );
    }
    Error::from_problems(problems).map_or(Ok(()), Err)
}
