//! Training programs on the CPU, step by step.

use backfit_compile::target::{Executable, FunctionReport, Port, Program};
use backfit_cpu::{Cpu, CpuExecutable};
use backfit_grad::TrainModule;
use backfit_ir::{Error, Literal};
use std::collections::BTreeMap;

const INIT: usize = 0;
const STEP: usize = 1;

/// A compiled program in training.
pub struct Training {
    /// What was compiled.
    pub module: TrainModule,
    /// Steps taken.
    pub steps: u64,
    executable: CpuExecutable,
}

impl Training {
    /// Compiles `init` and `step` and runs `init` with a key of zeros.
    ///
    /// # Errors
    /// Where the module does not compile.
    pub fn new(module: TrainModule, cpu: &Cpu) -> Result<Self, Error> {
        let functions = vec![("init".to_owned(), module.init), ("step".to_owned(), module.step)];
        let mut executable = cpu.build(&Program::new(module.module.clone(), functions))?;
        executable.run(INIT)?;
        Ok(Training { module, steps: 0, executable })
    }

    /// Takes a step on these inputs, at the optimizer's learning rate, and returns the results by name.
    ///
    /// # Panics
    /// Where an input is missing or of another type, or the step fails.
    pub fn step(&mut self, inputs: &[(&str, Literal)]) -> BTreeMap<String, Literal> {
        self.steps += 1;
        let optimizer = &self.module.optimizer;
        let names = optimizer.hypers();
        let mut values = vec![0.0; names.len()];
        optimizer.hyper_values(self.steps, optimizer.learning_rate(), &mut values);
        for (i, port) in self.executable.signatures()[STEP].inputs.clone().iter().enumerate() {
            let value = match names.iter().position(|name| *name == port.name) {
                Some(at) => Literal::scalar(port.ty.dtype, values[at]),
                None => {
                    let given = inputs.iter().find(|(name, _)| *name == port.name);
                    given.unwrap_or_else(|| panic!("'{}' is not given", port.name)).1.clone()
                }
            };
            assert_eq!(value.ty(), &port.ty, "{}", port.name);
            self.executable.input(STEP, i).copy_from_slice(value.bytes());
        }
        self.executable.run(STEP).expect("a step");
        let read = |(i, port): (usize, &Port)| {
            let value = Literal::from_bytes(port.ty.clone(), self.executable.output(STEP, i));
            (port.name.clone(), value.expect("as many bytes as the type says"))
        };
        self.executable.signatures()[STEP].outputs.iter().enumerate().map(read).collect()
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
