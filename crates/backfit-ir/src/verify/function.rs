//! What must hold of one function at every stage.

use super::{infer, node_problem, type_flaw};
use crate::error::{Place, Problem};
use crate::graph::{Composite, Def, Function, Module, Node, Param, Role, ValueId};
use crate::init::Init;
use crate::op::Op;
use crate::ops::Kind;
use crate::rewrite::callee;
use crate::shape::Type;
use std::collections::HashSet;

/// Checks a function. `sound` says of each function before it whether it passed.
pub(super) fn check(module: &Module, function: &Function, sound: &[bool], problems: &mut Vec<Problem>) {
    let mut checker = Checker { module, function, sound, problems };
    checker.values();
    checker.params();
    for at in 0..function.nodes.len() {
        checker.node(at);
    }
    checker.results();
    if let Some(composite) = &function.composite {
        checker.composite(composite);
    }
}

struct Checker<'a> {
    module: &'a Module,
    function: &'a Function,
    sound: &'a [bool],
    problems: &'a mut Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, what: impl std::fmt::Display) {
        self.problems.push(Problem::new(format!("'{}': {what}", self.function.name)));
    }

    fn report_param(&mut self, param: &Param, what: impl std::fmt::Display) {
        let what = format!("parameter '{}' of '{}' {what}", param.name, self.function.name);
        self.problems.push(Problem::new(what).at(Place::Source(param.loc.clone())));
    }

    fn report_node(&mut self, node: &Node, what: impl std::fmt::Display) {
        self.problems.push(node_problem(self.function, node, what));
    }

    fn def(&self, value: ValueId) -> Option<Def> {
        self.function.values.get(value.index()).map(|v| v.def)
    }

    fn ty(&self, value: ValueId) -> Option<&'a Type> {
        self.function.values.get(value.index()).map(|v| &v.ty)
    }

    /// Every value points to a definition that points back, and has a possible type.
    fn values(&mut self) {
        for (index, value) in self.function.values.iter().enumerate() {
            let id = ValueId(index as u32);
            let defined = match value.def {
                Def::Param(i) => self.function.params.get(i).map(|p| p.value),
                Def::Node { node, result } => {
                    self.function.nodes.get(node).and_then(|n| n.results.get(result).copied())
                }
            };
            if defined != Some(id) {
                self.report(format!("{id} says that it is defined by {}, which is not so", definition(value.def)));
            }
            if let Some(flaw) = type_flaw(&value.ty) {
                self.report(format!("{id}: {flaw}"));
            }
            self.packed(id, value.def, &value.ty);
        }
    }

    /// Packed dtypes are for constants only.
    fn packed(&mut self, id: ValueId, def: Def, ty: &Type) {
        let constant = match def {
            Def::Param(_) => false,
            Def::Node { node, .. } => self.function.nodes.get(node).is_some_and(|n| matches!(n.op, Op::Constant(_))),
        };
        if ty.dtype.is_packed() && !constant {
            self.report(format!("{id} is {ty}; packed dtypes are for constants and the operands of cast"));
        }
    }

    fn params(&mut self) {
        let mut names = HashSet::new();
        for (index, param) in self.function.params.iter().enumerate() {
            if !names.insert(param.name.as_str()) {
                self.report_param(param, "has the name of another one");
            }
            if self.def(param.value) != Some(Def::Param(index)) {
                self.report_param(param, format!("defines {}, which says otherwise", param.value));
            }
            if param.init.is_some() && !param.role.is_resident() {
                self.report_param(param, "is fed at every run and has a start value");
            }
            if let (Some(Init::Literal(literal)), Some(ty)) = (&param.init, self.ty(param.value))
                && literal.ty() != ty
            {
                self.report_param(param, format!("is {ty} and starts with {}", literal.ty()));
            }
        }
    }

    fn node(&mut self, at: usize) {
        let node = &self.function.nodes[at];
        for (result, &value) in node.results.iter().enumerate() {
            if self.def(value) != Some(Def::Node { node: at, result }) {
                self.report_node(node, format!("result {result} is {value}, which says otherwise"));
            }
        }
        let reachable = node.operands.iter().filter(|&&v| self.operand(node, at, v)).count();
        if reachable == node.operands.len() && self.callee(node) {
            self.types(node);
        }
    }

    /// Whether an operand is defined where the node stands.
    fn operand(&mut self, node: &Node, at: usize, value: ValueId) -> bool {
        let defined = match self.def(value) {
            Some(Def::Param(i)) => i < self.function.params.len(),
            Some(Def::Node { node, .. }) => node < at,
            None => {
                self.report_node(node, format!("there is no {value}"));
                return false;
            }
        };
        if !defined {
            self.report_node(node, format!("{value} is used before it is defined"));
        } else if self.ty(value).is_some_and(|ty| ty.dtype.is_packed()) && !matches!(node.op, Op::Cast(_)) {
            self.report_node(node, format!("{value} has a packed dtype, which only cast takes"));
        }
        defined
    }

    /// Whether the function that a node calls may be looked at.
    fn callee(&mut self, node: &Node) -> bool {
        match callee(&node.op) {
            None => true,
            Some(id) if id.index() < self.sound.len() => self.sound[id.index()],
            Some(id) => {
                let what = format!("function {} does not stand before its caller {}", id.0, self.sound.len());
                self.report_node(node, what);
                false
            }
        }
    }

    fn types(&mut self, node: &Node) {
        let collect = |ids: &[ValueId]| ids.iter().map(|&v| self.ty(v).cloned()).collect::<Option<Vec<Type>>>();
        let (Some(operands), Some(found)) = (collect(&node.operands), collect(&node.results)) else { return };
        match infer(self.module, &node.op, &operands) {
            Err(why) => self.report_node(node, why),
            Ok(expected) if expected != found => {
                self.report_node(node, format!("it gives {}, not {}", list(&expected), list(&found)));
            }
            Ok(_) => {}
        }
    }

    fn results(&mut self) {
        let mut names = HashSet::new();
        let mut written = HashSet::new();
        for result in &self.function.results {
            let name = &result.name;
            if !names.insert(name.as_str()) {
                self.report(format!("there are two results named '{name}'"));
            }
            let Some(ty) = self.ty(result.value) else {
                self.report(format!("result '{name}' is {}, which does not exist", result.value));
                continue;
            };
            if ty.dtype.is_packed() {
                self.report(format!("result '{name}' is {ty}; cast it first"));
            }
            let Some(index) = result.alias else { continue };
            let Some(param) = self.function.params.get(index) else {
                self.report(format!("result '{name}' aliases parameter {index}, which does not exist"));
                continue;
            };
            let (param_name, param_ty) = (&param.name, self.ty(param.value));
            if !param.role.is_resident() {
                self.report(format!("result '{name}' aliases '{param_name}', which is not resident"));
            }
            if let Some(param_ty) = param_ty.filter(|&p| p != ty) {
                self.report(format!("result '{name}' is {ty} and aliases '{param_name}', which is {param_ty}"));
            }
            if !written.insert(index) {
                self.report(format!("two results write into '{param_name}'"));
            }
        }
    }

    /// A composite's body is a pure function of inputs, which the registry accepts where it knows the name. How many
    /// results there are depends on the operands of the call.
    fn composite(&mut self, composite: &Composite) {
        let name = &composite.name;
        for param in self.function.params.iter().filter(|p| p.role != Role::Input) {
            self.report_param(param, "is no input, yet the function is the body of a composite");
        }
        if self.function.results.iter().any(|r| r.alias.is_some()) {
            self.report(format!("the body of '{name}' writes into a parameter"));
        }
        let Some(definition) = crate::ops::find(name) else { return };
        let Kind::Composite(rules) = &definition.kind else {
            return self.report(format!("'{name}' is a primitive, not a composite"));
        };
        let types: Option<Vec<Type>> = self.function.params.iter().map(|p| self.ty(p.value).cloned()).collect();
        if let Some(Err(why)) = types.map(|types| (rules.check)(&types, &composite.attributes)) {
            self.report(format!("{name}: {why}"));
        }
    }
}

fn definition(def: Def) -> String {
    match def {
        Def::Param(i) => format!("parameter {i}"),
        Def::Node { node, result } => format!("result {result} of node {node}"),
    }
}

fn list(types: &[Type]) -> String {
    let words: Vec<String> = types.iter().map(Type::to_string).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}
