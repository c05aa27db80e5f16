//! The walk from cotangents back to targets.

use crate::pairs::Pairs;
use crate::taps::TapReport;
use backfit_ir::ops::Derivative;
use backfit_ir::scope;
use backfit_ir::{Attributes, Error, Function, Graph, Loc, Node, Op, Place, Problem, Tensor, ValueId, Vjp};
use std::panic::Location;

/// What [`vjp`] is asked for.
pub struct Request<'a> {
    /// Values with the cotangents that enter there, of the same types.
    pub outputs: &'a [(Tensor, Tensor)],
    /// Values whose cotangents are wanted.
    pub targets: &'a [&'a Tensor],
    /// Nothing flows through these values to what they are made from (though one may itself be a target).
    pub stop: &'a [&'a Tensor],
}

/// Gradients of a scalar with respect to `targets`, appended to the graph that computes it.
/// A target that the scalar does not depend on has a zero gradient.
///
/// ```
/// use backfit_grad::gradients;
/// use backfit_ir::{DType, Graph};
/// let g = Graph::new();
/// let x = g.input("x", DType::F64, [3]);
/// let loss = (&x * &x).sum_all();
/// let dx = gradients(&loss, &[&x]).unwrap();
/// assert_eq!(dx[0].ty(), x.ty());
/// ```
///
/// # Errors
/// Where the loss is not a float scalar, or an operator on the way has no derivative; the error names the operator,
/// the user's line and the path from the loss to it.
#[track_caller]
pub fn gradients(loss: &Tensor, targets: &[&Tensor]) -> Result<Vec<Tensor>, Error> {
    gradients_and_taps(loss, targets, &loss.like(1.0)).map(|(gradients, _)| gradients)
}

/// [`gradients`] with the cotangent of the loss, and what differentiated functions keep.
#[track_caller]
pub(crate) fn gradients_and_taps(
    loss: &Tensor,
    targets: &[&Tensor],
    seed: &Tensor,
) -> Result<(Vec<Tensor>, Vec<TapReport>), Error> {
    if let Some(error) = Error::from_problems(loss.graph().problems()) {
        return Err(error);
    }
    if loss.rank() != 0 || !loss.dtype().is_float() {
        let what = format!("the loss is {}; it must be a float scalar", loss.ty());
        let place = Place::Source(Loc::of(Location::caller()));
        return Err(Problem::new(what).at(place).help("reduce it with `mean` or `sum`").into());
    }
    let (found, taps) = differentiate(&Request { outputs: &[(loss.clone(), seed.clone())], targets, stop: &[] })?;
    let mut all = Vec::new();
    // Closures do not see the caller's line.
    for (target, gradient) in targets.iter().zip(found) {
        all.push(match gradient {
            Some(gradient) => gradient,
            None => target.like(0.0),
        });
    }
    Ok((all, taps))
}

/// Cotangents of `targets` for given cotangents at any values, appended to their graph.
/// `None` for a target that no output depends on. Contributions are added in a fixed order.
///
/// # Errors
/// Where an operator on the way has no derivative.
#[track_caller]
pub fn vjp(request: &Request) -> Result<Vec<Option<Tensor>>, Error> {
    differentiate(request).map(|(cotangents, _)| cotangents)
}

#[track_caller]
fn differentiate(request: &Request) -> Result<(Vec<Option<Tensor>>, Vec<TapReport>), Error> {
    let Some((first, _)) = request.outputs.first() else { return Ok((vec![None; request.targets.len()], vec![])) };
    let graph = first.graph().clone();
    let pairs = request.outputs.iter().flat_map(|(output, cotangent)| [output, cotangent]);
    let mut tensors = pairs.chain(request.targets.iter().copied()).chain(request.stop.iter().copied());
    if let Some(foreign) = tensors.find(|tensor| !tensor.graph().same(&graph)) {
        let problem =
            Problem::new(format!("a tensor of type {} is of another graph than what is derived", foreign.ty()));
        let problem = problem.at(Place::Source(Loc::of(Location::caller())));
        return Err(problem.help("a value of a function or layer has to be among its results").into());
    }
    if let Some(error) = Error::from_problems(graph.problems()) {
        return Err(error);
    }
    for (output, cotangent) in request.outputs {
        if output.ty() != cotangent.ty() {
            let what = format!("the cotangent of a value of type {} is {}", output.ty(), cotangent.ty());
            return Err(Problem::new(what).at(Place::Source(Loc::of(Location::caller()))).into());
        }
    }
    let pairs = Pairs::new(&graph);
    let found = Walk::new(&graph, &pairs, request).run(request)?;
    match Error::from_problems(graph.problems()) {
        Some(error) => Err(error),
        None => Ok((found, pairs.into_reports())),
    }
}

/// The name of a node's operator, its attributes where it is a composite, and its derivative.
fn derivative(graph: &Graph, node: &Node) -> (String, Attributes, Derivative) {
    let Op::Call(callee) = node.op else {
        return (node.op.name().to_owned(), Attributes::new(), node.op.definition().derivative);
    };
    match graph.module(|m| m.function(callee).composite.clone()) {
        Some(composite) => {
            let derivative = graph.definition(&composite.name).map_or(Derivative::Structural, |d| d.derivative);
            (composite.name, composite.attributes, derivative)
        }
        None => ("call".to_owned(), Attributes::new(), Derivative::Structural),
    }
}

