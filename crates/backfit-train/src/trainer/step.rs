//! Steps, one by one or several in one run of the program.

use super::evaluate::no_inputs;
use super::{Trainer, is_scalar};
use crate::compile::Entry;
use crate::data::{Batch, Position};
use crate::feed::{Place, feed};
use crate::scalar;
use crate::scalars::Scalars;
use backfit_compile::target::Executable;
use backfit_grad::FINITE;
use backfit_ir::{Problem, Result, Role};
use std::ops::Index;
use std::sync::Arc;

/// What a step returned: `out["loss"]` and everything scalar that the model reports.
///
/// Cloning shares the numbers. A step writes into the numbers of the last output where nobody holds them any more,
/// so a loop that drops outputs does not allocate.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutput(Arc<Values>);

#[derive(Clone, Debug, PartialEq)]
struct Values {
    scalars: Scalars,
    step: u64,
    learning_rate: f64,
    skipped_in_a_row: u64,
}

impl StepOutput {
    pub(super) fn new(names: Arc<[String]>) -> Self {
        let values = Values { scalars: Scalars::new(names), step: 0, learning_rate: 0.0, skipped_in_a_row: 0 };
        StepOutput(Arc::new(values))
    }

    /// Loss and reports.
    pub fn scalars(&self) -> &Scalars {
        &self.0.scalars
    }

    /// The number with this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.scalars.get(name)
    }

    /// Steps done, this one included if it was not skipped.
    pub fn step(&self) -> u64 {
        self.0.step
    }

    /// The learning rate that was used.
    pub fn learning_rate(&self) -> f64 {
        self.0.learning_rate
    }

    /// Whether nothing was updated because a gradient was not finite.
    pub fn skipped(&self) -> bool {
        self.0.skipped_in_a_row > 0
    }

    /// How many steps in a row were skipped, this one included.
    pub fn skipped_in_a_row(&self) -> u64 {
        self.0.skipped_in_a_row
    }
}

impl Index<&str> for StepOutput {
    type Output = f64;

    /// # Panics
    /// Where the model reports no number of this name.
    fn index(&self, name: &str) -> &f64 {
        &self.0.scalars[name]
    }
}

impl Trainer {
    /// Forward, backward and update on one batch.
    ///
    /// A step whose gradients are not finite is skipped: it changes no weight, no state and no counter but
    /// [`Trainer::skipped`], [`Trainer::skipped_in_a_row`] and a dynamic loss scale. A batch with fewer samples than rows
    /// is filled up by its samples in turn; where that must not count, give the model the input `valid` and weigh the
    /// loss by it.
    ///
    /// From the second step on nothing is allocated, provided that earlier outputs are dropped.
    ///
    /// # Errors
    /// Every input of the model that the batch has no column for, or one of another type; a hyper-parameter that was
    /// not set; a learning rate that f32 does not hold.
    pub fn step(&mut self, batch: &Batch) -> Result<StepOutput> {
        Ok(self.step_all(std::slice::from_ref(batch))?[0].clone())
    }

    /// A step on each batch, with the same bits as [`Trainer::step`] on one after the other. As many at once as
    /// [`TrainStep::unroll`](backfit_grad::TrainStep::unroll) says are one run of the program; the rest go one by one.
    ///
    /// # Errors
    /// As for [`Trainer::step`]; the batches before have been trained on.
    pub fn step_all(&mut self, batches: &[Batch]) -> Result<&[StepOutput]> {
        let names = self.outputs[0].scalars().names();
        while self.outputs.len() < batches.len() {
            self.outputs.push(StepOutput::new(names.clone()));
        }
        let size = self.steps_at_once();
        for (number, group) in batches.chunks(size).enumerate() {
            let first = number * size;
            if size > 1 && group.len() == size {
                let entry = self.unrolled();
                for (part, batch) in group.iter().enumerate() {
                    let place = Place { function: entry, part, parts: size };
                    feed(&mut *self.compiled.executable, place, &self.compiled.entries.step, batch)?;
                }
                self.run_several(first, group)?;
                continue;
            }
            for (i, batch) in group.iter().enumerate() {
                let step = &self.compiled.entries.step;
                feed(&mut *self.compiled.executable, Place::of(step), step, batch)?;
                self.run_one(first + i, Some(batch))?;
            }
        }
        Ok(&self.outputs[..batches.len()])
    }

    /// So many steps of a model that is fed nothing: its data is in the program, as constants or state. Returns what the
    /// last of them returned.
    ///
    /// # Errors
    /// The model has inputs; no steps; a hyper-parameter that was not set.
    pub fn step_on_own_data(&mut self, count: u64) -> Result<StepOutput> {
        no_inputs(&self.compiled.entries.step, "step")?;
        if count == 0 {
            return Err(Problem::new("0 steps return nothing").help("take at least 1").into());
        }
        let size = self.steps_at_once();
        let names = self.outputs[0].scalars().names();
        self.outputs.resize_with(self.outputs.len().max(size), || StepOutput::new(names.clone()));
        let mut left = count;
        let mut last = 0;
        while left > 0 {
            let several = size > 1 && left >= size as u64;
            if several {
                self.run_several(0, &[])?
            } else {
                self.run_one(0, None)?
            }
            last = if several { size - 1 } else { 0 };
            left -= last as u64 + 1;
        }
        Ok(self.outputs[last].clone())
    }

    /// How many steps one run of the program takes where it takes several.
    pub fn steps_at_once(&self) -> usize {
        self.compiled.program.unrolled.map_or(1, |unrolled| unrolled.steps)
    }

    fn unrolled(&self) -> usize {
        self.compiled.entries.unrolled.as_ref().map_or(self.compiled.entries.step.number, |entry| entry.number)
    }

