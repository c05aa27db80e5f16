//! Takes down what happens in a training: log, JSON events, progress, allocations.

use crate::allocations;
use crate::console::Console;
use crate::progress::Progress;
use crate::recipe::Loaded;
use crate::run_folder::RunFolder;
use backfit::train::log::EventLog;
use backfit::{Batch, Dataset, Error, Event, FitReport, Result, Stopped, Trainer};
use serde_json::{Value, json};
use std::time::Instant;

/// Listens to a training.
pub struct Recorder {
    console: Console,
    log: EventLog,
    progress: Progress,
    failed: Option<Error>,
    counted: Counted,
    begun: Option<Instant>,
    samples: u64,
    seconds: f64,
    epochs: u64,
}

/// Allocations between the end of one step's event and the beginning of the next one's: the whole loop around a step.
#[derive(Default)]
struct Counted {
    running: bool,
    allocations: u64,
    steps: u64,
}

impl Recorder {
    /// A recorder that writes to this log.
    pub fn new(console: Console, log: EventLog) -> Self {
        Recorder {
            console,
            log,
            progress: Progress::new(console.json),
            failed: None,
            counted: Counted::default(),
            begun: None,
            samples: 0,
            seconds: 0.0,
            epochs: 0,
        }
    }

    /// Says what begins.
    pub fn begin(&mut self, loaded: &Loaded, folder: &RunFolder, trainer: &Trainer, seconds: f64) {
        self.epochs = loaded.recipe.epochs;
        let memory = trainer.executable().memory();
        self.write(&json!({
            "event": "compiled", "recipe": loaded.source.name(), "folder": folder.path().to_string_lossy(),
            "seconds": seconds, "arena_bytes": memory.arena_bytes, "resident_bytes": memory.resident_bytes,
            "constant_bytes": memory.constant_bytes, "total_bytes": memory.total_bytes,
        }));
        let about = loaded.recipe.about.as_deref().map_or(String::new(), |about| format!(": {about}"));
        self.console.say(format!("{}{about}", loaded.source.name()));
        self.console.say(format!(
            "compiled in {seconds:.2} s into {}; the run is in {}",
            crate::console::bytes(memory.total_bytes),
            folder.path().display()
        ));
    }

    /// Takes down an event. A run may come in parts of some epochs each: it begins once and ends once.
    pub fn record(&mut self, event: &Event) {
        let since = allocations::stop();
        match event {
            Event::Started { .. } if self.begun.is_some() => {}
            Event::Started { step, epoch, steps_per_epoch, .. } => {
                self.begun = Some(Instant::now());
                let (step, epoch, epochs, steps_per_epoch) = (*step, *epoch, self.epochs, *steps_per_epoch);
                self.take_down(&Event::Started { step, epoch, epochs, steps_per_epoch }, since);
            }
            Event::Finished(report) if report.stopped == Stopped::Done && !self.is_last(report) => {}
            event => self.take_down(event, since),
        }
    }

    fn is_last(&self, report: &FitReport) -> bool {
        report.epoch.as_ref().is_none_or(|epoch| epoch.epoch + 1 >= self.epochs)
    }

    fn take_down(&mut self, event: &Event, since: u64) {
        let is_step = matches!(event, Event::Step { .. });
        if std::mem::take(&mut self.counted.running) && is_step {
            self.counted.allocations += since;
            self.counted.steps += 1;
        }
        match event {
            Event::Step { samples, .. } => self.samples += *samples as u64,
            Event::Finished(_) => self.seconds = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            _ => {}
        }
        self.write(&event.to_json());
        self.progress.show(event);
        if is_step {
            self.counted.running = true;
            allocations::start();
        }
    }

    /// Takes down what a model of texts writes after so many steps.
    pub fn wrote(&mut self, text: &str, steps: u64) {
        self.write(&json!({"event": "text", "step": steps, "text": text}));
        self.progress.show_text(&format!("after {steps} steps it writes:\n{}\n", indented(text)));
    }

    fn write(&mut self, event: &Value) {
        if let Err(error) = self.log.write(event) {
            // The run goes on, and its result is saved; the first failure is told at the end.
            self.failed.get_or_insert(error);
        }
        self.console.event(event);
    }

    /// Tells the first failure to write the log.
    ///
    /// # Errors
    /// That failure.
    pub fn finish(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The speed of the run, evaluation included.
    pub fn samples_per_second(&self) -> f64 {
        self.samples as f64 / self.seconds.max(1e-9)
    }

    /// Allocations per step; `None` where no step came right after another.
    pub fn allocations_per_step(&self) -> Option<f64> {
        (self.counted.steps > 0).then(|| self.counted.allocations as f64 / self.counted.steps as f64)
    }

    /// The same for a run whose epochs have one step each: more steps, after everything was saved.
    ///
    /// # Errors
    /// As for a step.
    pub fn count_alone(&self, trainer: &mut Trainer, train: &Dataset, rows: usize) -> Result<f64> {
        let mut batch = Batch::default();
        train.batches(rows).in_order().next_into(&mut batch)?;
        trainer.step(&batch)?;
        let steps = 4;
        let mut counted = 0;
        for _ in 0..steps {
            allocations::start();
            let output = trainer.step(&batch);
            counted += allocations::stop();
            output?;
        }
        Ok(counted as f64 / f64::from(steps))
    }
}

fn indented(text: &str) -> String {
    text.trim_matches('\n').lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
