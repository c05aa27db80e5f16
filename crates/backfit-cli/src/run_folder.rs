//! The folder of a run.

use backfit::train::atomic_file;
use backfit::train::log::{self, EventLog};
use backfit::train::plot::Plot;
use backfit::{Problem, Result};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder with checkpoint, log, curve and recipe.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// A new folder `runs/name-n` with the first free n, or `out`, which must not hold anything yet.
    ///
    /// # Errors
    /// `out` is not empty, or the folder cannot be made.
    pub fn create(name: &str, out: Option<&Path>) -> Result<Self> {
        if let Some(path) = out {
            Self::check_free(path)?;
            return make(path).map(|()| RunFolder { path: path.to_owned() });
        }
        let runs = Path::new("runs");
        make(runs)?;
        for n in 1..=u64::MAX {
            let path = runs.join(format!("{name}-{n}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(RunFolder { path }),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(cannot_make(&path, &e).into()),
            }
        }
        Err(Problem::new("there is no free folder").in_file(runs).into())
    }

    /// Refuses a folder that holds anything, before anything else is done.
    ///
    /// # Errors
    /// As for [`check_free`].
    pub fn check_free(path: &Path) -> Result<()> {
        check_free(path, "name another one with --out, or go on with --resume")
    }

    /// The folder of the run whose latest checkpoint this is. `None` for any other file: a run that goes on from it must
    /// not replace what is beside it.
    pub fn of_checkpoint(checkpoint: &Path) -> Option<Self> {
        let folder = RunFolder { path: checkpoint.parent()?.to_owned() };
        (checkpoint == folder.checkpoint() && folder.log().is_file()).then_some(folder)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// The checkpoint of the best epoch.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// The event log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    /// The training curve.
    pub fn curve(&self) -> PathBuf {
        self.path.join("curve.svg")
    }

    /// The recipe with all changes.
    pub fn recipe(&self) -> PathBuf {
        self.path.join("recipe.toml")
    }

    /// Writes the recipe.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write_recipe(&self, text: &str) -> Result<()> {
        atomic_file::replace(&self.recipe(), |out| out.write_all(text.as_bytes()))
    }

    /// Opens the log; what it has already stays.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn open_log(&self) -> Result<EventLog> {
        EventLog::append(&self.log())
    }

    /// The loss over epochs, as the log has it. An epoch that was repeated after a crash counts once.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn plot(&self, title: &str) -> Result<Plot> {
        let mut lines: BTreeMap<(usize, &str), BTreeMap<u64, f64>> = BTreeMap::new();
        for event in log::read(&self.log())? {
            let line = match event["event"].as_str() {
                Some("epoch") => (0, "train"),
                Some("validation") => (1, "held back"),
                _ => continue,
            };
            if let (Some(epoch), Some(loss)) = (event["epoch"].as_u64(), event["metrics"]["loss"].as_f64()) {
                lines.entry(line).or_default().insert(epoch + 1, loss);
            }
        }
        let plot = Plot::new(title, "epoch", "loss");
        Ok(lines.into_iter().fold(plot, |plot, ((_, name), points)| {
            plot.line(name, points.into_iter().map(|(epoch, loss)| (epoch as f64, loss)))
        }))
    }
}

/// Refuses a folder that holds anything, with what to do instead.
///
/// # Errors
/// It does, or it is a file.
pub fn check_free(folder: &Path, help: &str) -> Result<()> {
    let free = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(e) => e.kind() == ErrorKind::NotFound,
    };
    let problem = || Problem::new("the folder is not empty").in_file(folder);
    if free { Ok(()) } else { Err(problem().help(help).into()) }
}

/// The checkpoint of a path: itself, or that in the folder of a run.
///
/// # Errors
/// There is none.
pub fn checkpoint_of(run: &Path) -> Result<PathBuf> {
    let path = if run.is_dir() { run.join("checkpoint.safetensors") } else { run.to_owned() };
    if path.is_file() {
        return Ok(path);
    }
    let problem = Problem::new("there is no checkpoint").in_file(path);
    Err(problem.help("name the folder of a run, such as runs/digits-1, or a checkpoint in it").into())
}

fn make(path: &Path) -> Result<()> {
    let made = std::fs::create_dir_all(path);
    made.map_err(|e| cannot_make(path, &e).into())
}

fn cannot_make(path: &Path, e: &std::io::Error) -> Problem {
    Problem::new("cannot make the folder of the run").in_file(path).because(e.to_string()).help("choose one with --out")
}
