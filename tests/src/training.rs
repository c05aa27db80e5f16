//! Training programs on the CPU, step by step.

use backfit_compile::StageReport;
use backfit_compile::precision::Policy;
use backfit_compile::target::{Executable, FunctionReport, Port, Program};
use backfit_cpu::{Cpu, CpuExecutable};
use backfit_grad::TrainModule;
use backfit_ir::{Error, Literal};
use std::collections::BTreeMap;

const INIT: usize = 0;
const STEP: usize = 1;
const EVAL: usize = 2;

/// A compiled program in training.
pub struct Training {
    /// What was compiled.
    pub module: TrainModule,
    /// Steps taken.
    pub steps: u64,
    executable: CpuExecutable,
}

impl Training {
    /// Compiles `init`, `step` and `eval` and runs `init` with a key of zeros.
    ///
    /// # Errors
    /// Where the module does not compile.
    pub fn new(module: TrainModule, cpu: &Cpu) -> Result<Self, Error> {
        Self::with_policy(module, cpu, &Policy::f32())
    }

    /// As [`Training::new`], in the dtypes of a precision policy.
    ///
    /// # Errors
    /// Where the module does not compile.
    pub fn with_policy(module: TrainModule, cpu: &Cpu, policy: &Policy) -> Result<Self, Error> {
        let functions = [("init", module.init), ("step", module.step), ("eval", module.eval)];
        let functions = functions.map(|(name, id)| (name.to_owned(), id)).to_vec();
        let mut executable = cpu.build(&Program::new(module.module.clone(), functions).precision(policy.clone()))?;
        executable.run(INIT)?;
        Ok(Training { module, steps: 0, executable })
    }

    /// What the stages between graph and target did.
    pub fn stages(&self) -> &[StageReport] {
        self.executable.stages()
    }

    /// What the next step is fed: these inputs, and the hyper-parameters at the optimizer's learning rate.
    ///
    /// # Panics
    /// Where an input is missing or of another type.
    pub fn fed(&self, inputs: &[(&str, Literal)]) -> Vec<(String, Literal)> {
        let optimizer = &self.module.optimizer;
        let names = optimizer.hypers();
        let mut values = vec![0.0; names.len()];
        optimizer.hyper_values(self.steps + 1, optimizer.learning_rate(), &mut values);
        let value = |port: &Port| match names.iter().position(|name| *name == port.name) {
            Some(at) => Literal::scalar(port.ty.dtype, values[at]),
            None => given(inputs, port),
        };
        let ports = &self.executable.signatures()[STEP].inputs;
        ports.iter().map(|port| (port.name.clone(), value(port))).collect()
    }

    /// Takes a step on these inputs, at the optimizer's learning rate, and returns the results by name.
    ///
    /// # Panics
    /// Where an input is missing or of another type, or the step fails.
    pub fn step(&mut self, inputs: &[(&str, Literal)]) -> BTreeMap<String, Literal> {
        let fed = self.fed(inputs);
        self.steps += 1;
        self.run(STEP, fed.into_iter().map(|(_, value)| value))
    }

    /// Evaluates these inputs and returns the results by name.
    ///
    /// # Panics
    /// Where an input is missing or of another type, or it fails.
    pub fn eval(&mut self, inputs: &[(&str, Literal)]) -> BTreeMap<String, Literal> {
        let ports = self.executable.signatures()[EVAL].inputs.clone();
        self.run(EVAL, ports.iter().map(|port| given(inputs, port)))
    }

    fn run(&mut self, function: usize, inputs: impl Iterator<Item = Literal>) -> BTreeMap<String, Literal> {
        for (i, value) in inputs.enumerate() {
            self.executable.input(function, i).copy_from_slice(value.bytes());
        }
        self.executable.run(function).expect("a run");
        let read = |(i, port): (usize, &Port)| {
            let value = Literal::from_bytes(port.ty.clone(), self.executable.output(function, i));
            (port.name.clone(), value.expect("as many bytes as the type says"))
        };
        self.executable.signatures()[function].outputs.iter().enumerate().map(read).collect()
    }

    /// A tensor of the resident store.
    ///
    /// # Panics
    /// Where there is none of this name.
    pub fn read(&self, name: &str) -> Literal {
        self.executable.read(name).unwrap_or_else(|| panic!("there is no '{name}' in the resident store"))
    }

    /// The resident store.
    pub fn residents(&self) -> BTreeMap<String, Literal> {
        self.module.residents.iter().map(|r| (r.name.clone(), self.read(&r.name))).collect()
    }

    /// What the compiled step looks like.
    ///
    /// # Panics
    /// Never: a training has a step.
    pub fn report(&self) -> FunctionReport {
        self.executable.functions().remove(STEP)
    }
}

fn given(inputs: &[(&str, Literal)], port: &Port) -> Literal {
    let given = inputs.iter().find(|(name, _)| *name == port.name);
    let value = &given.unwrap_or_else(|| panic!("'{}' is not given", port.name)).1;
    assert_eq!(value.ty(), &port.ty, "{}", port.name);
    value.clone()
}
