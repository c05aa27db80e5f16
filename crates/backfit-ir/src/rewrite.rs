//! What passes that rebuild functions share: copying, dead code, renumbering, inlining, pruning.
//!
//! Everything here is linear in what it reads and writes, and leaves its input as it is.

use crate::graph::{Def, FuncId, Function, FunctionResult, Loc, Module, Node, Param, ValueId};
use crate::op::Op;
use crate::scope;
use crate::shape::Type;
use std::sync::Arc;

/// Rebuilds a function node by node, with a map from old values to new ones.
///
/// A pass walks the old nodes in order and either copies a node or maps its results to something else.
///
/// ```
/// use backfit_ir::rewrite::Rewriter;
/// use backfit_ir::{DType, Graph, Op};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [4]);
/// g.result("y", &x.reshape([2, 2]).exp().reshape([4]).reshape([4]));
/// let module = g.finish().unwrap();
///
/// // Removes reshapes that change nothing.
/// let old = &module.functions[0];
/// let mut rewriter = Rewriter::new(old);
/// for node in &old.nodes {
///     if matches!(node.op, Op::Reshape(_)) && old.ty(node.operands[0]) == old.ty(node.results[0]) {
///         rewriter.forward(node.results[0], node.operands[0]);
///     } else {
///         rewriter.copy_node(node);
///     }
/// }
/// assert!(rewriter.finish().nodes.iter().filter(|n| n.op.name() == "reshape").count() <= 2);
/// ```
pub struct Rewriter<'f> {
    old: &'f Function,
    map: Vec<Option<ValueId>>,
    /// The function under construction.
    pub function: Function,
}

impl<'f> Rewriter<'f> {
    /// Starts with the old function's name, composite and parameters.
    pub fn new(old: &'f Function) -> Self {
        let mut rewriter = Rewriter::bare(old);
        old.params.iter().for_each(|param| rewriter.copy_param(param));
        rewriter
    }

    /// Starts without parameters, for passes that change them; the pass maps the old ones.
    pub fn bare(old: &'f Function) -> Self {
        let function =
            Function { composite: old.composite.clone(), taps: old.taps.clone(), ..Function::new(old.name.clone()) };
        Rewriter { old, map: vec![None; old.values.len()], function }
    }

    /// Copies a parameter of the old function.
    pub fn copy_param(&mut self, param: &Param) {
        let Param { name, role, init, loc, value } = param.clone();
        let new = self.function.add_param(name, self.old.ty(value).clone(), role, init, loc);
        self.map_value(value, new);
    }

    /// The function that is read.
    pub fn old(&self) -> &'f Function {
        self.old
    }

    /// Says which new value stands for an old one.
    pub fn map_value(&mut self, old: ValueId, new: ValueId) {
        self.map[old.index()] = Some(new);
    }

    /// Lets an old value be replaced by what stands for another old value.
    ///
    /// # Panics
    /// Where `by` has nothing that stands for it yet.
    pub fn forward(&mut self, old: ValueId, by: ValueId) {
        let new = self.value(by);
        self.map_value(old, new);
    }

    /// The new value that stands for an old one, if there is one yet.
    pub fn get(&self, old: ValueId) -> Option<ValueId> {
        self.map.get(old.index()).copied().flatten()
    }

    /// The new value that stands for an old one.
    ///
    /// # Panics
    /// Where there is none yet: the pass left out a definition that is used.
    pub fn value(&self, old: ValueId) -> ValueId {
        self.get(old).unwrap_or_else(|| panic!("{} of '{}' was not rebuilt", self.old.describe(old), self.old.name))
    }

    /// The new values that stand for old ones.
    ///
    /// # Panics
    /// As [`Rewriter::value`].
    pub fn values(&self, old: &[ValueId]) -> Vec<ValueId> {
        old.iter().map(|&v| self.value(v)).collect()
    }

    /// Copies a node of the old function; returns the new results.
    ///
    /// # Panics
    /// As [`Rewriter::value`].
    pub fn copy_node(&mut self, node: &Node) -> Vec<ValueId> {
        let operands = self.values(&node.operands);
        self.replace_node(node, node.op.clone(), operands)
    }

    /// Adds a node with other operands (new values) or another operator in the place of an old one: same
    /// result types, scope and location. Returns the new results.
    pub fn replace_node(&mut self, node: &Node, op: Op, operands: Vec<ValueId>) -> Vec<ValueId> {
        let new = self.add_node(node, op, operands, self.old.types(&node.results));
        for (&old, &new) in node.results.iter().zip(&new) {
            self.map_value(old, new);
        }
        new
    }

    /// Adds a node that has an old node's scope and location; returns the new results, mapped to nothing.
    pub fn add_node(&mut self, like: &Node, op: Op, operands: Vec<ValueId>, results: Vec<Type>) -> Vec<ValueId> {
        self.function.add_node(op, operands, results, like.scope.clone(), like.loc.clone())
    }

    /// Ends the function with the old results.
    ///
    /// # Panics
    /// As [`Rewriter::value`].
    pub fn finish(mut self) -> Function {
        for result in &self.old.results {
            let value = self.value(result.value);
            self.function.results.push(FunctionResult { value, ..result.clone() });
        }
        self.function
    }
}

