//! Training over epochs, with validation, early stopping and checkpoints.

use super::event::{EpochReport, Event, FitReport, Stopped};
use super::{Report, StepOutput, Trainer};
use crate::data::{Batch, Batches, Dataset, Position, Source};
use crate::scalars::Scalars;
use backfit_ir::{Error, Problem, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where and when a run is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// The file; each checkpoint replaces the one before.
    pub path: PathBuf,
    /// Steps between two checkpoints; 0 saves only at the end of epochs. The end of the run is saved in any case, be it an error.
    pub every: u64,
    /// An epoch that ends sooner than this after the last checkpoint is not saved.
    pub interval: Duration,
}

/// The number by which the best weights are told.
#[derive(Clone, Debug, PartialEq)]
pub struct Monitor {
    /// `loss` or the name of a report.
    pub name: String,
    /// Whether more is better.
    pub maximise: bool,
}

impl Default for Monitor {
    /// The loss, of which less is better.
    fn default() -> Self {
        Monitor { name: backfit_grad::LOSS.to_owned(), maximise: false }
    }
}

impl Monitor {
    fn improves(&self, new: f64, best: Option<f64>) -> bool {
        match best {
            None => !new.is_nan(),
            Some(best) => (if self.maximise { new > best } else { new < best }) || (best.is_nan() && !new.is_nan()),
        }
    }
}

/// Whoever is told what happens.
pub type Listener<'a> = Box<dyn FnMut(&Event) + 'a>;

/// How [`Trainer::fit`] trains.
///
/// ```
/// use backfit_train::FitOptions;
/// let options = FitOptions { epochs: 20, patience: Some(3), ..FitOptions::default() };
/// assert_eq!(options.monitor.name, "loss");
/// ```
pub struct FitOptions<'a> {
    /// Epochs in all, those before a resume included.
    pub epochs: u64,
    /// Evaluated after every epoch.
    pub validation: Option<Dataset>,
    /// The number to watch: of the validation, or of the epoch where there is none.
    pub monitor: Monitor,
    /// Stops after so many epochs in a row without improvement.
    pub patience: Option<u64>,
    /// Saves the run here whenever the monitored number is the best so far.
    pub best: Option<PathBuf>,
    /// Saves the run here as it goes on.
    pub checkpoints: Option<Checkpoints>,
    /// Gives up after so many skipped steps in a row.
    pub max_skipped_in_a_row: u64,
    /// Replays the first of several steps that are skipped in a row, and every 100th, and tells where their numbers that are
    /// not finite come from; see [`Trainer::trace`]. Steps are then taken one by one, with the same bits.
    pub nan_trace: bool,
    /// Is told everything that happens.
    pub on_event: Option<Listener<'a>>,
    /// Ends the run after the current step when set; for Ctrl-C.
    pub stop: Option<&'a AtomicBool>,
}

impl Default for FitOptions<'_> {
    /// One epoch, nothing saved.
    fn default() -> Self {
        FitOptions {
            epochs: 1,
            validation: None,
            monitor: Monitor::default(),
            patience: None,
            best: None,
            checkpoints: None,
            max_skipped_in_a_row: 20,
            nan_trace: false,
            on_event: None,
            stop: None,
        }
    }
}

/// What became of a run of the program.
struct Progressed {
    /// Steps done before it.
    before: u64,
    /// Whether it ended the epoch.
    ended: bool,
}

