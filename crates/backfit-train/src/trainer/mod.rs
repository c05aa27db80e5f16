//! The training loop over a compiled program.

mod evaluate;
mod event;
mod fit;
mod on_host;
mod state;
mod step;
mod trace;

pub use evaluate::Report;
pub use event::{EpochReport, Event, FitReport, Stopped};
pub use fit::{Checkpoints, FitOptions, Listener, Monitor};
pub use state::WeightsReport;
pub use step::StepOutput;
pub use trace::Trace;

use crate::checkpoint::whole;
use crate::compile::Compiled;
use crate::data::{Batch, Batches, Position, Source};
use crate::feed::Place;
use crate::scalars::Mean;
use crate::schedule::Schedule;
use backfit_compile::precision::compensation_of;
use backfit_compile::target::{Executable, Port};
use backfit_grad::{FINITE, TapReport, average_of};
use backfit_ir::{DType, Literal, Problem, Result, Role};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A compiled model in training: its weights, where it is in the data, and what a step is fed.
///
/// Everything that [`Trainer::save`] writes and [`Trainer::resume`] reads is here, so that a resumed run goes on
/// bit for bit. The schedule, the learning rate and other hyper-parameters are settings and not saved.
///
/// ```
/// use backfit_compile::target::Target;
/// use backfit_cpu::Cpu;
/// use backfit_grad::{Sgd, TrainStep};
/// use backfit_ir::{DType, Graph, Init, Literal, Type};
/// use backfit_train::{Compile, Trainer, data::Dataset};
///
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [2, 1]);
/// let y = g.input("y", DType::F32, [2, 1]);
/// let w = g.weight("w", Type::new(DType::F32, [1, 1]), Init::ZEROS);
/// let loss = x.linear(&w, None).mse(&y);
/// let model = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).build()?;
///
/// let doubled = Dataset::new([
///     ("x", Literal::from_f32([4, 1], &[1.0, 2.0, 3.0, 4.0])),
///     ("y", Literal::from_f32([4, 1], &[2.0, 4.0, 6.0, 8.0])),
/// ])?;
/// let mut trainer = Trainer::new(model.compile(&Cpu::default())?);
/// for batch in doubled.batches(2).epochs(20) {
///     let out = trainer.step(&batch?)?;
///     assert!(out["loss"].is_finite());
/// }
/// assert!((trainer.get("w")?.to_f64()[0] - 2.0).abs() < 1e-3);
/// # Ok::<(), backfit_ir::Error>(())
/// ```
pub struct Trainer {
    compiled: Compiled,
    schedule: Schedule,
    learning_rate: f64,
    /// Values of the scalars that the optimizer is fed, in its order.
    hyper_values: Vec<f64>,
    /// Names and values of the scalars that every function is fed.
    hypers: Vec<(String, Option<f64>)>,
    /// Of the last steps; a single step uses the first.
    outputs: Vec<StepOutput>,
    last_output: usize,
    last_run_was_unrolled: bool,
    /// Whether evaluation and prediction use averaged weights.
    averaged: bool,
    eval_names: Arc<[String]>,
    progress: Progress,
    /// For evaluation and prediction, kept for their buffers.
    batch: Batch,
    /// What [`Trainer::annotate`] was told.
    notes: BTreeMap<String, String>,
    /// When [`Trainer::fit`] last saved on its way.
    saved_at: Option<Instant>,
}

/// Where a run is, beside its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
struct Progress {
    /// Steps that were applied.
    step: u64,
    /// Steps that were skipped, all of them and those since the last that was applied.
    skipped: u64,
    skipped_in_a_row: u64,
    seed: u64,
    /// The next batch; its number may be one beyond the last of the epoch.
    position: Position,
    /// The identity of the batches, where it is known.
    data: Option<String>,
    /// The best value of the monitored number, and the evaluations since.
    best: Option<f64>,
    stale: u64,
    /// Over the applied steps of the epoch so far.
    epoch_mean: Mean,
}

impl Progress {
    fn new(seed: u64, scalars: Arc<[String]>) -> Self {
        Progress { seed, epoch_mean: Mean::new(scalars), ..Progress::default() }
    }

    /// Whatever is not the next batch of the epoch begins one, or enters it where nothing is known of what was before.
    fn come_to(&mut self, next: Position) {
        if next != self.position {
            self.epoch_mean.clear();
        }
    }
}