/// For every node, whether a result of the function depends on it.
pub fn live_nodes(function: &Function) -> Vec<bool> {
    let mut live = vec![false; function.nodes.len()];
    let mut work: Vec<ValueId> = function.results.iter().map(|r| r.value).collect();
    while let Some(value) = work.pop() {
        if let Def::Node { node, .. } = function.values[value.index()].def
            && !std::mem::replace(&mut live[node], true)
        {
            work.extend(&function.nodes[node].operands);
        }
    }
    live
}

/// The function without nodes that no result depends on. All parameters and results stay.
///
/// ```
/// use backfit_ir::{DType, Graph, rewrite};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [4]);
/// x.exp();
/// g.result("y", &(&x + &x));
/// let module = g.finish().unwrap();
/// assert_eq!(module.functions[0].nodes.len(), 2);
/// assert_eq!(rewrite::dead_code(&module.functions[0]).nodes.len(), 1);
/// ```
pub fn dead_code(function: &Function) -> Function {
    let live = live_nodes(function);
    let mut rewriter = Rewriter::new(function);
    for (node, _) in function.nodes.iter().zip(live).filter(|(_, live)| *live) {
        rewriter.copy_node(node);
    }
    rewriter.finish()
}

/// The same function with its values numbered in order of definition, parameters first, and no others.
/// This is the numbering of the text form.
///
/// # Panics
/// Where a value is used before it is defined.
pub fn canonical(function: &Function) -> Function {
    let mut rewriter = Rewriter::new(function);
    for node in &function.nodes {
        rewriter.copy_node(node);
    }
    rewriter.finish()
}

/// [`canonical`] for every function of a module.
///
/// # Panics
/// Where a value is used before it is defined.
pub fn canonical_module(module: &Module) -> Module {
    Module { functions: module.functions.iter().map(canonical).collect() }
}

/// Whether every node stands after the definitions of its operands.
pub fn is_topological(function: &Function) -> bool {
    function.nodes.iter().enumerate().all(|(at, node)| {
        node.operands.iter().all(|v| match function.values.get(v.index()).map(|value| value.def) {
            Some(Def::Node { node, .. }) => node < at,
            Some(Def::Param(_)) => true,
            None => false,
        })
    })
}

/// The function that an operator calls or repeats.
pub fn callee(op: &Op) -> Option<FuncId> {
    match op {
        Op::Call(function) => Some(*function),
        Op::Scan(scan) => Some(scan.body),
        _ => None,
    }
}

/// The place of the function that an operator calls or repeats.
pub fn callee_mut(op: &mut Op) -> Option<&mut FuncId> {
    match op {
        Op::Call(function) => Some(function),
        Op::Scan(scan) => Some(&mut scan.body),
        _ => None,
    }
}

/// The functions that `roots` reach by calls and scans, themselves included, in the same order but
/// renumbered; and the new ids of `roots`.
///
/// ```
/// use backfit_ir::{DType, Graph, FuncId, rewrite};
/// let g = Graph::new();
/// let unused = g.function("unused");
/// unused.result("y", &unused.input("x", DType::F32, [2]));
/// g.define(unused);
/// g.result("y", &g.input("x", DType::F32, [2]));
/// let module = g.finish().unwrap();
/// let (pruned, roots) = rewrite::live_functions(&module, &[module.find("main").unwrap()]);
/// assert_eq!((pruned.functions.len(), roots), (1, vec![FuncId(0)]));
/// ```
///
/// # Panics
/// Where a root or a callee is no function of the module.
pub fn live_functions(module: &Module, roots: &[FuncId]) -> (Module, Vec<FuncId>) {
    let mut live = vec![false; module.functions.len()];
    let mut work = roots.to_vec();
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut live[id.index()], true) {
            work.extend(module.function(id).nodes.iter().filter_map(|node| callee(&node.op)));
        }
    }
    let mut renumbered = vec![FuncId(0); module.functions.len()];
    let mut pruned = Module::default();
    for (index, function) in module.functions.iter().enumerate().filter(|(i, _)| live[*i]) {
        renumbered[index] = FuncId(pruned.functions.len() as u32);
        let mut function = function.clone();
        for id in function.nodes.iter_mut().filter_map(|node| callee_mut(&mut node.op)) {
            *id = renumbered[id.index()];
        }
        pruned.functions.push(function);
    }
    (pruned, roots.iter().map(|id| renumbered[id.index()]).collect())
}