impl FitOptions<'_> {
    fn tell(&mut self, event: Event) {
        if let Some(listener) = &mut self.on_event {
            listener(&event);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Trainer {
    /// Trains until the end of the epoch in which `batches` stands, and tells the means.
    ///
    /// # Errors
    /// As for [`Trainer::step`].
    pub fn epoch<S: Source>(&mut self, batches: &mut Batches<S>) -> Result<EpochReport> {
        Ok(self.run_epoch(batches, &mut FitOptions::default(), |_, _, _| Ok(()))?.0)
    }

    /// Trains over epochs. Where the trainer was resumed, it goes on where the saved run was.
    ///
    /// ```no_run
    /// # use backfit_train::{Trainer, FitOptions, Checkpoints, data::Dataset};
    /// # fn demo(mut trainer: Trainer, train: Dataset, test: Dataset) -> backfit_ir::Result<()> {
    /// let report = trainer.fit(train.batches(128), FitOptions {
    ///     epochs: 10,
    ///     validation: Some(test),
    ///     patience: Some(3),
    ///     checkpoints: Some(Checkpoints { path: "run.safetensors".into(), every: 500, ..Checkpoints::default() }),
    ///     on_event: Some(Box::new(|event| println!("{}", event.to_json()))),
    ///     ..FitOptions::default()
    /// })?;
    /// println!("{:?} after {} steps", report.stopped, report.steps);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Trainer::step`], [`Trainer::evaluate`] and [`Trainer::save`]; a monitored name that the model does not
    /// report, and samples to validate with that it does not take, before the first step; too many skipped steps in a row.
    /// Where an epoch or what follows it fails, the run is saved first if checkpoints are asked for.
    pub fn fit<S: Source>(&mut self, batches: Batches<S>, mut options: FitOptions) -> Result<FitReport> {
        self.check_monitor(&options)?;
        options.validation.as_ref().map_or(Ok(()), |data| self.check_evaluation(data))?;
        let start = Instant::now();
        let mut batches = self.continued(batches.epochs(options.epochs))?;
        let (mut epoch, mut validation) = (None, None);
        options.tell(Event::Started {
            step: self.steps(),
            epoch: batches.position().epoch,
            epochs: options.epochs,
            steps_per_epoch: batches.per_epoch(),
        });
        let stopped = loop {
            if self.out_of_patience(&options) {
                break Stopped::Early;
            }
            if batches.position().epoch >= options.epochs {
                break Stopped::Done;
            }
            let ran = self.run_epoch(&mut batches, &mut options, Trainer::after_steps);
            let (report, whole) = ran.map_err(|error| self.save_before(error, &mut options))?;
            if !whole {
                break Stopped::Interrupted;
            }
            options.tell(Event::Epoch(report.clone()));
            let validated = self.after_epoch(&report, &mut options);
            validation = validated.map_err(|error| self.save_before(error, &mut options))?.or(validation);
            epoch = Some(report);
        };
        if let Some(checkpoints) = options.checkpoints.clone() {
            self.save_and_tell(checkpoints.path, &mut options)?;
        }
        let best = self.progress.best;
        let seconds = start.elapsed().as_secs_f64();
        let report = FitReport { stopped, epoch, validation, best, steps: self.steps(), seconds };
        options.tell(Event::Finished(report.clone()));
        Ok(report)
    }

    fn out_of_patience(&self, options: &FitOptions) -> bool {
        options.patience.is_some_and(|patience| self.progress.stale >= patience.max(1))
    }

    /// Steps to the end of the epoch; `false` where the stop flag ended it before.
    fn run_epoch<S: Source>(
        &mut self,
        batches: &mut Batches<S>,
        options: &mut FitOptions,
        mut after: impl FnMut(&mut Trainer, &mut FitOptions, Progressed) -> Result<()>,
    ) -> Result<(EpochReport, bool)> {
        let (start, Position { epoch, .. }) = (Instant::now(), Batches::position(batches));
        self.progress.come_to(Batches::position(batches));
        let names = self.outputs[0].scalars().names();
        let mut report =
            EpochReport { epoch, steps: 0, skipped: 0, samples: 0, seconds: 0.0, scalars: Scalars::new(names) };
        let size = if options.nan_trace { 1 } else { self.steps_at_once() };
        let mut group = vec![Batch::default(); size];
        loop {
            let mut count = 0;
            while count < size && Batches::position(batches).epoch == epoch && batches.next_into(&mut group[count])? {
                count += 1;
            }
            if count == 0 {
                break;
            }
            let before = self.steps();
            self.step_all(&group[..count])?;
            for (number, batch) in group[..count].iter().enumerate() {
                let output = self.outputs[number].clone();
                report.samples += batch.samples() as u64;
                if output.skipped() {
                    report.skipped += 1;
                    self.tell_skipped(options, batch, &output)?;
                } else {
                    report.steps += 1;
                }
                tell_step(options, batch, output);
            }
            self.check_skips(options)?;
            let ended = Batches::position(batches).epoch != epoch;
            after(self, options, Progressed { before, ended })?;
            if !ended && options.is_stopped() {
                return Ok((report, false));
            }
        }
        report.scalars = self.progress.epoch_mean.finish();
        report.seconds = start.elapsed().as_secs_f64();
        Ok((report, true))
    }

    /// A checkpoint that falls on the end of an epoch is saved after the validation, whose result belongs to it.
    fn after_steps(&mut self, options: &mut FitOptions, Progressed { before, ended }: Progressed) -> Result<()> {
        let due = |c: &&Checkpoints| c.every > 0 && self.steps() / c.every > before / c.every;
        match options.checkpoints.as_ref().filter(due).cloned() {
            Some(checkpoints) if !ended => {
                self.saved_at = Some(Instant::now());
                self.save_and_tell(checkpoints.path, options)
            }
            _ => Ok(()),
        }
    }

    /// Tells the first of several steps that were skipped in a row, and every 100th.
    fn tell_skipped(&mut self, options: &mut FitOptions, batch: &Batch, output: &StepOutput) -> Result<()> {
        let row = output.skipped_in_a_row();
        if row == 1 || row.is_multiple_of(100) {
            let trace = if options.nan_trace { Some(self.trace(batch)?) } else { None };
            let Position { epoch, batch } = batch.position();
            options.tell(Event::Skipped { epoch, batch, output: output.clone(), trace });
        }
        Ok(())
    }

    /// Validates, remembers the best, saves.
    fn after_epoch(&mut self, report: &EpochReport, options: &mut FitOptions) -> Result<Option<Report>> {
        let validation = options.validation.as_ref().map(|data| self.evaluate(data)).transpose()?;
        let scalars = validation.as_ref().map_or(&report.scalars, |v| &v.scalars);
        let value = scalars.get(&options.monitor.name).unwrap_or(f64::NAN);
        let best = options.monitor.improves(value, self.progress.best);
        if best {
            (self.progress.best, self.progress.stale) = (Some(value), 0);
        } else {
            self.progress.stale += 1;
        }
        if let Some(report) = &validation {
            options.tell(Event::Validation { epoch: self.progress.position.epoch, report: report.clone(), best });
        }
        if let Some(path) = options.best.clone().filter(|_| best) {
            self.save_and_tell(path, options)?;
        }
        let due = |c: &&Checkpoints| self.saved_at.is_none_or(|last| last.elapsed() >= c.interval);
        if let Some(checkpoints) = options.checkpoints.as_ref().filter(due).cloned() {
            self.save_and_tell(checkpoints.path, options)?;
            self.saved_at = Some(Instant::now());
        }
        Ok(validation)
    }

    fn save_and_tell(&self, path: PathBuf, options: &mut FitOptions) -> Result<()> {
        self.save(&path)?;
        options.tell(Event::Saved { path, step: self.steps() });
        Ok(())
    }

    /// Saves what was trained until an error: whatever failed, weights and state are those of the last step.
    fn save_before(&self, error: Error, options: &mut FitOptions) -> Error {
        let Some(checkpoints) = options.checkpoints.clone() else { return error };
        match self.save_and_tell(checkpoints.path, options) {
            Ok(()) => error,
            Err(unsaved) => error.because(format!("the run could not be saved before it ended: {unsaved}")),
        }
    }

    fn check_monitor(&self, options: &FitOptions) -> Result<()> {
        let name = &options.monitor.name;
        if self.metrics().any(|n| n == name) {
            return Ok(());
        }
        let names: Vec<&str> = self.metrics().collect();
        let problem = Problem::new(format!("the model reports no '{name}' to monitor"));
        Err(problem.help(format!("it reports: {}", names.join(", "))).into())
    }

    fn check_skips(&self, options: &FitOptions) -> Result<()> {
        let skipped = self.skipped_in_a_row();
        if skipped <= options.max_skipped_in_a_row {
            return Ok(());
        }
        let what =
            format!("gradients were not finite in {skipped} steps in a row; the last applied step is {}", self.steps());
        Err(Problem::new(what)
            .because("every one of these steps was skipped: weights and state are those before them")
            .help("lower the learning rate, bound the gradients with `clip`, or look at the data with `check_finite`")
            .into())
    }
}

fn tell_step(options: &mut FitOptions, batch: &Batch, output: StepOutput) {
    let Position { epoch, batch: number } = batch.position();
    options.tell(Event::Step { epoch, batch: number, samples: batch.samples(), output });
}
