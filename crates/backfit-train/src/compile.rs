//! From a training program to one that runs.

use crate::fingerprint::fingerprint;
use crate::masking::unmasked_results;
use backfit_compile::precision::Policy;
use backfit_compile::target::{Executable, Port, Program, Target};
use backfit_grad::{Optimizer, TapReport, TrainModule};
use backfit_ir::{FuncId, Problem, Result, Role};
use std::sync::Arc;

/// Compiles a training program for a target: `model.compile(&Cpu::default())?`.
pub trait Compile {
    /// Compiles the functions `init`, `step`, `eval` and, where the model predicts, `predict`, and runs `init` with seed 0.
    ///
    /// # Errors
    /// Where the target cannot carry out an operator; the error names it and the user's line.
    fn compile(&self, target: &dyn Target) -> Result<Compiled> {
        self.compile_with(target, &Policy::f32())
    }

    /// As [`Compile::compile`], in the dtypes of a precision policy. Inputs, results and the resident store keep theirs, so that
    /// checkpoints of one policy go on under another.
    ///
    /// # Errors
    /// As [`Compile::compile`].
    fn compile_with(&self, target: &dyn Target, precision: &Policy) -> Result<Compiled>;
}

/// A compiled training program with its weights. [`Trainer::new`](crate::Trainer::new) takes it.
pub struct Compiled {
    pub(crate) executable: Box<dyn Executable>,
    pub(crate) optimizer: Arc<dyn Optimizer>,
    pub(crate) init: Entry,
    pub(crate) step: Entry,
    pub(crate) eval: Entry,
    pub(crate) predict: Option<Entry>,
    /// Results of `eval` that padding rows would falsify.
    pub(crate) unmasked: Vec<String>,
    pub(crate) model: String,
    pub(crate) taps: Vec<TapReport>,
}

/// A compiled function: its number and what it is fed and returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub number: usize,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

impl Entry {
    /// The rows of a batch: the first extent of the first input.
    pub fn batch_size(&self) -> Option<usize> {
        let fed = self.inputs.iter().filter(|p| p.role == Role::Input);
        fed.filter_map(|p| p.ty.shape.first().copied()).next()
    }

    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|p| p.name == name)
    }
}

impl Compile for TrainModule {
    fn compile_with(&self, target: &dyn Target, precision: &Policy) -> Result<Compiled> {
        let named = |name: &str, id: FuncId| (name.to_owned(), id);
        let mut functions = vec![named("init", self.init), named("step", self.step), named("eval", self.eval)];
        functions.extend(self.predict.map(|id| named("predict", id)));
        let executable = target.compile(&Program::new(self.module.clone(), functions).precision(precision.clone()))?;
        let entry = |number: usize| {
            let signature = executable.signatures().get(number).cloned().unwrap_or_default();
            Entry { number, inputs: signature.inputs, outputs: signature.outputs }
        };
        let mut compiled = Compiled {
            init: entry(0),
            step: entry(1),
            eval: entry(2),
            predict: self.predict.map(|_| entry(3)),
            optimizer: self.optimizer.clone(),
            unmasked: unmasked_results(self.module.function(self.eval)),
            model: fingerprint(&self.module, self.eval),
            taps: self.taps.clone(),
            executable,
        };
        compiled.initialise(0)?;
        Ok(compiled)
    }
}

impl Compiled {
    /// The compiled program: memory, instructions, residents.
    pub fn executable(&self) -> &dyn Executable {
        &*self.executable
    }

    /// Fills the resident store anew; everything random in it stems from the seed.
    pub(crate) fn initialise(&mut self, seed: u64) -> Result<()> {
        let words = [seed as u32, (seed >> 32) as u32, 0, 0];
        if let Some(input) = self.init.inputs.iter().position(|p| p.name == "key") {
            let key = self.executable.input(self.init.number, input);
            key.chunks_exact_mut(4).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));
        }
        self.executable.run(self.init.number)
    }

    /// The number of a resident tensor, or which there are.
    pub(crate) fn resident(&self, name: &str) -> Result<&Port> {
        let residents = self.executable.residents();
        residents.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<&str> = residents.iter().map(|p| p.name.as_str()).collect();
            let problem = Problem::new(format!("the model has no weight or state '{name}'"));
            problem.help(format!("there are: {}", names.join(", "))).into()
        })
    }
}
