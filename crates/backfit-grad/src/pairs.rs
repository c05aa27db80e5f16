//! Derivatives of functions: pairs of a forward function that also returns residuals, and a backward function.

use crate::reverse::{Request, Walk};
use crate::taps::{self, TapReport};
use backfit_ir::{Composite, Def, Error, FuncId, Function, Graph, Loc, Node, Op, Tensor, Type, Value, ValueId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Where the backward function finds a residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residual {
    /// It is a parameter of the function.
    Param(usize),
    /// It is a result of the function.
    Result(usize),
    /// The forward function returns it after the function's own results.
    Extra(usize),
}

/// The derivative of a function for certain parameters and result cotangents.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// The function's results, then extra residuals.
    pub forward: FuncId,
    /// From residuals, then the given cotangents, to the cotangents of the wanted parameters that depend on them.
    pub backward: FuncId,
    /// The backward function's first operands.
    pub residuals: Vec<Residual>,
    /// Their types.
    pub residual_types: Vec<Type>,
    /// Types of the extra residuals.
    pub extras: Vec<Type>,
    /// For every parameter the index of its cotangent among the backward function's results.
    pub outputs: Vec<Option<usize>>,
}

type Key = (FuncId, Vec<bool>, Vec<bool>);

/// All pairs that one differentiation needs, made once each.
pub(crate) struct Pairs<'a> {
    /// Any graph of the module, for its functions.
    pub(crate) graph: &'a Graph,
    known: RefCell<HashMap<Key, Pair>>,
    /// What was chosen to be kept, for every function that is no composite.
    reports: RefCell<Vec<TapReport>>,
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Pairs { graph, known: RefCell::default(), reports: RefCell::default() }
    }

    pub(crate) fn into_reports(self) -> Vec<TapReport> {
        self.reports.into_inner()
    }

    /// The pair for a function: which parameters' cotangents are wanted, which results' are given.
    pub(crate) fn pair(&self, function: FuncId, wanted: &[bool], given: &[bool]) -> Result<Pair, Error> {
        let key = (function, wanted.to_vec(), given.to_vec());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let pair = self.derive(function, wanted, given)?;
        self.known.borrow_mut().insert(key, pair.clone());
        Ok(pair)
    }

    fn derive(&self, id: FuncId, wanted: &[bool], given: &[bool]) -> Result<Pair, Error> {
        let original = self.graph.module(|m| m.function(id).clone());
        let joint = self.graph.function(&original.name);
        joint.rewrite(|f| {
            *f = original.clone();
            f.results.clear();
            f.composite = None;
        });
        let mut cotangents = Vec::new();
        for (result, _) in original.results.iter().zip(given).filter(|(_, given)| **given) {
            let name = joint.inspect(|f| unused(f, format!("cotangent of {}", result.name)));
            let ty = original.ty(result.value).clone();
            let (loc, scope) = origin(&original, result.value);
            let cotangent = joint.originate(loc, scope, || joint.parameter(&name, ty, backfit_ir::Role::Input, None));
            cotangents.push((joint.tensor(result.value), cotangent));
        }
        let params: Vec<Tensor> = original.params.iter().map(|p| joint.tensor(p.value)).collect();
        let targets: Vec<&Tensor> = params.iter().zip(wanted).filter(|(_, w)| **w).map(|(t, _)| t).collect();
        let request = Request { outputs: &cotangents, targets: &targets, stop: &[] };
        let mut found = Walk::new(&joint, self, &request).run(&request)?.into_iter();
        if let Some(error) = Error::from_problems(joint.problems()) {
            return Err(error);
        }
        let grads: Vec<Option<ValueId>> =
            wanted.iter().map(|w| if *w { found.next().flatten().and_then(|t| t.value()) } else { None }).collect();
        self.split(&original, joint.inspect(Function::clone), id, &grads)
    }

    /// Cuts a joint function in two: what the original computes, and what the walk appended.
    fn split(
        &self,
        original: &Function,
        joint: Function,
        id: FuncId,
        grads: &[Option<ValueId>],
    ) -> Result<Pair, Error> {
        let forward_nodes = original.nodes.len();
        let backward_nodes = needed_backward(forward_nodes, &joint, grads);
        let required = required(original, &joint, &backward_nodes, grads);
        let (again, report) = self.graph.module(|m| taps::choose(m, &joint, forward_nodes, &required))?;
        if original.composite.is_none() {
            self.reports.borrow_mut().push(report);
        }
        let mut cut = Cut::new(original, &joint);
        cut.recompute(&again);
        for &index in &backward_nodes {
            cut.copy(&joint.nodes[index]);
        }
        let mut outputs = Vec::new();
        for (param, grad) in original.params.iter().zip(grads) {
            outputs.push(grad.map(|value| {
                let value = cut.operand(value);
                cut.backward.add_result(format!("cotangent of {}", param.name), value, None);
                cut.backward.results.len() - 1
            }));
        }
        let Cut { residuals, sources, backward, .. } = cut;
        let mut forward = joint.clone();
        forward.params.truncate(original.params.len());
        forward.nodes.truncate(forward_nodes);
        forward.results = original.results.clone();
        // Calls and loops whose residuals nobody keeps are again as they were.
        for (node, before) in forward.nodes.iter_mut().zip(&original.nodes) {
            if !node.results[before.results.len()..].iter().any(|v| sources.contains(v)) {
                *node = before.clone();
            }
        }
        let mut extras = Vec::new();
        for (value, source) in sources.iter().zip(&residuals) {
            if let Residual::Extra(_) = source {
                forward.add_result(unused(&forward, format!("residual {}", extras.len())), *value, None);
                extras.push(joint.ty(*value).clone());
            }
        }
        let composite = |part: &str| {
            let of = original.composite.clone();
            of.map(|c| Composite { name: format!("{}.{part}", c.name), attributes: c.attributes })
        };
        forward.composite = composite("forward");
        let mut backward = reordered(backward, residuals.len());
        backward.composite = composite("backward");
        backward.name = format!("{}.backward", original.name);
        forward.name = format!("{}.forward", original.name);
        let residual_types = sources.iter().map(|v| joint.ty(*v).clone()).collect();
        let unchanged = extras.is_empty() && forward.nodes == original.nodes;
        let forward = if unchanged { id } else { self.graph.add_function(compacted(forward)) };
        let backward = self.graph.add_function(backward);
        Ok(Pair { forward, backward, residuals, residual_types, extras, outputs })
    }

    /// The cotangents of a call's operands, in the function of the call, which becomes one of the forward function.
    pub(crate) fn call(
        &self,
        graph: &Graph,
        index: usize,
        node: &Node,
        wanted: &[bool],
        cotangents: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>, Error> {
        let Op::Call(callee) = node.op else { unreachable!("a call") };
        let given: Vec<bool> = cotangents.iter().map(Option::is_some).collect();
        let pair = self.pair(callee, wanted, &given)?;
        let extras = extend(graph, index, Op::Call(pair.forward), &pair.extras);
        let operands: Vec<Tensor> = pair
            .residuals
            .iter()
            .map(|residual| match residual {
                Residual::Param(i) => graph.tensor(node.operands[*i]),
                Residual::Result(i) => graph.tensor(node.results[*i]),
                Residual::Extra(i) => extras[*i].clone(),
            })
            .chain(cotangents.iter().flatten().cloned())
            .collect();
        let results = graph.call(pair.backward, &operands.iter().collect::<Vec<_>>());
        Ok(pair.outputs.iter().map(|output| output.map(|i| results[i].clone())).collect())
    }
}