/// Which values of a function depend on `sources` through float values, never through `stops` or constants to derivatives.
pub(crate) fn active_values(graph: &Graph, function: &Function, sources: &[ValueId], stops: &[ValueId]) -> Vec<bool> {
    let mut active = vec![false; function.values.len()];
    sources.iter().for_each(|v| active[v.index()] = true);
    for node in &function.nodes {
        let reached = node.operands.iter().any(|v| active[v.index()]);
        if reached && !matches!(derivative(graph, node).2, Derivative::Zero) {
            for &result in &node.results {
                if function.ty(result).dtype.is_float() && !stops.contains(&result) {
                    active[result.index()] = true;
                }
            }
        }
    }
    active
}

/// One backward walk over the nodes that a graph has when it starts.
pub(crate) struct Walk<'a> {
    graph: &'a Graph,
    pairs: &'a Pairs<'a>,
    function: Function,
    active: Vec<bool>,
    stops: Vec<ValueId>,
    cotangents: Vec<Option<Tensor>>,
    /// For every value with a cotangent, the node through which it first got one.
    via: Vec<Option<usize>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(graph: &'a Graph, pairs: &'a Pairs<'a>, request: &Request) -> Self {
        let function = graph.inspect(Function::clone);
        let ids = |tensors: &[&Tensor]| tensors.iter().filter_map(|t| t.value()).collect::<Vec<_>>();
        let stops = ids(request.stop);
        let active = active_values(graph, &function, &ids(request.targets), &stops);
        let values = function.values.len();
        Walk { graph, pairs, function, active, stops, cotangents: vec![None; values], via: vec![None; values] }
    }

    pub(crate) fn run(mut self, request: &Request) -> Result<Vec<Option<Tensor>>, Error> {
        for (output, cotangent) in request.outputs {
            if let Some(value) = output.value() {
                self.add(value, cotangent.clone(), None);
            }
        }
        for index in (0..self.function.nodes.len()).rev() {
            self.visit(index)?;
        }
        let of = |t: &&Tensor| t.value().and_then(|v| self.cotangents[v.index()].clone());
        Ok(request.targets.iter().map(of).collect())
    }

    fn visit(&mut self, index: usize) -> Result<(), Error> {
        let node = self.function.nodes[index].clone();
        let wanted: Vec<bool> = node.operands.iter().map(|v| self.active[v.index()]).collect();
        let flows = |v: &ValueId| self.active[v.index()] && !self.stops.contains(v);
        let cotangent = |v: &ValueId| self.cotangents[v.index()].clone().filter(|_| flows(v));
        let cotangents: Vec<Option<Tensor>> = node.results.iter().map(cotangent).collect();
        if cotangents.iter().all(Option::is_none) || !wanted.contains(&true) {
            return Ok(());
        }
        let graph = self.graph;
        let (name, attributes, derivative) = derivative(graph, &node);
        let scope = match derivative {
            // As the inlined backward function of a pair has it, so that later stages know what they see.
            Derivative::Rule(_) => scope::within_composite(&node.scope, &format!("{name}.backward")),
            _ => node.scope.clone(),
        };
        let derive = || self.derive(index, &node, (&name, &attributes, derivative), &wanted, &cotangents);
        let found = graph.originate(node.loc.clone(), scope, derive)?;
        for ((&operand, wanted), cotangent) in node.operands.iter().zip(wanted).zip(found) {
            if let (true, Some(cotangent)) = (wanted, cotangent) {
                self.add(operand, cotangent, Some(index));
            }
        }
        Ok(())
    }

    fn derive(
        &self,
        index: usize,
        node: &Node,
        (name, attributes, derivative): (&str, &Attributes, Derivative),
        wanted: &[bool],
        cotangents: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Error> {
        let graph = self.graph;
        match derivative {
            Derivative::Rule(rule) => {
                let tensors = |ids: &[ValueId]| ids.iter().map(|&v| graph.tensor(v)).collect::<Vec<_>>();
                let (operands, results) = (tensors(&node.operands), tensors(&node.results));
                Ok(rule(&Vjp {
                    graph,
                    op: &node.op,
                    attributes,
                    operands: &operands,
                    results: &results,
                    cotangents,
                    wanted,
                }))
            }
            Derivative::Body | Derivative::Structural => {
                let found = match &node.op {
                    Op::Scan(scan) => self.pairs.scan(graph, index, node, scan, wanted, cotangents),
                    _ => self.pairs.call(graph, index, node, wanted, cotangents),
                };
                found.map_err(|e| e.because(format!("it is reached through '{name}' at {}", node.loc)))
            }
            Derivative::Zero => Ok(vec![None; wanted.len()]),
            Derivative::NotDifferentiable(why) => Err(self.missing(index, name, why)),
        }
    }

    fn add(&mut self, value: ValueId, cotangent: Tensor, via: Option<usize>) {
        let i = value.index();
        self.cotangents[i] = Some(match self.cotangents[i].take() {
            None => {
                self.via[i] = via;
                cotangent
            }
            // Sums stand at the node that adds to them, whose derivative they are part of.
            Some(before) => match via.map(|index| &self.function.nodes[index]) {
                Some(node) => self.graph.originate(node.loc.clone(), node.scope.clone(), || &before + &cotangent),
                None => &before + &cotangent,
            },
        });
    }

    fn missing(&self, index: usize, name: &str, why: &str) -> Error {
        let node = &self.function.nodes[index];
        let mut path = Vec::new();
        let mut at = index;
        while let Some(next) = self.function.nodes[at].results.iter().find_map(|v| self.via[v.index()]) {
            let step = &self.function.nodes[next];
            path.push(format!("{} ({})", step.op.name(), step.loc));
            at = next;
        }
        path.reverse();
        let mut problem =
            Problem::new(format!("'{name}' has no derivative: {why}")).at(Place::Source(node.loc.clone()));
        if !path.is_empty() {
            problem = problem.because(format!("the loss depends on it through {}", path.join(" → ")));
        }
        problem.help("call `detach` on its operand if no gradient is to flow through it").into()
    }
}
