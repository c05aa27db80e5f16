//! Building graphs: [`Graph`], [`Tensor`], scopes, parameters, composites.

use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Place, Problem};
use crate::graph::{Composite, Def, FuncId, Function, Loc, Module, Role, ValueId};
use crate::init::Init;
use crate::literal::Literal;
use crate::op::Op;
use crate::ops::definition::{Body, Kind, OpDef};
use crate::random::RNG_KEY;
use crate::scope;
use crate::shape::{MAX_RANK, Shape, Type};
use crate::taps::Taps;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A function under construction, within a module.
///
/// Cloning gives another handle to the same function. Wrong operations make *poison* tensors that
/// silently swallow what is done to them; [`Graph::finish`] reports every problem at once.
///
/// ```
/// use backfit_ir::{DType, Graph};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [2, 3]);
/// let y = &x + &x.exp();
/// assert_eq!(y.ty().to_string(), "f32[2,3]");
/// g.result("y", &y);
/// let module = g.finish().unwrap();
/// assert_eq!(module.functions.last().unwrap().results[0].name, "y");
/// ```
#[derive(Clone)]
pub struct Graph {
    shared: Arc<Mutex<Shared>>,
    state: Arc<Mutex<State>>,
}

/// What all functions of a module under construction share.
#[derive(Default)]
struct Shared {
    module: Module,
    composites: HashMap<String, FuncId>,
    definitions: HashMap<String, &'static OpDef>,
}

struct State {
    function: Function,
    problems: Vec<Problem>,
    scope: Vec<String>,
    /// Overrides the caller's location and scope: derivative rules and bodies speak for the node they stem from.
    origin: Option<(Loc, Arc<str>)>,
    dims: Vec<(String, usize)>,
    sites: u32,
}

/// A scope that [`Graph::enter`] has entered; dropped, it is left.
pub struct ScopeGuard {
    graph: Graph,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        lock(&self.graph.state).scope.pop();
    }
}

/// A named extent, bound to a size for one specialization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    name: Option<String>,
    size: usize,
}

