//! Modules, functions, nodes and values: the data that every pass reads and rebuilds.

use crate::attributes::Attributes;
use crate::init::Init;
use crate::op::Op;
use crate::shape::Type;
use crate::taps::Taps;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// A line of source, usually the user's call that made a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Path of the file as the compiler saw it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

impl Loc {
    /// A location of the running program.
    pub fn of(location: &Location<'_>) -> Self {
        Loc { file: location.file().into(), line: location.line() }
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value within one function. Prints as `%7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The index into [`Function::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// A function within one module: an index into [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

impl FuncId {
    /// The index into [`Module::functions`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a parameter of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Fed anew at every run.
    Input,
    /// A learned tensor in the resident store. Frozen weights get neither gradient nor optimizer state.
    Weight {
        /// Whether an optimizer updates it.
        trainable: bool,
    },
    /// A tensor in the resident store that a step updates by itself: moments, running statistics, counters, keys.
    State,
    /// A number fed at every run and never baked: learning rate, bias corrections.
    Hyper,
}

impl Role {
    /// Whether the parameter lives in the resident store between runs.
    pub fn is_resident(self) -> bool {
        matches!(self, Role::Weight { .. } | Role::State)
    }
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Unique within the function.
    pub name: String,
    /// The value it defines.
    pub value: ValueId,
    /// What it is.
    pub role: Role,
    /// How a resident parameter starts.
    pub init: Option<Init>,
    /// Where it was declared.
    pub loc: Loc,
}

/// A result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionResult {
    /// Unique within the function.
    pub name: String,
    /// The value it returns.
    pub value: ValueId,
    /// The parameter whose storage it overwrites. All reads of the old value precede the write.
    pub alias: Option<usize>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// What it reads.
    pub operands: Vec<ValueId>,
    /// What it defines.
    pub results: Vec<ValueId>,
    /// Scope path, as in `encoder/3/attn`; empty at the top.
    pub scope: Arc<str>,
    /// The user's call that made it.
    pub loc: Loc,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The parameter with this index.
    Param(usize),
    /// A result of a node.
    Node {
        /// Index into [`Function::nodes`].
        node: usize,
        /// Which of its results.
        result: usize,
    },
}

/// A value: its type and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Type.
    pub ty: Type,
    /// Definition.
    pub def: Def,
}

/// The composite operator that a function is an instance of.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// The operator's name in the registry.
    pub name: String,
    /// Its attributes.
    pub attributes: Attributes,
}

/// A function in SSA form. Nodes stand in an order in which definitions precede uses.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Function {
    /// Unique within the module.
    pub name: String,
    /// Parameters.
    pub params: Vec<Param>,
    /// Operations, definitions before uses.
    pub nodes: Vec<Node>,
    /// Results.
    pub results: Vec<FunctionResult>,
    /// Every value; indexed by [`ValueId`].
    pub values: Vec<Value>,
    /// Set where this function is the body of a composite operator.
    pub composite: Option<Composite>,
    /// What is kept for the backward pass where the function is differentiated.
    pub taps: Taps,
}

impl Function {
    /// An empty function.
    pub fn new(name: impl Into<String>) -> Self {
        Function { name: name.into(), ..Function::default() }
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// The types of several values.
    pub fn types(&self, values: &[ValueId]) -> Vec<Type> {
        values.iter().map(|&v| self.ty(v).clone()).collect()
    }

    /// The node that defines a value, if it is not a parameter.
    pub fn node_of(&self, value: ValueId) -> Option<&Node> {
        match self.values[value.index()].def {
            Def::Node { node, .. } => Some(&self.nodes[node]),
            Def::Param(_) => None,
        }
    }

    /// The one number that a value has everywhere, where it is a constant, repeated or reshaped or not.
    pub fn splat(&self, value: ValueId) -> Option<f64> {
        let node = self.node_of(value)?;
        match &node.op {
            Op::Constant(literal) => literal.splat(),
            Op::Broadcast { .. } | Op::Reshape(_) => self.splat(node.operands[0]),
            _ => None,
        }
    }

    /// Adds a parameter.
    pub fn add_param(
        &mut self,
        name: impl Into<String>,
        ty: Type,
        role: Role,
        init: Option<Init>,
        loc: Loc,
    ) -> ValueId {
        let value = ValueId(self.values.len() as u32);
        self.values.push(Value { ty, def: Def::Param(self.params.len()) });
        self.params.push(Param { name: name.into(), value, role, init, loc });
        value
    }

    /// Adds a node at the end and returns the values it defines. `results` are the inferred result types.
    pub fn add_node(
        &mut self,
        op: Op,
        operands: Vec<ValueId>,
        results: Vec<Type>,
        scope: Arc<str>,
        loc: Loc,
    ) -> Vec<ValueId> {
        let node = self.nodes.len();
        let mut ids = Vec::with_capacity(results.len());
        for (result, ty) in results.into_iter().enumerate() {
            ids.push(ValueId(self.values.len() as u32));
            self.values.push(Value { ty, def: Def::Node { node, result } });
        }
        self.nodes.push(Node { op, operands, results: ids.clone(), scope, loc });
        ids
    }

    /// Adds a result.
    pub fn add_result(&mut self, name: impl Into<String>, value: ValueId, alias: Option<usize>) {
        self.results.push(FunctionResult { name: name.into(), value, alias });
    }

    /// The index of a parameter.
    pub fn param_index(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// The index of a result.
    pub fn result_index(&self, name: &str) -> Option<usize> {
        self.results.iter().position(|r| r.name == name)
    }

    /// How a value is called in messages: a parameter's name, or `op %id`.
    pub fn describe(&self, value: ValueId) -> String {
        match self.values[value.index()].def {
            Def::Param(i) => self.params[i].name.clone(),
            Def::Node { node, .. } => format!("{} {value}", self.nodes[node].op.name()),
        }
    }

    /// For every value, how many times operands and results use it.
    pub fn use_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.values.len()];
        let operands = self.nodes.iter().flat_map(|n| &n.operands);
        for value in operands.chain(self.results.iter().map(|r| &r.value)) {
            counts[value.index()] += 1;
        }
        counts
    }
}

/// A set of functions. A function calls only functions that stand before it, so there is no recursion.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Module {
    /// Functions, callees before callers.
    pub functions: Vec<Function>,
}

impl Module {
    /// The function behind an id.
    pub fn function(&self, id: FuncId) -> &Function {
        &self.functions[id.index()]
    }

    /// The function with this name.
    pub fn find(&self, name: &str) -> Option<FuncId> {
        self.functions.iter().position(|f| f.name == name).map(|i| FuncId(i as u32))
    }

    /// Adds a function; its name gets a suffix where it is taken.
    pub fn add(&mut self, mut function: Function) -> FuncId {
        if self.find(&function.name).is_some() {
            let base = function.name.clone();
            let free = (1..).map(|i| format!("{base}.{i}")).find(|n| self.find(n).is_none());
            function.name = free.unwrap_or(base);
        }
        self.functions.push(function);
        FuncId(self.functions.len() as u32 - 1)
    }
}
