//! What a training run tells while it goes on.

use super::{Report, StepOutput, Trace};
use crate::scalars::Scalars;
use serde_json::{Map, Value, json};
use std::ops::Index;
use std::path::PathBuf;

/// What happened in an epoch. Of one in which a run was resumed, the means are those of all of it, also of the steps before;
/// counts and duration are those of the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochReport {
    /// Which epoch, from zero.
    pub epoch: u64,
    /// Steps that were applied.
    pub steps: u64,
    /// Steps that were skipped; they do not count in the means.
    pub skipped: u64,
    /// Samples seen.
    pub samples: u64,
    /// Duration.
    pub seconds: f64,
    /// Means of loss and reports over the samples, each with the weights at its step.
    pub scalars: Scalars,
}

impl Index<&str> for EpochReport {
    type Output = f64;

    /// # Panics
    /// Where the model reports no number of this name.
    fn index(&self, name: &str) -> &f64 {
        &self.scalars[name]
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All epochs are done.
    Done,
    /// The monitored number did not improve for as long as the patience allows.
    Early,
    /// The stop flag was set.
    Interrupted,
}

impl Stopped {
    fn word(self) -> &'static str {
        match self {
            Stopped::Done => "done",
            Stopped::Early => "early",
            Stopped::Interrupted => "interrupted",
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FitReport {
    /// Why.
    pub stopped: Stopped,
    /// The last epoch that was completed.
    pub epoch: Option<EpochReport>,
    /// The last validation.
    pub validation: Option<Report>,
    /// The best value of the monitored number.
    pub best: Option<f64>,
    /// Steps done since the first run.
    pub steps: u64,
    /// Duration.
    pub seconds: f64,
}

/// Something that happened in [`Trainer::fit`](super::Trainer::fit).
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run begins, or goes on.
    Started {
        /// Steps done before.
        step: u64,
        /// The first epoch, from zero.
        epoch: u64,
        /// Epochs in all.
        epochs: u64,
        /// Steps in an epoch.
        steps_per_epoch: u64,
    },
    /// A step is done.
    Step {
        /// Which epoch, from zero.
        epoch: u64,
        /// Which batch of it, from zero.
        batch: u64,
        /// Its samples.
        samples: usize,
        /// What it returned.
        output: StepOutput,
    },
    /// A step was skipped because a gradient or new state was not finite. Of steps skipped in a row, the first is told and
    /// then every 100th.
    Skipped {
        /// Which epoch, from zero.
        epoch: u64,
        /// Which batch of it, from zero.
        batch: u64,
        /// What the step returned.
        output: StepOutput,
        /// Where its numbers that are not finite come from, where [`FitOptions::nan_trace`] asks for it.
        ///
        /// [`FitOptions::nan_trace`]: super::FitOptions::nan_trace
        trace: Option<Trace>,
    },
    /// An epoch is done.
    Epoch(EpochReport),
    /// A validation is done.
    Validation {
        /// After which epoch, from zero.
        epoch: u64,
        /// The result.
        report: Report,
        /// Whether the monitored number is the best so far.
        best: bool,
    },
    /// A checkpoint was saved.
    Saved {
        /// Where.
        path: PathBuf,
        /// Steps done.
        step: u64,
    },
    /// The run ended.
    Finished(FitReport),
}

impl Event {
    /// The event as a JSON object, for [`EventLog`](crate::log::EventLog).
    pub fn to_json(&self) -> Value {
        match self {
            Event::Started { step, epoch, epochs, steps_per_epoch } => json!({
                "event": "started", "step": step, "epoch": epoch, "epochs": epochs, "steps_per_epoch": steps_per_epoch,
            }),
            Event::Step { epoch, batch, samples, output } => json!({
                "event": "step", "step": output.step(), "epoch": epoch, "batch": batch, "samples": samples,
                "learning_rate": output.learning_rate(), "skipped": output.skipped(),
                "metrics": object(output.scalars()),
            }),
            Event::Skipped { epoch, batch, output, trace } => json!({
                "event": "skipped", "step": output.step(), "epoch": epoch, "batch": batch,
                "in_a_row": output.skipped_in_a_row(), "loss_scale": output.get(backfit_grad::SCALE),
                "trace": trace.as_ref().map(ToString::to_string),
            }),
            Event::Epoch(report) => json!({
                "event": "epoch", "epoch": report.epoch, "steps": report.steps, "skipped": report.skipped,
                "samples": report.samples, "seconds": report.seconds, "metrics": object(&report.scalars),
            }),
            Event::Validation { epoch, report, best } => json!({
                "event": "validation", "epoch": epoch, "samples": report.samples, "best": best,
                "metrics": object(&report.scalars),
            }),
            Event::Saved { path, step } => json!({"event": "saved", "path": path.to_string_lossy(), "step": step}),
            Event::Finished(report) => json!({
                "event": "finished", "stopped": report.stopped.word(), "steps": report.steps,
                "seconds": report.seconds, "best": report.best,
            }),
        }
    }
}

fn object(scalars: &Scalars) -> Map<String, Value> {
    scalars.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}
