//! Evaluation and prediction on whole data sets.

use super::Trainer;
use super::step::{feed_hypers, read_scalars};
use crate::compile::Entry;
use crate::data::{Batches, Source};
use crate::feed::{self, Place, feed};
use crate::masking::VALID;
use crate::scalars::{Mean, Scalars};
use backfit_grad::LOSS;
use backfit_ir::{Literal, Problem, Result, Role, Type};
use std::ops::Index;

/// Loss and reports over a data set: `report["loss"]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Means over the samples.
    pub scalars: Scalars,
    /// Number of samples.
    pub samples: usize,
}

impl Index<&str> for Report {
    type Output = f64;

    /// # Panics
    /// Where the model reports no number of this name.
    fn index(&self, name: &str) -> &f64 {
        &self.scalars[name]
    }
}

/// A source that is lent.
struct Lent<'a>(&'a dyn Source);

impl Source for Lent<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn columns(&self) -> Vec<(String, Type)> {
        self.0.columns()
    }

    fn read(&self, sample: usize, column: usize, out: &mut [u8]) {
        self.0.read(sample, column, out);
    }
}

impl Trainer {
    /// Loss and reports over all samples, as outside training: no dropout, running statistics, nothing updated.
    ///
    /// Each number is the mean over batches, weighted by their samples: exactly the number over all samples at once
    /// where the number is a mean over samples. A last batch that is not full is computed exactly, too, where the
    /// model takes the mask `valid` and weighs every scalar result by it.
    ///
    /// # Errors
    /// No samples; columns that the model does not take; a last batch that is not full, and results without the mask.
    pub fn evaluate(&mut self, data: &dyn Source) -> Result<Report> {
        let size = rows(self.compiled.entries.eval(self.averaged).batch_size())?;
        self.check_padding(data.len(), size)?;
        let mut batches = Batches::new(Lent(data), size).in_order();
        let mut mean = Mean::new(self.eval_names.clone());
        let mut scalars = Scalars::new(self.eval_names.clone());
        let entry = self.compiled.entries.eval(self.averaged);
        let executable = &mut *self.compiled.executable;
        while batches.next_into(&mut self.batch)? {
            feed(executable, Place::of(entry), entry, &self.batch)?;
            feed_hypers(executable, entry, &self.hypers)?;
            executable.run(entry.number)?;
            read_scalars(executable, Place::of(entry), entry, &mut scalars);
            mean.add(&scalars, self.batch.samples());
        }
        Ok(Report { scalars: mean.finish(), samples: data.len() })
    }

    /// Loss and reports of a model that is fed nothing: its data is in the program, as constants or state.
    ///
    /// # Errors
    /// The model has inputs; a hyper-parameter that was not set.
    pub fn evaluate_own_data(&mut self) -> Result<Scalars> {
        let entry = self.compiled.entries.eval(self.averaged);
        no_inputs(entry, "evaluate")?;
        let executable = &mut *self.compiled.executable;
        feed_hypers(executable, entry, &self.hypers)?;
        executable.run(entry.number)?;
        let mut scalars = Scalars::new(self.eval_names.clone());
        read_scalars(executable, Place::of(entry), entry, &mut scalars);
        Ok(scalars)
    }

    /// Whether evaluation and prediction use the averages of the weights that [`TrainStep::ema`] keeps.
    ///
    /// # Errors
    /// It keeps none.
    ///
    /// [`TrainStep::ema`]: backfit_grad::TrainStep::ema
    pub fn use_averages(&mut self, averaged: bool) -> Result<()> {
        if averaged && self.compiled.program.averaged.is_none() {
            let problem = Problem::new("the model keeps no averages of its weights");
            return Err(problem.help("add `.ema(0.999)` to the `TrainStep`").into());
        }
        self.averaged = averaged;
        Ok(())
    }

    /// What can be known of [`Trainer::evaluate`] before it.
    ///
    /// # Errors
    /// As there.
    pub(super) fn check_evaluation(&mut self, data: &dyn Source) -> Result<()> {
        let entry = self.compiled.entries.eval(self.averaged);
        let size = rows(entry.batch_size())?;
        self.check_padding(data.len(), size)?;
        Batches::new(Lent(data), size).in_order().next_into(&mut self.batch)?;
        feed::check(entry, &self.batch)
    }

    fn check_padding(&self, samples: usize, size: usize) -> Result<()> {
        let rest = samples % size;
        if rest == 0 || self.compiled.unmasked.is_empty() {
            return Ok(());
        }
        let names = self.compiled.unmasked.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
        let what = format!("{samples} samples do not divide into batches of {size}, and padding would falsify {names}");
        Err(Problem::new(what)
            .because(format!(
                "the last batch has {rest} samples, and these results do not depend on the mask '{VALID}'"
            ))
            .help(format!(
                "declare `g.input(\"{VALID}\", F32, [{size}])` and pass it as weights of the losses and metrics, \
                 or evaluate {} samples, as with `take({})`",
                samples - rest,
                samples - rest
            ))
            .into())
    }

    /// The predictions for all samples, of any number: `[samples, …]`.
    ///
    /// # Errors
    /// The model declares no prediction, or one without a row per sample; no samples; columns that the model does
    /// not take.
    pub fn predict(&mut self, data: &dyn Source) -> Result<Literal> {
        let Some(entry) = self.compiled.entries.predict(self.averaged) else {
            let problem = Problem::new("the model declares no prediction");
            return Err(problem.help("add `.predict(&logits)` to the `TrainStep`").into());
        };
        let size = rows(entry.batch_size())?;
        let ty = &entry.outputs[0].ty;
        if ty.shape.first() != Some(&size) {
            let problem = Problem::new(format!("the prediction is {ty}, which has not one row per sample"));
            return Err(problem.because(format!("a batch has {size} rows")).into());
        }
        let width = ty.bytes() / size;
        let mut bytes = Vec::with_capacity(width * data.len());
        let mut batches = Batches::new(Lent(data), size).in_order();
        let executable = &mut *self.compiled.executable;
        while batches.next_into(&mut self.batch)? {
            feed(executable, Place::of(entry), entry, &self.batch)?;
            feed_hypers(executable, entry, &self.hypers)?;
            executable.run(entry.number)?;
            bytes.extend_from_slice(&executable.output(entry.number, 0)[..width * self.batch.samples()]);
        }
        let mut dims = ty.shape.to_vec();
        dims[0] = data.len();
        Literal::from_bytes(ty.with_shape(dims), bytes)
            .ok_or_else(|| Problem::new(format!("the target returned less than {ty} as a prediction")).into())
    }

    /// What evaluation returns: `loss` and the scalar reports.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.eval_names.iter().map(String::as_str)
    }
}

/// Refuses functions that must be fed.
pub(super) fn no_inputs(entry: &Entry, instead: &str) -> Result<()> {
    let Some(port) = entry.inputs.iter().find(|p| p.role == Role::Input) else { return Ok(()) };
    let problem = Problem::new(format!("the model has no data of its own: it takes '{}: {}'", port.name, port.ty));
    Err(problem.help(format!("give it data: `trainer.{instead}(…)`")).into())
}

fn rows(batch_size: Option<usize>) -> Result<usize> {
    batch_size.filter(|&n| n > 0).ok_or_else(|| {
        let problem = Problem::new(format!("the '{LOSS}' depends on no input with rows"));
        problem.help("the first axis of an input counts the samples of a batch").into()
    })
}