impl Dim {
    /// The extent.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim { name: None, size }
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

impl Default for Graph {
    fn default() -> Self {
        Graph::new()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Graph {
    /// An empty function `main` in an empty module.
    pub fn new() -> Self {
        Graph::with_shared(Arc::default(), "main")
    }

    /// Another, empty function of the same module. [`Graph::define`] ends it.
    pub fn function(&self, name: &str) -> Graph {
        Graph::with_shared(self.shared.clone(), name)
    }

    fn with_shared(shared: Arc<Mutex<Shared>>, name: &str) -> Self {
        let function = Function::new(name);
        let state =
            State { function, problems: Vec::new(), scope: Vec::new(), origin: None, dims: Vec::new(), sites: 0 };
        Graph { shared, state: Arc::new(Mutex::new(state)) }
    }

    /// Continues a function of a finished module: `module` must hold it as its last function.
    /// The tensors of its parameters and results are found with [`Graph::parameter`] and [`Graph::tensor`].
    pub fn resume(mut module: Module) -> Option<Self> {
        let mut function = module.functions.pop()?;
        let graph = Graph::new();
        function.results.clear();
        lock(&graph.shared).module = module;
        lock(&graph.state).function = function;
        Some(graph)
    }

    /// Whether two handles stand for the same function.
    pub fn same(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    // ---- parameters, results, scopes ----

    /// An input that is fed at every run.
    #[track_caller]
    pub fn input<D: Into<Dim>, const N: usize>(&self, name: &str, dtype: DType, dims: [D; N]) -> Tensor {
        let dims: Vec<Dim> = dims.map(Into::into).into();
        let shape: Vec<usize> = dims.iter().map(Dim::size).collect();
        self.parameter(name, Type::new(dtype, shape), Role::Input, None)
    }

    /// A named extent; the same name must always have the same size.
    #[track_caller]
    pub fn dim(&self, name: &str, size: usize) -> Dim {
        let known = lock(&self.state).dims.iter().find(|(n, _)| n == name).map(|(_, s)| *s);
        match known {
            Some(other) if other != size => {
                let what = format!("dimension '{name}' is {size} here and {other} before");
                self.problem(Problem::new(what).help("give the two dimensions different names"), Location::caller());
            }
            Some(_) => {}
            None => lock(&self.state).dims.push((name.to_owned(), size)),
        }
        Dim { name: Some(name.to_owned()), size }
    }

    /// The named extents, in order of their first use.
    pub fn dims(&self) -> Vec<(String, usize)> {
        lock(&self.state).dims.clone()
    }

    /// A trainable weight. Its full name is the scope path joined by dots.
    #[track_caller]
    pub fn weight(&self, name: &str, ty: Type, init: Init) -> Tensor {
        self.parameter(&self.qualified(name), ty, Role::Weight { trainable: true }, Some(init))
    }

    /// A tensor in the resident store that steps update with [`Graph::update`] and optimizers do not.
    #[track_caller]
    pub fn state(&self, name: &str, ty: Type, init: Init) -> Tensor {
        self.parameter(&self.qualified(name), ty, Role::State, Some(init))
    }

    /// A number that is fed at every run and never baked: a learning rate.
    #[track_caller]
    pub fn hyper(&self, name: &str, dtype: DType) -> Tensor {
        self.parameter(name, Type::new(dtype, []), Role::Hyper, None)
    }

    /// A name within the scopes that are open: `block/attn` and `weight` give `block.attn.weight`.
    pub fn qualified(&self, name: &str) -> String {
        let mut path = lock(&self.state).scope.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path + name
    }

    /// A parameter of any role, under exactly this name.
    #[track_caller]
    pub fn parameter(&self, name: &str, ty: Type, role: Role, init: Option<Init>) -> Tensor {
        let caller = Location::caller();
        let flaw = self.type_flaw(&ty).or_else(|| {
            if name == RNG_KEY && ty != Type::new(DType::U32, [4]) {
                return Some(format!("'{RNG_KEY}' is the name of the random key, a u32[4]"));
            }
            let taken = lock(&self.state).function.param_index(name).is_some();
            taken.then(|| format!("there is already a parameter named '{name}'"))
        });
        if let Some(what) = flaw {
            self.problem(Problem::new(what), caller);
            return self.poison(ty);
        }
        let loc = self.location(caller).0;
        let value = lock(&self.state).function.add_param(name, ty.clone(), role, init, loc);
        self.tensor(value)
    }

    fn type_flaw(&self, ty: &Type) -> Option<String> {
        if ty.shape.rank() > MAX_RANK {
            return Some(format!("{ty} has rank {}; at most {MAX_RANK} is supported", ty.shape.rank()));
        }
        ty.shape.checked_elements().is_none().then(|| format!("{ty} is too large to address"))
    }

    /// Names a result of the function.
    #[track_caller]
    pub fn result(&self, name: &str, tensor: &Tensor) {
        self.add_result(name, tensor, None);
    }

    /// Says that a run writes `new` into the storage of a resident parameter.
    #[track_caller]
    pub fn update(&self, parameter: &Tensor, new: &Tensor) {
        let caller = Location::caller();
        let (Some(old), Some(_)) = (parameter.value, new.value) else { return };
        let found = {
            let state = lock(&self.state);
            match state.function.values[old.index()].def {
                Def::Param(i) => Some((i, state.function.params[i].name.clone())),
                Def::Node { .. } => None,
            }
        };
        let Some((index, name)) = found else {
            let what = format!("{} is not a parameter, so it cannot be updated", self.describe(parameter));
            return self.problem(Problem::new(what).help("make it with `state` or `weight`"), caller);
        };
        if parameter.ty != new.ty {
            let what = format!("'{name}' is {} and cannot be updated with {}", parameter.ty, new.ty);
            return self.problem(Problem::new(what), caller);
        }
        self.add_result(&name, new, Some(index));
    }

    #[track_caller]
    fn add_result(&self, name: &str, tensor: &Tensor, alias: Option<usize>) {
        let caller = Location::caller();
        let Some(value) = self.own(tensor, caller) else { return };
        if lock(&self.state).function.result_index(name).is_some() {
            let what = format!("there is already a result named '{name}'");
            return self.problem(Problem::new(what), caller);
        }
        lock(&self.state).function.add_result(name, value, alias);
    }

    /// Runs `build` within a scope; names of weights and paths of nodes get it as a component.
    /// A name must not end with `()`: that marks what the compiler adds.
    #[track_caller]
    pub fn scope<T>(&self, name: &str, build: impl FnOnce() -> T) -> T {
        let _scope = self.enter(name);
        build()
    }

    /// Enters a scope, as [`Graph::scope`] does, until the guard is dropped. Unlike with a closure, what a
    /// `#[track_caller]` function then builds has the line of its caller.
    ///
    /// ```
    /// use backfit_ir::{DType, Graph, Init, Type};
    /// let g = Graph::new();
    /// let guard = g.enter("fc1");
    /// g.weight("weight", Type::new(DType::F32, [2, 3]), Init::ZEROS);
    /// drop(guard);
    /// assert!(g.inspect(|f| f.param_index("fc1.weight")).is_some());
    /// ```
    #[track_caller]
    #[must_use = "the scope ends where the guard is dropped"]
    pub fn enter(&self, name: &str) -> ScopeGuard {
        if scope::is_reserved(name) {
            let problem = Problem::new(format!("a scope cannot be named '{name}'"));
            let problem = problem.because("names that end with '()' mark what the compiler adds");
            self.problem(problem.help("leave out the '()'"), Location::caller());
        }
        lock(&self.state).scope.push(name.to_owned());
        ScopeGuard { graph: self.clone() }
    }

    /// Runs `build` so that the nodes it makes carry this location and scope.
    pub fn originate<T>(&self, loc: Loc, scope: Arc<str>, build: impl FnOnce() -> T) -> T {
        let before = lock(&self.state).origin.replace((loc, scope));
        let out = build();
        lock(&self.state).origin = before;
        out
    }

    /// Runs `build` so that the nodes it makes have the line of the caller, whoever makes them.
    #[track_caller]
    pub fn at_caller<T>(&self, build: impl FnOnce() -> T) -> T {
        self.at(Location::caller(), build)
    }

    fn at<T>(&self, caller: &'static Location<'static>, build: impl FnOnce() -> T) -> T {
        let (loc, scope) = self.location(caller);
        self.originate(loc, scope, build)
    }

    /// A number that is different at every call within this function: the site of a random operator.
    pub fn next_site(&self) -> u32 {
        let mut state = lock(&self.state);
        state.sites += 1;
        state.sites
    }

    // ---- nodes ----

    /// Adds a primitive and returns its results. This is what every builder method comes down to.
    #[track_caller]
    pub fn push(&self, op: Op, operands: &[&Tensor]) -> Vec<Tensor> {
        let caller = Location::caller();
        let Some(ids) = self.own_all(operands, caller) else {
            return self.poisoned(&op, operands);
        };
        let types: Vec<Type> = operands.iter().map(|t| t.ty.clone()).collect();
        let inferred = self.infer(&op, &types).and_then(|results| {
            let flaw = results.iter().find_map(|ty| self.type_flaw(ty));
            flaw.map_or(Ok(results), Err)
        });
        match inferred {
            Ok(results) => {
                let (loc, scope) = self.location(caller);
                let values = lock(&self.state).function.add_node(op, ids, results, scope, loc);
                values.into_iter().map(|v| self.tensor(v)).collect()
            }
            Err(why) => {
                self.problem(Problem::new(format!("{}: {why}", op.name())), caller);
                self.poisoned(&op, operands)
            }
        }
    }

    /// Adds a primitive that has one result.
    #[track_caller]
    pub fn push1(&self, op: Op, operands: &[&Tensor]) -> Tensor {
        self.push(op, operands).swap_remove(0)
    }

    fn infer(&self, op: &Op, operands: &[Type]) -> Result<Vec<Type>, String> {
        match op {
            Op::Call(function) => crate::ops::call::infer(&lock(&self.shared).module, *function, operands),
            Op::Scan(scan) => crate::ops::scan::infer(&lock(&self.shared).module, scan, operands),
            op => (op.primitive().infer)(op, operands),
        }
    }

    fn poisoned(&self, op: &Op, operands: &[&Tensor]) -> Vec<Tensor> {
        let guess = operands.first().map_or(Type::new(DType::F32, []), |t| t.ty.clone());
        let count = match op {
            Op::Call(f) => lock(&self.shared).module.function(*f).results.len(),
            Op::Scan(scan) => lock(&self.shared).module.function(scan.body).results.len(),
            Op::Sort { .. } | Op::Barrier => operands.len(),
            _ => 1,
        };
        vec![self.poison(guess); count.max(1)]
    }

    /// Calls a composite operator: a function with a name and attributes, built once per module for these types.
    #[track_caller]
    pub fn composite(&self, def: &'static OpDef, operands: &[&Tensor], attributes: Attributes) -> Vec<Tensor> {
        let caller = Location::caller();
        let Kind::Composite(rules) = &def.kind else {
            self.problem(Problem::new(format!("'{}' is a primitive, not a composite", def.name)), caller);
            return vec![self.poison(Type::new(DType::F32, []))];
        };
        let guess = operands.first().map_or(Type::new(DType::F32, []), |t| t.ty.clone());
        let poison = || vec![self.poison(guess.clone()); rules.results];
        if self.own_all(operands, caller).is_none() {
            return poison();
        }
        let types: Vec<Type> = operands.iter().map(|t| t.ty.clone()).collect();
        if let Err(why) = (rules.check)(&types, &attributes) {
            self.problem(Problem::new(format!("{}: {why}", def.name)), caller);
            return poison();
        }
        match self.instantiate(def, &types, attributes, false, caller) {
            Some(function) => self.at(caller, || self.push(Op::Call(function), operands)),
            None => poison(),
        }
    }

    /// The function of a composite for these operand types; `inference` asks for its body outside training.
    /// Problems of the body are reported at `caller`.
    pub fn instantiate(
        &self,
        def: &'static OpDef,
        types: &[Type],
        attributes: Attributes,
        inference: bool,
        caller: &'static Location<'static>,
    ) -> Option<FuncId> {
        let Kind::Composite(rules) = &def.kind else { return None };
        let mut key = format!("{} {attributes}", def.name);
        types.iter().for_each(|ty| key.push_str(&format!(" {ty}")));
        let build = if inference { rules.inference.unwrap_or(rules.body) } else { rules.body };
        if inference && rules.inference.is_some() {
            key.push_str(" inference");
        }
        if let Some(&known) = lock(&self.shared).composites.get(&key) {
            return Some(known);
        }
        let loc = self.location(caller).0;
        let body = self.function(def.name);
        // One body serves many calls, so its scopes are relative to the call's.
        let results = body.originate(loc.clone(), "".into(), || {
            let operands: Vec<Tensor> = types
                .iter()
                .enumerate()
                .map(|(i, ty)| body.parameter(&format!("x{i}"), ty.clone(), Role::Input, None))
                .collect();
            build(&Body { graph: &body, operands: &operands, attributes: &attributes })
        });
        for (i, result) in results.iter().enumerate() {
            body.result(&format!("y{i}"), result);
        }
        let problems = std::mem::take(&mut lock(&body.state).problems);
        if !problems.is_empty() {
            for problem in problems {
                let problem = problem.because(format!("it is part of '{}'", def.name));
                lock(&self.state).problems.push(Problem { place: Some(Place::Source(loc.clone())), ..problem });
            }
            return None;
        }
        let mut function = std::mem::take(&mut lock(&body.state).function);
        function.composite = Some(Composite { name: def.name.to_owned(), attributes });
        let mut shared = lock(&self.shared);
        let id = shared.module.add(function);
        shared.composites.insert(key, id);
        shared.definitions.insert(def.name.to_owned(), def);
        Some(id)
    }

    /// Ends a function made with [`Graph::function`] and adds it to the module, so that it can be called.
    /// `None` where it had problems; they are then reported by `self`.
    pub fn define(&self, function: Graph) -> Option<FuncId> {
        let mut body = lock(&function.state);
        let problems = std::mem::take(&mut body.problems);
        if !problems.is_empty() {
            let name = body.function.name.clone();
            lock(&self.state)
                .problems
                .extend(problems.into_iter().map(|p| p.because(format!("it is part of function '{name}'"))));
            return None;
        }
        Some(lock(&self.shared).module.add(std::mem::take(&mut body.function)))
    }

    /// Calls a function of the module.
    #[track_caller]
    pub fn call(&self, function: FuncId, operands: &[&Tensor]) -> Vec<Tensor> {
        self.push(Op::Call(function), operands)
    }

    /// Says what this function keeps for the backward pass; without it, all that the backward pass needs.
    pub fn taps(&self, taps: Taps) {
        lock(&self.state).function.taps = taps;
    }

    // ---- looking inside ----

    /// The tensor of a value of this function.
    pub fn tensor(&self, value: ValueId) -> Tensor {
        let ty = lock(&self.state).function.ty(value).clone();
        Tensor { graph: self.clone(), value: Some(value), ty }
    }

    /// A tensor that stands for a failed operation.
    pub fn poison(&self, ty: Type) -> Tensor {
        Tensor { graph: self.clone(), value: None, ty }
    }

    /// Reads the function under construction.
    pub fn inspect<T>(&self, read: impl FnOnce(&Function) -> T) -> T {
        read(&lock(&self.state).function)
    }

    /// Changes the function under construction; for passes that rewrite nodes in place.
    pub fn rewrite<T>(&self, change: impl FnOnce(&mut Function) -> T) -> T {
        change(&mut lock(&self.state).function)
    }

    /// Reads the functions that are defined so far.
    pub fn module<T>(&self, read: impl FnOnce(&Module) -> T) -> T {
        read(&lock(&self.shared).module)
    }

    /// Adds a finished function to the module.
    pub fn add_function(&self, function: Function) -> FuncId {
        lock(&self.shared).module.add(function)
    }

    /// The definition of a composite: one that was called here, or one of Backfit's own.
    pub fn definition(&self, name: &str) -> Option<&'static OpDef> {
        let known = lock(&self.shared).definitions.get(name).copied();
        known.or_else(|| crate::ops::find(name))
    }

    /// Reports a problem at a place of the user's source.
    pub fn problem(&self, problem: Problem, caller: &'static Location<'static>) {
        let (loc, _) = self.location(caller);
        let problem = if problem.place.is_none() { problem.at(Place::Source(loc)) } else { problem };
        lock(&self.state).problems.push(problem);
    }

    /// The problems so far.
    pub fn problems(&self) -> Vec<Problem> {
        lock(&self.state).problems.clone()
    }

    /// The module with this function as its last one, or every problem at once. The graph can be built on afterwards.
    ///
    /// # Errors
    /// Everything that went wrong while building.
    pub fn finish(&self) -> Result<Module, Error> {
        if let Some(error) = Error::from_problems(self.problems()) {
            return Err(error);
        }
        let mut module = lock(&self.shared).module.clone();
        module.add(lock(&self.state).function.clone());
        Ok(module)
    }

    fn location(&self, caller: &'static Location<'static>) -> (Loc, Arc<str>) {
        let state = lock(&self.state);
        state.origin.clone().unwrap_or_else(|| (Loc::of(caller), state.scope.join("/").into()))
    }

    fn describe(&self, tensor: &Tensor) -> String {
        tensor.value.map_or("a failed operation".to_owned(), |v| lock(&self.state).function.describe(v))
    }

    /// The value of an operand; `None` for poison and for a tensor of another function, which is reported.
    fn own(&self, tensor: &Tensor, caller: &'static Location<'static>) -> Option<ValueId> {
        if !self.same(&tensor.graph) {
            let what = "an operand belongs to another graph".to_owned();
            self.problem(Problem::new(what).help("pass it as an input or operand of this function"), caller);
            return None;
        }
        tensor.value
    }

    fn own_all(&self, tensors: &[&Tensor], caller: &'static Location<'static>) -> Option<Vec<ValueId>> {
        let own: Vec<_> = tensors.iter().map(|t| self.own(t, caller)).collect();
        own.into_iter().collect()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({})", lock(&self.state).function.name)
    }
}

/// A value of a graph under construction. Operators are its methods; each has its own file under `ops`.
#[derive(Clone)]
pub struct Tensor {
    graph: Graph,
    value: Option<ValueId>,
    ty: Type,
}

impl Tensor {
    /// The type. For poison a guess.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.ty.shape.rank()
    }

    /// The extent of an axis, negative from the end; 1 where there is no such axis.
    pub fn dim(&self, axis: i64) -> usize {
        axis_index(axis, self.rank()).map_or(1, |a| self.ty.shape[a])
    }

    /// The function it belongs to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The value; `None` for poison.
    pub fn value(&self) -> Option<ValueId> {
        self.value
    }

    /// A scalar or filled constant with this tensor's dtype and shape.
    #[track_caller]
    pub fn like(&self, value: f64) -> Tensor {
        self.graph.full(self.ty.clone(), value)
    }

    /// Reports a problem with this operation and returns poison of the same type. Of poison nothing is reported: its
    /// type is a guess.
    #[track_caller]
    pub fn fail(&self, what: impl Into<String>) -> Tensor {
        if self.value.is_some() {
            self.graph.problem(Problem::new(what), Location::caller());
        }
        self.graph.poison(self.ty.clone())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{value}: {}", self.ty),
            None => write!(f, "poison: {}", self.ty),
        }
    }
}

/// An axis counted from the front; negative counts from the end. `None` where it is out of range.
pub fn axis_index(axis: i64, rank: usize) -> Option<usize> {
    let index = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(index).ok().filter(|&a| a < rank)
}

impl Graph {
    /// A constant.
    #[track_caller]
    pub fn constant(&self, literal: Literal) -> Tensor {
        self.push1(Op::Constant(literal), &[])
    }

    /// A scalar constant.
    #[track_caller]
    pub fn scalar(&self, dtype: DType, value: f64) -> Tensor {
        self.constant(Literal::scalar(dtype, value))
    }

    /// A tensor with the same number everywhere: a scalar constant, broadcast.
    #[track_caller]
    pub fn full(&self, ty: Type, value: f64) -> Tensor {
        let scalar = self.scalar(ty.dtype, value);
        if ty.shape.rank() == 0 {
            scalar
        } else {
            self.push1(Op::Broadcast { shape: ty.shape, axes: vec![] }, &[&scalar])
        }
    }
}