    /// One step on what is fed already.
    fn run_one(&mut self, output: usize, batch: Option<&Batch>) -> Result<()> {
        self.set_hypers(0)?;
        let step = &self.compiled.entries.step;
        let executable = &mut *self.compiled.executable;
        feed_hypers(executable, step, &self.hypers)?;
        executable.run(step.number)?;
        self.last_run_was_unrolled = false;
        let applied = self.take_down(Place::of(&self.compiled.entries.step), output, batch);
        if applied { self.update_on_host() } else { Ok(()) }
    }

    /// As many steps as one run of the program takes, on what is fed already.
    fn run_several(&mut self, first: usize, batches: &[Batch]) -> Result<()> {
        let (function, parts) = (self.unrolled(), self.steps_at_once());
        for part in 0..parts {
            self.set_hypers(part as u64)?;
            let place = Place { function, part, parts };
            let optimizer = &self.hypers[..self.hyper_values.len()];
            feed_optimizer(&mut *self.compiled.executable, place, &self.compiled.entries.step, optimizer);
        }
        let entry = self.compiled.entries.unrolled.as_ref().unwrap_or(&self.compiled.entries.step);
        feed_hypers(&mut *self.compiled.executable, entry, &self.hypers)?;
        self.compiled.executable.run(function)?;
        self.last_run_was_unrolled = true;
        for part in 0..parts {
            self.take_down(Place { function, part, parts }, first + part, batches.get(part));
        }
        Ok(())
    }

    /// The optimizer's scalars at the step after so many more.
    fn set_hypers(&mut self, more: u64) -> Result<()> {
        let done = self.progress.step + more;
        let learning_rate = self.schedule.learning_rate(self.learning_rate, done);
        self.compiled.program.optimizer.hyper_values(done + 1, learning_rate, &mut self.hyper_values);
        for ((_, place), value) in self.hypers.iter_mut().zip(&self.hyper_values) {
            *place = Some(*value);
        }
        // The guard looks at gradients: such a number would make all weights useless in a step that counts as good.
        match self.hyper_values.iter().position(|value| !(*value as f32).is_finite()) {
            None => Ok(()),
            Some(at) => {
                let (name, value) = (&self.hypers[at].0, self.hyper_values[at]);
                let problem = Problem::new(format!("the hyper-parameter '{name}' of step {} is {value}", done + 1));
                let problem =
                    problem.because(format!("the learning rate before the schedule is {}", self.learning_rate));
                Err(problem.help("give a learning rate and a schedule whose values f32 holds").into())
            }
        }
    }

    /// Reads what a step returned, and counts it. Tells whether it was applied.
    fn take_down(&mut self, place: Place, output: usize, batch: Option<&Batch>) -> bool {
        let learning_rate = self.learning_rate();
        let step = &self.compiled.entries.step;
        let executable = &*self.compiled.executable;
        self.last_output = output;
        let values = Arc::make_mut(&mut self.outputs[output].0);
        read_scalars(executable, place, step, &mut values.scalars);
        let finite = step.output(FINITE).map(|i| place.output(executable, i));
        let skipped = finite.is_some_and(|bytes| bytes.first() == Some(&0));
        if let Some(Position { epoch, batch }) = batch.map(Batch::position) {
            self.progress.come_to(Position { epoch, batch });
            self.progress.position = Position { epoch, batch: batch + 1 };
        }
        if skipped {
            self.progress.skipped += 1;
            self.progress.skipped_in_a_row += 1;
        } else {
            self.progress.step += 1;
            self.progress.skipped_in_a_row = 0;
            if let Some(batch) = batch {
                self.progress.epoch_mean.add(&values.scalars, batch.samples());
            }
        }
        values.step = self.progress.step;
        values.learning_rate = learning_rate;
        values.skipped_in_a_row = self.progress.skipped_in_a_row;
        !skipped
    }
}

/// Feeds every hyper-parameter of a function that is fed once.
pub(super) fn feed_hypers(
    executable: &mut dyn Executable,
    entry: &Entry,
    hypers: &[(String, Option<f64>)],
) -> Result<()> {
    let once = |port: &&backfit_compile::target::Port| port.role == Role::Hyper && port.ty.shape.rank() == 0;
    for (number, port) in entry.inputs.iter().enumerate().filter(|(_, port)| once(port)) {
        let Some(value) = hypers.iter().find(|(name, _)| *name == port.name).and_then(|(_, value)| *value) else {
            let problem = Problem::new(format!("the hyper-parameter '{}' has no value", port.name));
            return Err(problem.help(format!("set it: `trainer.set_hyper(\"{}\", …)`", port.name)).into());
        };
        scalar::write(port.ty.dtype, executable.input(entry.number, number), value);
    }
    Ok(())
}

/// Feeds the optimizer's hyper-parameters of one of several steps.
fn feed_optimizer(executable: &mut dyn Executable, place: Place, step: &Entry, hypers: &[(String, Option<f64>)]) {
    for (number, port) in step.inputs.iter().enumerate().filter(|(_, p)| p.role == Role::Hyper) {
        if let Some(value) = hypers.iter().find(|(name, _)| *name == port.name).and_then(|(_, value)| *value) {
            scalar::write(port.ty.dtype, place.input(executable, number), value);
        }
    }
}

/// Reads the scalar results of a function after a run.
pub(super) fn read_scalars(executable: &dyn Executable, place: Place, entry: &Entry, scalars: &mut Scalars) {
    let results = entry.outputs.iter().enumerate().filter(|(_, p)| is_scalar(p));
    for (value, (number, port)) in scalars.values_mut().iter_mut().zip(results) {
        *value = scalar::read(port.ty.dtype, place.output(executable, number));
    }
}