impl Trainer {
    /// A trainer with freshly initialised weights, of seed 0.
    pub fn new(compiled: Compiled) -> Self {
        let optimizer = compiled.program.optimizer.hypers();
        let mut hypers: Vec<(String, Option<f64>)> = optimizer.iter().map(|n| (n.to_string(), Some(0.0))).collect();
        for port in compiled.entries.fed().flat_map(|f| &f.inputs).filter(|p| p.role == Role::Hyper) {
            if hypers.iter().all(|(name, _)| *name != port.name) {
                hypers.push((port.name.clone(), None));
            }
        }
        let returned = scalar_names(&compiled.entries.step.outputs);
        Trainer {
            schedule: Schedule::Constant,
            learning_rate: compiled.program.optimizer.learning_rate(),
            hyper_values: vec![0.0; optimizer.len()],
            hypers,
            outputs: vec![StepOutput::new(returned.clone())],
            last_output: 0,
            last_run_was_unrolled: false,
            averaged: false,
            eval_names: scalar_names(&compiled.entries.eval(false).outputs),
            progress: Progress::new(0, returned),
            batch: Batch::default(),
            notes: BTreeMap::new(),
            saved_at: None,
            compiled,
        }
    }

    /// Starts anew: weights, optimizer state and random numbers of this seed, no steps done.
    ///
    /// # Errors
    /// Where the target failed.
    pub fn seed(mut self, seed: u64) -> Result<Self> {
        self.compiled.initialise(seed)?;
        self.progress = Progress::new(seed, self.outputs[0].scalars().names());
        Ok(self)
    }

    /// How the learning rate changes from step to step.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Sets the learning rate on which the schedule works; from the next step on.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    /// The learning rate of the next step.
    pub fn learning_rate(&self) -> f64 {
        self.schedule.learning_rate(self.learning_rate, self.progress.step)
    }

    /// Sets a scalar that the model declared with [`Graph::hyper`](backfit_ir::Graph::hyper); from the next run on.
    ///
    /// # Errors
    /// There is none of this name, or it is the optimizer's.
    pub fn set_hyper(&mut self, name: &str, value: f64) -> Result<()> {
        let own = self.hyper_values.len();
        match self.hypers[own..].iter_mut().find(|(n, _)| n == name) {
            Some((_, place)) => *place = Some(value),
            None => {
                let names: Vec<&str> = self.hypers[own..].iter().map(|(n, _)| n.as_str()).collect();
                let problem = Problem::new(format!("the model declares no hyper-parameter '{name}'"));
                return Err(problem.help(format!("it declares: {}", names.join(", "))).into());
            }
        }
        Ok(())
    }

    /// Steps done, skipped ones not counted.
    pub fn steps(&self) -> u64 {
        self.progress.step
    }

    /// Steps skipped since the run began.
    pub fn skipped(&self) -> u64 {
        self.progress.skipped
    }

    /// Steps skipped since the last that was applied.
    pub fn skipped_in_a_row(&self) -> u64 {
        self.progress.skipped_in_a_row
    }

    /// The rows of a batch; `None` where the model has no inputs with rows.
    pub fn batch_size(&self) -> Option<usize> {
        self.compiled.entries.step.batch_size()
    }

    /// Weights, state, optimizer state: names, types, roles.
    pub fn residents(&self) -> &[Port] {
        self.compiled.executable.residents()
    }

    /// A copy of a weight or state.
    ///
    /// # Errors
    /// There is none of this name; the error lists those there are.
    pub fn get(&self, name: &str) -> Result<Literal> {
        let port = self.compiled.resident(name)?;
        self.compiled.executable.read(name).ok_or_else(|| unreadable(port))
    }

    /// A weight as evaluation and prediction use it: its average where they use averages, and with what bf16 storage
    /// keeps beside it.
    ///
    /// # Errors
    /// There is none of this name; the error lists those there are.
    pub fn weight(&self, name: &str) -> Result<Literal> {
        let own = self.get(name)?;
        let beside = |name: String| self.compiled.executable.read(&name);
        if let Some(average) = beside(average_of(name)).filter(|_| self.averaged) {
            return Ok(average);
        }
        Ok(beside(compensation_of(name)).map_or_else(|| own.clone(), |rest| whole(&own, &rest)))
    }