/// A function body that is being copied into a caller.
struct Frame<'m> {
    from: &'m Function,
    next: usize,
    map: Vec<Option<ValueId>>,
    /// The call's results in the enclosing frame, and what the copied nodes carry; `None` for the outermost.
    call: Option<(&'m [ValueId], Loc, Arc<str>)>,
}

impl<'m> Frame<'m> {
    fn new(from: &'m Function, arguments: &[ValueId], call: Option<(&'m [ValueId], Loc, Arc<str>)>) -> Self {
        let mut map = vec![None; from.values.len()];
        from.params.iter().zip(arguments).for_each(|(param, &value)| map[param.value.index()] = Some(value));
        Frame { from, next: 0, map, call }
    }

    fn value(&self, old: ValueId) -> ValueId {
        self.map[old.index()].expect("a verified function defines values before it uses them")
    }

    fn origin(&self, node: &Node) -> (Loc, Arc<str>) {
        let Some((_, loc, scope)) = &self.call else { return (node.loc.clone(), node.scope.clone()) };
        (loc.clone(), scope::within(scope, &node.scope))
    }

    /// The frame of a call in this one. Nodes get the call's location; their scope becomes the call's, the composite's
    /// name, and then their own.
    fn enter(&self, node: &'m Node, callee: &'m Function) -> Frame<'m> {
        let arguments: Vec<ValueId> = node.operands.iter().map(|&v| self.value(v)).collect();
        let (loc, scope) = self.origin(node);
        let scope = match &callee.composite {
            Some(composite) => scope::within_composite(&scope, &composite.name),
            None => scope,
        };
        Frame::new(callee, &arguments, Some((&node.results, loc, scope)))
    }
}

/// A function with the calls for which `should_inline` says so of the callee replaced by its body, and so
/// within inlined bodies. Bodies of scans stay functions.
///
/// Inlined nodes carry the location of the call; the scope of the call and the name of the composite precede their own scope.
///
/// ```
/// use backfit_ir::{DType, FuncId, Graph, rewrite};
/// let g = Graph::new();
/// let double = g.function("double");
/// let x = double.input("x", DType::F32, [2]);
/// double.result("y", &(&x + &x));
/// let double = g.define(double).unwrap();
/// let x = g.input("x", DType::F32, [2]);
/// g.result("y", &g.call(double, &[&x])[0]);
/// let module = g.finish().unwrap();
/// let flat = rewrite::inline_calls(&module, module.find("main").unwrap(), |_| true);
/// assert_eq!(flat.nodes[0].op.name(), "add");
/// ```
///
/// # Panics
/// Where the module is not valid.
pub fn inline_calls(module: &Module, function: FuncId, should_inline: impl Fn(&Function) -> bool) -> Function {
    let mut out = Rewriter::new(module.function(function));
    let params: Vec<ValueId> = out.function.params.iter().map(|p| p.value).collect();
    let mut stack = vec![Frame::new(out.old, &params, None)];
    while let Some(frame) = stack.last_mut() {
        let Some(node) = frame.from.nodes.get(frame.next) else {
            leave(&mut stack, &mut out);
            continue;
        };
        frame.next += 1;
        match node.op {
            Op::Call(id) if should_inline(module.function(id)) => {
                let inner = frame.enter(node, module.function(id));
                stack.push(inner);
            }
            _ => {
                let operands = node.operands.iter().map(|&v| frame.value(v)).collect();
                let (loc, scope) = frame.origin(node);
                let types = frame.from.types(&node.results);
                let new = out.function.add_node(node.op.clone(), operands, types, scope, loc);
                node.results.iter().zip(new).for_each(|(old, new)| frame.map[old.index()] = Some(new));
            }
        }
    }
    out.finish()
}

/// Ends the innermost frame: its results become those of the call, or of the whole function.
fn leave(stack: &mut Vec<Frame>, out: &mut Rewriter) {
    let Some(inner) = stack.pop() else { return };
    match (stack.last_mut(), &inner.call) {
        (Some(outer), Some((results, ..))) => {
            for (old, result) in results.iter().zip(&inner.from.results) {
                outer.map[old.index()] = Some(inner.value(result.value));
            }
        }
        _ => out.map = inner.map,
    }
}