/// The name, with a number where the function has a parameter or result of this name: it may itself be a derivative.
pub(crate) fn unused(function: &Function, name: String) -> String {
    let taken = |name: &str| function.param_index(name).is_some() || function.result_index(name).is_some();
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}

/// Replaces the operator of a node and gives the node more results.
pub(crate) fn extend(graph: &Graph, index: usize, op: Op, extras: &[Type]) -> Vec<Tensor> {
    let values = graph.rewrite(|f| {
        f.nodes[index].op = op;
        let mut values = Vec::new();
        for ty in extras {
            let value = ValueId(f.values.len() as u32);
            let def = Def::Node { node: index, result: f.nodes[index].results.len() };
            f.values.push(Value { ty: ty.clone(), def });
            f.nodes[index].results.push(value);
            values.push(value);
        }
        values
    });
    values.into_iter().map(|v| graph.tensor(v)).collect()
}

/// The line and scope of what defines a value.
fn origin(function: &Function, value: ValueId) -> (Loc, Arc<str>) {
    match function.values[value.index()].def {
        Def::Param(i) => (function.params[i].loc.clone(), "".into()),
        Def::Node { node, .. } => (function.nodes[node].loc.clone(), function.nodes[node].scope.clone()),
    }
}

/// The backward nodes that the wanted cotangents need, in order.
fn needed_backward(first: usize, joint: &Function, grads: &[Option<ValueId>]) -> Vec<usize> {
    let mut needed = vec![false; joint.values.len()];
    grads.iter().flatten().for_each(|v| needed[v.index()] = true);
    let mut nodes = Vec::new();
    for index in (first..joint.nodes.len()).rev() {
        let node = &joint.nodes[index];
        if node.results.iter().any(|v| needed[v.index()]) {
            node.operands.iter().for_each(|v| needed[v.index()] = true);
            nodes.push(index);
        }
    }
    nodes.reverse();
    nodes
}

