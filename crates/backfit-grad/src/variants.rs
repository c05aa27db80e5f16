//! The function outside training: dropout gone, batch norm on running statistics, no updates.

use backfit_ir::ops::Kind;
use backfit_ir::rewrite::{callee, callee_mut};
use backfit_ir::{FuncId, Function, Graph, Op, Tensor, ValueId};
use std::collections::HashMap;
use std::panic::Location;

/// Builds a function that computes some values of `main` as they are outside training.
/// Its parameters are those that these values need.
pub(crate) struct Inference<'a> {
    graph: &'a Graph,
    known: HashMap<FuncId, FuncId>,
}

impl<'a> Inference<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        Inference { graph, known: HashMap::new() }
    }

    /// Defines the function `name` with these results.
    #[track_caller]
    pub(crate) fn define(&mut self, main: &Function, name: &str, results: &[(String, ValueId)]) -> Option<FuncId> {
        let g = self.graph.function(name);
        let needed = needed(main, results);
        let mut map: HashMap<ValueId, Tensor> = HashMap::new();
        for param in main.params.iter().filter(|p| needed[p.value.index()]) {
            let build = || g.parameter(&param.name, main.ty(param.value).clone(), param.role, param.init.clone());
            map.insert(param.value, g.originate(param.loc.clone(), "".into(), build));
        }
        for node in main.nodes.iter().filter(|n| n.results.iter().any(|v| needed[v.index()])) {
            let operands: Vec<&Tensor> = node.operands.iter().map(|v| &map[v]).collect();
            // What is built here speaks for the node, too.
            let graph = self.graph;
            let op = graph.originate(node.loc.clone(), node.scope.clone(), || self.operator(&node.op));
            let outputs = g.originate(node.loc.clone(), node.scope.clone(), || g.push(op, &operands));
            map.extend(node.results.iter().copied().zip(outputs));
        }
        for (name, value) in results {
            g.result(name, &map[value]);
        }
        self.graph.define(g)
    }

    /// The operator with its callee as it is outside training.
    fn operator(&mut self, op: &Op) -> Op {
        let mut op = op.clone();
        if let Some(id) = callee_mut(&mut op) {
            *id = self.function(*id);
        }
        op
    }

    #[track_caller]
    fn function(&mut self, id: FuncId) -> FuncId {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let original = self.graph.module(|m| m.function(id).clone());
        let variant = self.variant(id, &original).unwrap_or_else(|| {
            let mut function = original.clone();
            for node in &mut function.nodes {
                node.op = self.operator(&node.op);
            }
            let changed = function.nodes.iter().zip(&original.nodes).any(|(a, b)| callee(&a.op) != callee(&b.op));
            if changed { self.graph.add_function(function) } else { id }
        });
        self.known.insert(id, variant);
        variant
    }

    /// The inference body of a composite that declares one.
    #[track_caller]
    fn variant(&self, id: FuncId, original: &Function) -> Option<FuncId> {
        let composite = original.composite.as_ref()?;
        let definition = self.graph.definition(&composite.name)?;
        match &definition.kind {
            Kind::Composite(rules) if rules.inference.is_some() => {}
            _ => return None,
        }
        let types: Vec<_> = original.params.iter().map(|p| original.ty(p.value).clone()).collect();
        let made = self.graph.instantiate(definition, &types, composite.attributes.clone(), true, Location::caller());
        Some(made.unwrap_or(id))
    }
}

fn needed(function: &Function, results: &[(String, ValueId)]) -> Vec<bool> {
    let mut needed = vec![false; function.values.len()];
    results.iter().for_each(|(_, v)| needed[v.index()] = true);
    for node in function.nodes.iter().rev() {
        if node.results.iter().any(|v| needed[v.index()]) {
            node.operands.iter().for_each(|v| needed[v.index()] = true);
        }
    }
    needed
}
