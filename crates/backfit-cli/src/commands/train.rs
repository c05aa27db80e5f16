//! `backfit train`.

use crate::args;
use crate::console::Console;
use crate::interrupt;
use crate::recipe::{self, Loaded};
use crate::recorder::Recorder;
use crate::run_folder::{RunFolder, checkpoint_of};
use crate::samples::{self, Samples};
use crate::session;
use crate::summary;
use crate::writer::Writer;
use backfit::{Checkpoints, FitOptions, Monitor, Result, Stopped, Trainer};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The least time between checkpoints of short epochs.
const INTERVAL: Duration = Duration::from_secs(10);

/// How much a model of texts shows of what it writes.
const CHARACTERS: usize = 400;

/// A run that is ready to start.
struct Run {
    loaded: Loaded,
    samples: Samples,
    trainer: Trainer,
    resumed: Option<PathBuf>,
    nan_trace: bool,
}

/// Trains, and tells the exit code.
///
/// # Errors
/// Whatever is wrong with recipe, data or checkpoint, before anything is written; a full disk.
pub fn run(args: &args::Train, console: Console) -> Result<i32> {
    let begun = Instant::now();
    let mut run = prepare(args)?;
    let resumed = run.resumed.as_deref().filter(|_| args.out.is_none());
    let folder = match resumed.and_then(RunFolder::of_checkpoint) {
        Some(folder) => folder,
        None => RunFolder::create(run.loaded.source.name(), args.out.as_deref())?,
    };
    folder.write_recipe(&run.loaded.to_toml()?)?;
    let mut recorder = Recorder::new(console, folder.open_log()?);
    let compiled = begun.elapsed().as_secs_f64();
    recorder.begin(&run.loaded, &folder, &run.trainer, compiled);
    let stopped = fit(&mut run, &folder, &mut recorder)?;
    recorder.finish()?;
    let name = run.loaded.source.name().to_owned();
    folder.plot(&name)?.save_svg(&folder.curve())?;
    if stopped == Stopped::Interrupted {
        summary::interrupted(console, &folder, &run.trainer);
        return Ok(interrupt::EXIT_CODE);
    }
    let result = summary::Result {
        stopped,
        train: run.trainer.evaluate(&run.samples.train)?,
        test: run.samples.test.as_ref().map(|set| run.trainer.evaluate(set)).transpose()?,
        steps: run.trainer.steps(),
        seconds: begun.elapsed().as_secs_f64(),
        samples_per_second: recorder.samples_per_second(),
        allocations: match recorder.allocations_per_step() {
            Some(counted) => counted,
            None => recorder.count_alone(&mut run.trainer, &run.samples.train, run.loaded.recipe.batch)?,
        },
    };
    summary::done(console, &run.loaded, &folder, &result)?;
    Ok(0)
}

/// Everything that can go wrong because of the user does so here, where nothing has been written yet.
fn prepare(args: &args::Train) -> Result<Run> {
    let overrides = args.changes.overrides();
    let resumed = args.resume.as_deref().map(checkpoint_of).transpose()?;
    let (loaded, known) = match (&args.recipe, &resumed) {
        (Some(name), _) => (recipe::load(name, &overrides)?, None),
        (None, Some(path)) => {
            let (loaded, interface) = session::of_checkpoint(path, &overrides)?;
            (loaded, Some(interface))
        }
        (None, None) => return Err(backfit::Problem::new("there is neither a recipe nor a run to resume").into()),
    };
    if let Some(out) = &args.out {
        RunFolder::check_free(out)?;
    }
    let samples = match &known {
        Some(interface) => samples::load_to_resume(&loaded, interface)?,
        None => samples::load(&loaded)?,
    };
    let batches = samples.batches(&loaded);
    let schedule = loaded.schedule(batches.per_epoch());
    let mut trainer = session::compile(&loaded, &samples.interface)?.schedule(schedule);
    if let Some(path) = &resumed {
        session::resume(&mut trainer, path)?;
        trainer.continued(batches)?;
    }
    session::annotate(&mut trainer, &loaded, &samples.interface)?;
    Ok(Run { loaded, samples, trainer, resumed, nan_trace: args.nan_trace })
}

/// Trains. A model of texts shows after every epoch what it writes.
fn fit(run: &mut Run, folder: &RunFolder, recorder: &mut Recorder) -> Result<Stopped> {
    let epochs = run.loaded.recipe.epochs;
    let Some(mut writer) = Writer::new(&run.loaded, &run.samples.interface)? else {
        return fit_until(run, folder, recorder, epochs);
    };
    loop {
        let done = run.trainer.continued(run.samples.batches(&run.loaded))?.position().epoch;
        let stopped = fit_until(run, folder, recorder, (done + 1).min(epochs))?;
        if stopped != Stopped::Interrupted {
            recorder.wrote(&writer.begin(&run.trainer, CHARACTERS)?, run.trainer.steps());
        }
        if stopped != Stopped::Done || done + 1 >= epochs {
            return Ok(stopped);
        }
    }
}

fn fit_until(run: &mut Run, folder: &RunFolder, recorder: &mut Recorder, epochs: u64) -> Result<Stopped> {
    let recipe = &run.loaded.recipe;
    let early = recipe.early_stop.as_ref();
    let name = early.map_or_else(|| "loss".to_owned(), |e| e.monitor.clone());
    let options = FitOptions {
        epochs,
        validation: run.samples.test.clone(),
        monitor: Monitor { maximise: name == "accuracy", name },
        patience: early.map(|e| e.patience),
        best: early.map(|_| folder.best()),
        checkpoints: Some(Checkpoints { path: folder.checkpoint(), every: 0, interval: INTERVAL }),
        nan_trace: run.nan_trace,
        on_event: Some(Box::new(|event| recorder.record(event))),
        stop: Some(interrupt::listen()?),
        ..FitOptions::default()
    };
    Ok(run.trainer.fit(run.samples.batches(&run.loaded), options)?.stopped)
}