/// The values of the forward pass that the backward nodes read or that are cotangents themselves, but for constants.
fn required(original: &Function, joint: &Function, nodes: &[usize], grads: &[Option<ValueId>]) -> Vec<ValueId> {
    let ours = |value: &ValueId| match joint.values[value.index()].def {
        Def::Param(i) => i < original.params.len(),
        Def::Node { node, .. } => node < original.nodes.len() && !joint.nodes[node].operands.is_empty(),
    };
    let read = nodes.iter().flat_map(|&i| joint.nodes[i].operands.iter().copied());
    read.chain(grads.iter().flatten().copied()).filter(ours).collect()
}

/// The backward function while it is copied out of the joint one.
struct Cut<'a> {
    original: &'a Function,
    joint: &'a Function,
    backward: Function,
    map: HashMap<ValueId, ValueId>,
    residuals: Vec<Residual>,
    sources: Vec<ValueId>,
    extras: usize,
}

impl<'a> Cut<'a> {
    fn new(original: &'a Function, joint: &'a Function) -> Self {
        let mut cut = Cut {
            original,
            joint,
            backward: Function::new("backward"),
            map: HashMap::new(),
            residuals: Vec::new(),
            sources: Vec::new(),
            extras: 0,
        };
        for param in &joint.params[original.params.len()..] {
            let ty = joint.ty(param.value).clone();
            let value = cut.backward.add_param(&*param.name, ty, param.role, None, param.loc.clone());
            cut.map.insert(param.value, value);
        }
        cut
    }

    fn copy(&mut self, node: &Node) {
        let operands = node.operands.iter().map(|&v| self.operand(v)).collect();
        let types = self.joint.types(&node.results);
        let results = self.backward.add_node(node.op.clone(), operands, types, node.scope.clone(), node.loc.clone());
        self.map.extend(node.results.iter().copied().zip(results));
    }

    /// Copies nodes of the forward pass, in order. A barrier on all that they start from and on the cotangents keeps
    /// passes from merging them with the forward pass, and from running them before the backward pass begins.
    fn recompute(&mut self, nodes: &[usize]) {
        let Some(&first) = nodes.first() else { return };
        let joint = self.joint;
        let made: Vec<ValueId> = nodes.iter().flat_map(|&i| joint.nodes[i].results.iter().copied()).collect();
        for value in nodes.iter().flat_map(|&i| &joint.nodes[i].operands).filter(|v| !made.contains(v)) {
            self.operand(*value);
        }
        let before: Vec<ValueId> = self.backward.params.iter().map(|p| p.value).collect();
        let types = self.backward.types(&before);
        let Node { scope, loc, .. } = &joint.nodes[first];
        let after = self.backward.add_node(Op::Barrier, before.clone(), types, scope.clone(), loc.clone());
        for own in self.map.values_mut() {
            if let Some(at) = before.iter().position(|v| v == own) {
                *own = after[at];
            }
        }
        nodes.iter().for_each(|&index| self.copy(&joint.nodes[index]));
    }

    /// A value within the backward function: copied already, or a constant, or a residual.
    fn operand(&mut self, value: ValueId) -> ValueId {
        if let Some(&known) = self.map.get(&value) {
            return known;
        }
        if let Some(node) = self.joint.node_of(value).filter(|n| n.operands.is_empty()) {
            self.copy(node);
            return self.map[&value];
        }
        let source = self.source(value);
        let name = format!("residual {}", self.residuals.len());
        let loc = origin(self.joint, value).0;
        let ty = self.joint.ty(value).clone();
        let own = self.backward.add_param(name, ty, backfit_ir::Role::Input, None, loc);
        self.map.insert(value, own);
        self.residuals.push(source);
        self.sources.push(value);
        own
    }

    fn source(&mut self, value: ValueId) -> Residual {
        if let Some(i) = self.original.params.iter().position(|p| p.value == value) {
            return Residual::Param(i);
        }
        if let Some(i) = self.original.results.iter().position(|r| r.value == value) {
            return Residual::Result(i);
        }
        self.extras += 1;
        Residual::Extra(self.extras - 1)
    }
}

/// Residual parameters were added as they were met, after the cotangents: put them first.
fn reordered(mut backward: Function, residuals: usize) -> Function {
    let cotangents = backward.params.len() - residuals;
    backward.params.rotate_left(cotangents);
    for (i, param) in backward.params.iter().enumerate() {
        backward.values[param.value.index()].def = Def::Param(i);
    }
    backward
}

/// Drops the values that truncation left behind.
fn compacted(function: Function) -> Function {
    backfit_ir::rewrite::canonical(&function)
}
