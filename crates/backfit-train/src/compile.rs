//! From a training program to one that runs.

use crate::fingerprint::fingerprint;
use crate::masking::unmasked_results;
use backfit_compile::precision::{Masters, Policy};
use backfit_compile::target::{Executable, Port, Program, Signature, Target};
use backfit_grad::TrainModule;
use backfit_ir::{FuncId, Problem, Result, Role};

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
    /// What was compiled.
    pub(crate) program: TrainModule,
    pub(crate) precision: Policy,
    pub(crate) entries: Entries,
    /// Results of `eval` that padding rows would falsify.
    pub(crate) unmasked: Vec<String>,
    pub(crate) model: String,
}

/// The compiled functions.
pub(crate) struct Entries {
    init: Entry,
    pub step: Entry,
    pub unrolled: Option<Entry>,
    eval: Entry,
    predict: Option<Entry>,
    averaged_eval: Option<Entry>,
    averaged_predict: Option<Entry>,
}

impl Entries {
    /// Evaluation, of averaged weights where they are asked for and kept.
    pub fn eval(&self, averaged: bool) -> &Entry {
        self.averaged_eval.as_ref().filter(|_| averaged).unwrap_or(&self.eval)
    }

    /// Prediction, as [`Entries::eval`].
    pub fn predict(&self, averaged: bool) -> Option<&Entry> {
        self.averaged_predict.as_ref().filter(|_| averaged).or(self.predict.as_ref())
    }

    /// Every function that is fed.
    pub fn fed(&self) -> impl Iterator<Item = &Entry> {
        [&self.step, &self.eval].into_iter().chain(&self.predict)
    }
}

/// A compiled function: its number and what it is fed and returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub number: usize,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

impl Entry {
    /// The function with this name.
    fn find(executable: &dyn Executable, name: &str) -> Option<Self> {
        let number = executable.signatures().iter().position(|s| s.name == name)?;
        let Signature { inputs, outputs, .. } = executable.signatures()[number].clone();
        Some(Entry { number, inputs, outputs })
    }

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
        check_masters(self, precision)?;
        let averaged = self.averaged.as_ref();
        let functions: [(&str, Option<FuncId>); 7] = [
            ("init", Some(self.init)),
            ("step", Some(self.step)),
            ("eval", Some(self.eval)),
            ("predict", self.predict),
            ("steps", self.unrolled.map(|unrolled| unrolled.function)),
            ("eval_averaged", averaged.map(|a| a.eval)),
            ("predict_averaged", averaged.and_then(|a| a.predict)),
        ];
        let functions = functions.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?))).collect();
        let executable = target.compile(&Program::new(self.module.clone(), functions).precision(precision.clone()))?;
        let find = |name: &str| Entry::find(&*executable, name);
        let entries = Entries {
            init: find("init").unwrap_or_default(),
            step: find("step").unwrap_or_default(),
            unrolled: find("steps"),
            eval: find("eval").unwrap_or_default(),
            predict: find("predict"),
            averaged_eval: find("eval_averaged"),
            averaged_predict: find("predict_averaged"),
        };
        let mut compiled = Compiled {
            unmasked: unmasked_results(self.module.function(self.eval)),
            model: fingerprint(&self.module, self.eval),
            program: self.clone(),
            precision: precision.clone(),
            entries,
            executable,
        };
        compiled.initialise(0)?;
        Ok(compiled)
    }
}

/// Refuses modes in which weights would not be stored after every step as the policy has it.
fn check_masters(module: &TrainModule, precision: &Policy) -> Result<()> {
    let stored = precision.stores();
    let what = match () {
        () if stored == Masters::F32 => return Ok(()),
        () if module.unrolled.is_some() => "several steps in one run of the program keep weights in f32 between them",
        () if !module.on_host.is_empty() => "an optimizer on the host updates weights in f32",
        () => return Ok(()),
    };
    let problem = Problem::new(format!("{what}, and the policy stores them otherwise"));
    Err(problem
        .help("store weights as f32: `policy.masters(Masters::F32)`; or take steps one by one, on the target")
        .into())
}

impl Compiled {
    /// The compiled program: memory, instructions, residents.
    pub fn executable(&self) -> &dyn Executable {
        &*self.executable
    }

    /// Fills the resident store anew; everything random in it stems from the seed.
    pub(crate) fn initialise(&mut self, seed: u64) -> Result<()> {
        let words = [seed as u32, (seed >> 32) as u32, 0, 0];
        if let Some(input) = self.entries.init.inputs.iter().position(|p| p.name == "key") {
            let key = self.executable.input(self.entries.init.number, input);
            key.chunks_exact_mut(4).zip(words).for_each(|(out, word)| out.copy_from_slice(&word.to_le_bytes()));
        }
        self.executable.run(self.entries.init.number)
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
