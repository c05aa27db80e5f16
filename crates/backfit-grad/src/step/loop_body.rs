//! Functions as bodies of loops: their parameters in the order that a loop asks for.

use backfit_ir::{FuncId, Function, Graph, Loc, Role, Tensor, Type, ValueId, scope};
use std::collections::HashMap;

/// What stands for the values of a function elsewhere.
pub(super) type Values = HashMap<ValueId, Tensor>;

/// A loop body that does what a function does, under construction: declare carries, constants and slices, then replay
/// the function, then name the results.
pub(super) struct LoopBody<'a> {
    /// The body.
    pub graph: Graph,
    function: &'a Function,
    origin: &'a Loc,
    values: Values,
}

impl<'a> LoopBody<'a> {
    /// The body of a loop in the module of `parent`. What is not the function's own stands at `origin`.
    pub fn new(parent: &Graph, name: &str, function: &'a Function, origin: &'a Loc) -> Self {
        LoopBody { graph: parent.function(name), function, origin, values: Values::new() }
    }

    /// Builds nodes that are not the function's own.
    pub fn build<T>(&self, build: impl FnOnce() -> T) -> T {
        self.graph.originate(self.origin.clone(), scope::STEP.into(), build)
    }

    /// Parameters that stand for these of the function.
    pub fn take(&mut self, parameters: &[ValueId]) -> Vec<Tensor> {
        let function = self.function;
        let find = |value: &ValueId| function.params.iter().find(|p| p.value == *value).expect("a parameter");
        let mut taken = Vec::new();
        for param in parameters.iter().map(find) {
            let ty = function.ty(param.value).clone();
            let declare = || self.graph.parameter(&param.name, ty, Role::Input, None);
            taken.push(self.graph.originate(param.loc.clone(), "".into(), declare));
        }
        self.values.extend(parameters.iter().copied().zip(taken.iter().cloned()));
        taken
    }

    /// A parameter of its own.
    pub fn parameter(&self, name: &str, ty: Type) -> Tensor {
        self.build(|| self.graph.parameter(name, ty, Role::Input, None))
    }

    /// Lets a tensor stand for a parameter of the function.
    pub fn stand_for(&mut self, parameter: ValueId, tensor: Tensor) {
        self.values.insert(parameter, tensor);
    }

    /// Appends the nodes of the function.
    pub fn replay(&mut self) {
        for node in &self.function.nodes {
            let operands: Vec<&Tensor> = node.operands.iter().map(|v| &self.values[v]).collect();
            let push = || self.graph.push(node.op.clone(), &operands);
            let outputs = self.graph.originate(node.loc.clone(), node.scope.clone(), push);
            self.values.extend(node.results.iter().copied().zip(outputs));
        }
    }

    /// What stands for a value of the function.
    pub fn of(&self, value: ValueId) -> Tensor {
        self.values[&value].clone()
    }

    /// Ends the body; its results are the new carries and the outputs of an iteration. `None` where it had problems,
    /// which `parent` then has.
    pub fn end(self, parent: &Graph, carries: &[Tensor], outputs: &[Tensor]) -> Option<FuncId> {
        for (i, tensor) in carries.iter().chain(outputs).enumerate() {
            self.graph.result(&format!("y{i}"), tensor);
        }
        parent.define(self.graph)
    }
}

/// A type with a leading axis for the iterations of a loop.
pub(super) fn stacked(ty: &Type, iterations: usize) -> Type {
    ty.with_shape([&[iterations][..], &ty.shape].concat())
}