    /// Replaces a weight or state. A weight that is stored as bf16 takes f32, too: the nearest bf16, and what that leaves
    /// where it is kept.
    ///
    /// # Errors
    /// There is none of this name, or it has another type.
    pub fn set(&mut self, name: &str, value: &Literal) -> Result<()> {
        let parts = self.parts(name, value)?;
        self.write_all(parts.iter().map(|(name, values)| (name, values)))
    }

    /// What is written for a weight or state: its values as they are stored, then what that leaves where it is kept.
    fn parts(&self, name: &str, value: &Literal) -> Result<Vec<(String, Literal)>> {
        let own = self.compiled.resident(name)?;
        let wide = is_wide(value, own);
        let stored = if wide { Literal::from_f64(own.ty.clone(), &value.to_f64()) } else { value.clone() };
        if *stored.ty() != own.ty {
            return Err(Problem::new(format!("'{name}' is {}, the value is {}", own.ty, value.ty())).into());
        }
        let beside = compensation_of(name);
        let rest = self.residents().iter().find(|port| port.name == beside).map(|port| {
            let whole = value.to_f64().into_iter();
            let rest: Vec<f64> = whole.zip(stored.to_f64()).map(|(whole, stored)| whole - stored).collect();
            (beside, Literal::from_f64(port.ty.clone(), &rest))
        });
        Ok([(name.to_owned(), stored)].into_iter().chain(rest).collect())
    }

    /// What the last step returned under this name, of any shape. To see an intermediate value, report it:
    /// `TrainStep::report("hidden", &h)`.
    ///
    /// # Errors
    /// There is no such report; the error lists those there are.
    pub fn reported(&self, name: &str) -> Result<Literal> {
        let step = &self.compiled.entries.step;
        let place = self.last_place();
        let found = step
            .output(name)
            .and_then(|i| Literal::from_bytes(step.outputs[i].ty.clone(), place.output(&*self.compiled.executable, i)));
        found.ok_or_else(|| {
            let names: Vec<&str> = step.outputs.iter().map(|p| p.name.as_str()).collect();
            let problem = Problem::new(format!("a step returns no '{name}'"));
            problem.help(format!("it returns {}; add `.report(\"{name}\", …)` to the model", names.join(", "))).into()
        })
    }

    /// Where the results of the last step lie.
    fn last_place(&self) -> Place {
        match &self.compiled.entries.unrolled {
            Some(entry) if self.last_run_was_unrolled => {
                let parts = self.steps_at_once();
                Place { function: entry.number, part: parts - 1, parts }
            }
            _ => Place::of(&self.compiled.entries.step),
        }
    }

    /// The compiled program: memory, instructions, stages.
    pub fn executable(&self) -> &dyn Executable {
        self.compiled.executable()
    }

    /// What the functions of the model hand from the forward to the backward pass.
    pub fn taps(&self) -> &[TapReport] {
        &self.compiled.program.taps
    }

    /// Batches that go on where this trainer is in the data: at the start, or where the resumed run had stopped.
    ///
    /// # Errors
    /// After [`Trainer::resume`], where the batches are not those of the saved run.
    pub fn continued<S: Source>(&mut self, batches: Batches<S>) -> Result<Batches<S>> {
        let identity = batches.identity();
        if let Some(known) = self.progress.data.as_ref().filter(|known| **known != identity) {
            return Err(Problem::new("the data is not that of the run so far")
                .because(format!("the run has used {known}"))
                .because(format!("now it is given {identity}"))
                .help("give the same data, batch size and seed, or start anew with `seed` or `load_weights`")
                .into());
        }
        self.progress.data = Some(identity);
        let Position { epoch, batch } = self.progress.position;
        let beyond = batch >= batches.per_epoch();
        let position = if beyond { Position { epoch: epoch + 1, batch: 0 } } else { self.progress.position };
        Ok(batches.resume(position))
    }
}

/// Whether the values are f32 for a weight that is stored as bf16.
fn is_wide(found: &Literal, port: &Port) -> bool {
    port.ty.dtype == DType::BF16 && *found.ty() == port.ty.with_dtype(DType::F32)
}

fn unreadable(port: &Port) -> backfit_ir::Error {
    Problem::new(format!("the target does not give '{}: {}'", port.name, port.ty)).into()
}

/// The results that are single numbers, but for the guard's.
fn scalar_names(outputs: &[Port]) -> Arc<[String]> {
    outputs.iter().filter(|p| is_scalar(p)).map(|p| p.name.clone()).collect()
}

fn is_scalar(port: &Port) -> bool {
    port.ty.shape.rank() == 0 && port.name != FINITE
}
