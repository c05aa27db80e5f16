//! Shuttle mode: a resident store on the host, passed into a program and out of it at every run.

use crate::pipeline::StageReport;
use crate::precision;
use crate::target::{Executable, FunctionReport, MemoryReport, Port, Program, Signature, Target};
use backfit_ir::{Error, FuncId, Literal, Problem, Role};

/// A target on which nothing stays between runs: every resident tensor is an input of each function that reads it, and a
/// result of each that updates it. For targets without memory of their own; and a baseline, with the same bits.
///
/// ```
/// use backfit_compile::shuttle::Shuttle;
/// use backfit_compile::target::{Executable, Program, Target};
/// # use backfit_compile::{pipeline::StageReport, target::{FunctionReport, MemoryReport, Port, Signature}};
/// # fn demo(cpu: &dyn Target, program: &Program) -> backfit_ir::Result<()> {
/// let executable = Shuttle::new(cpu).compile(program)?;
/// # Ok(())
/// # }
/// ```
pub struct Shuttle<'t> {
    target: &'t dyn Target,
}

impl<'t> Shuttle<'t> {
    /// Runs programs on this target.
    pub fn new(target: &'t dyn Target) -> Self {
        Shuttle { target }
    }
}

impl Target for Shuttle<'_> {
    fn name(&self) -> &'static str {
        self.target.name()
    }

    fn compile(&self, program: &Program) -> Result<Box<dyn Executable>, Error> {
        let (passed, store) = pass(program);
        let inner = self.target.compile(&passed)?;
        let routes: Vec<Route> = inner.signatures().iter().map(|s| Route::of(s, &store)).collect();
        let signatures = inner.signatures().iter().zip(&routes).map(|(s, route)| route.outer(s)).collect();
        let state = store.iter().map(|port| vec![0; port.ty.bytes()]).collect();
        Ok(Box::new(Shuttled { inner, store, state, routes, signatures }))
    }
}

/// The same program with the resident store as inputs and results, whose names begin with [`STATE`].
fn pass(program: &Program) -> (Program, Vec<Port>) {
    // The policy tells how the store looks, and would not know it again among inputs.
    let roots: Vec<FuncId> = program.functions.iter().map(|(_, id)| *id).collect();
    let (module, roots, _) = precision::apply(&program.module, &roots, &program.precision);
    let functions = program.functions.iter().zip(roots).map(|((name, _), id)| (name.clone(), id)).collect();
    let mut program = Program::new(module, functions);
    let mut store: Vec<Port> = Vec::new();
    for (_, id) in &program.functions {
        let function = &mut program.module.functions[id.index()];
        for param in function.params.iter_mut().filter(|p| p.role.is_resident()) {
            if store.iter().all(|port| port.name != param.name) {
                let ty = function.values[param.value.index()].ty.clone();
                store.push(Port { name: param.name.clone(), ty, role: param.role });
            }
            param.name = format!("{STATE}{}", param.name);
            (param.role, param.init) = (Role::Input, None);
        }
        for result in function.results.iter_mut().filter(|r| r.alias.is_some()) {
            result.name = format!("{STATE}{}", result.name);
            result.alias = None;
        }
    }
    (program, store)
}

/// What the names of inputs and results that are passed begin with.
const STATE: &str = "state ";

/// How the inputs and results of a function are divided.
struct Route {
    /// Inputs that the user feeds, and results that they read.
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// (input or result, number in the store).
    passed_in: Vec<(usize, usize)>,
    passed_out: Vec<(usize, usize)>,
}

impl Route {
    fn of(signature: &Signature, store: &[Port]) -> Self {
        let in_store = |port: &Port| {
            let name = port.name.strip_prefix(STATE)?;
            store.iter().position(|known| known.name == name)
        };
        let split = |ports: &[Port]| {
            let (mut own, mut passed) = (Vec::new(), Vec::new());
            for (number, port) in ports.iter().enumerate() {
                match in_store(port) {
                    Some(at) => passed.push((number, at)),
                    None => own.push(number),
                }
            }
            (own, passed)
        };
        let ((inputs, passed_in), (outputs, passed_out)) = (split(&signature.inputs), split(&signature.outputs));
        Route { inputs, outputs, passed_in, passed_out }
    }

    /// The signature without what is passed.
    fn outer(&self, inner: &Signature) -> Signature {
        let pick = |ports: &[Port], numbers: &[usize]| numbers.iter().map(|&n| ports[n].clone()).collect();
        Signature {
            name: inner.name.clone(),
            inputs: pick(&inner.inputs, &self.inputs),
            outputs: pick(&inner.outputs, &self.outputs),
        }
    }
}

/// A compiled program with its resident store on the host.
struct Shuttled {
    inner: Box<dyn Executable>,
    store: Vec<Port>,
    state: Vec<Vec<u8>>,
    routes: Vec<Route>,
    signatures: Vec<Signature>,
}

impl Executable for Shuttled {
    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn residents(&self) -> &[Port] {
        &self.store
    }

    fn input(&mut self, function: usize, input: usize) -> &mut [u8] {
        self.inner.input(function, self.routes[function].inputs[input])
    }

    fn output(&self, function: usize, output: usize) -> &[u8] {
        self.inner.output(function, self.routes[function].outputs[output])
    }

    fn run(&mut self, function: usize) -> Result<(), Error> {
        let route = &self.routes[function];
        for &(input, at) in &route.passed_in {
            self.inner.input(function, input).copy_from_slice(&self.state[at]);
        }
        self.inner.run(function)?;
        for &(output, at) in &route.passed_out {
            self.state[at].copy_from_slice(self.inner.output(function, output));
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Option<Literal> {
        let at = self.store.iter().position(|port| port.name == name)?;
        Literal::from_bytes(self.store[at].ty.clone(), self.state[at].as_slice())
    }

    fn write(&mut self, name: &str, value: &Literal) -> Result<(), Error> {
        let Some(at) = self.store.iter().position(|port| port.name == name) else {
            return Err(Problem::new(format!("there is no resident tensor '{name}'")).into());
        };
        let ty = &self.store[at].ty;
        if ty != value.ty() {
            return Err(Problem::new(format!("'{name}' is {ty}, the value is {}", value.ty())).into());
        }
        self.state[at].copy_from_slice(value.bytes());
        Ok(())
    }

    fn flushes_subnormals(&self) -> bool {
        self.inner.flushes_subnormals()
    }

    fn memory(&self) -> MemoryReport {
        self.inner.memory()
    }

    fn functions(&self) -> Vec<FunctionReport> {
        self.inner.functions()
    }

    fn stages(&self) -> &[StageReport] {
        self.inner.stages()
    }
}
