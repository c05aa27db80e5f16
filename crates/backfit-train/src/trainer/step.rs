//! One step.

use super::{Trainer, is_scalar};
use crate::compile::Entry;
use crate::data::{Batch, Position};
use crate::feed::feed;
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
    skipped: bool,
}

impl StepOutput {
    pub(super) fn new(names: Arc<[String]>) -> Self {
        StepOutput(Arc::new(Values { scalars: Scalars::new(names), step: 0, learning_rate: 0.0, skipped: false }))
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
        self.0.skipped
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
    /// [`Trainer::skipped_in_a_row`]. A batch with fewer samples than rows is filled up by its samples in turn; where
    /// that must not count, give the model the input `valid` and weigh the loss by it.
    ///
    /// From the second step on nothing is allocated, provided that earlier outputs are dropped.
    ///
    /// # Errors
    /// Every input of the model that the batch has no column for, or one of another type; a hyper-parameter that was
    /// not set.
    pub fn step(&mut self, batch: &Batch) -> Result<StepOutput> {
        let learning_rate = self.learning_rate();
        self.compiled.optimizer.hyper_values(self.progress.step + 1, learning_rate, &mut self.hyper_values);
        for ((_, place), value) in self.hypers.iter_mut().zip(&self.hyper_values) {
            *place = Some(*value);
        }
        let step = &self.compiled.step;
        let executable = &mut *self.compiled.executable;
        feed(executable, step, batch)?;
        feed_hypers(executable, step, &self.hypers)?;
        executable.run(step.number)?;
        let values = Arc::make_mut(&mut self.output.0);
        read_scalars(executable, step, &mut values.scalars);
        let finite = step.output(FINITE).map(|i| executable.output(step.number, i));
        values.skipped = finite.is_some_and(|bytes| bytes.first() == Some(&0));
        let Position { epoch, batch } = batch.position();
        self.progress.position = Position { epoch, batch: batch + 1 };
        if values.skipped {
            self.progress.skipped_in_a_row += 1;
        } else {
            self.progress.step += 1;
            self.progress.skipped_in_a_row = 0;
        }
        values.step = self.progress.step;
        values.learning_rate = learning_rate;
        Ok(self.output.clone())
    }
}

/// Feeds every hyper-parameter of a function.
pub(super) fn feed_hypers(
    executable: &mut dyn Executable,
    entry: &Entry,
    hypers: &[(String, Option<f64>)],
) -> Result<()> {
    for (number, port) in entry.inputs.iter().enumerate().filter(|(_, p)| p.role == Role::Hyper) {
        let Some(value) = hypers.iter().find(|(name, _)| *name == port.name).and_then(|(_, value)| *value) else {
            let problem = Problem::new(format!("the hyper-parameter '{}' has no value", port.name));
            return Err(problem.help(format!("set it: `trainer.set_hyper(\"{}\", …)`", port.name)).into());
        };
        scalar::write(port.ty.dtype, executable.input(entry.number, number), value);
    }
    Ok(())
}

/// Reads the scalar results of a function after a run.
pub(super) fn read_scalars(executable: &dyn Executable, entry: &Entry, scalars: &mut Scalars) {
    let results = entry.outputs.iter().enumerate().filter(|(_, p)| is_scalar(p));
    for (value, (number, port)) in scalars.values_mut().iter_mut().zip(results) {
        *value = scalar::read(port.ty.dtype, executable.output(entry.number, number));
    }
}
