//! Saving a run, going on with it, and taking over weights.

use super::{Progress, Trainer, is_wide, unreadable};
use crate::checkpoint::{Checkpoint, key};
use crate::data::Position;
use crate::scalars::Mean;
use backfit_compile::target::Port;
use backfit_grad::average_of;
use backfit_ir::{Error, Literal, Problem, RNG_KEY, Result, Role, Type};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// More names in the metadata of a checkpoint.
mod more {
    pub const SKIPPED: &str = "skipped";
    pub const SKIPPED_IN_A_ROW: &str = "skipped_in_a_row";
    pub const BEST: &str = "best";
    pub const STALE: &str = "stale";
    pub const EPOCH_SAMPLES: &str = "epoch.samples";
    pub const EPOCH_SUM: &str = "epoch.sum.";
    pub const NOTE: &str = "note.";
}

/// What [`Trainer::load_weights`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightsReport {
    /// Tensors that were taken over.
    pub loaded: Vec<String>,
    /// Weights and states of the model that the file does not have; they stay as they are.
    pub missing: Vec<String>,
    /// Tensors of the file that the model does not have.
    pub unexpected: Vec<String>,
}

impl fmt::Display for WeightsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensors loaded", self.loaded.len())?;
        for (words, names) in [("missing", &self.missing), ("unexpected", &self.unexpected)] {
            if !names.is_empty() {
                write!(f, ", {} {words}: {}", names.len(), names.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Trainer {
    /// Keeps a text with the run, such as the recipe of its model: every checkpoint has it in its metadata, as
    /// `note.name`, and [`Trainer::resume`] takes it over.
    pub fn annotate(&mut self, name: &str, text: impl Into<String>) {
        self.notes.insert(name.to_owned(), text.into());
    }

    /// What [`Trainer::annotate`] was told under this name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Saves everything from which [`Trainer::resume`] goes on bit for bit: weights, state, optimizer state, random
    /// key, steps, place in the data, the sums of the epoch so far. The file is replaced whole or not at all.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut checkpoint = Checkpoint::default();
        for port in self.residents() {
            let values = self.compiled.executable.read(&port.name).ok_or_else(|| unreadable(port))?;
            checkpoint.tensors.insert(port.name.clone(), values);
        }
        let Progress { step, skipped, skipped_in_a_row, seed, position, data, best, stale, epoch_mean } =
            &self.progress;
        checkpoint.set(key::MODEL, &self.compiled.model);
        checkpoint.set(key::STEP, step);
        checkpoint.set(key::SEED, seed);
        checkpoint.set(key::POSITION, position);
        checkpoint.set(more::SKIPPED, skipped);
        checkpoint.set(more::SKIPPED_IN_A_ROW, skipped_in_a_row);
        checkpoint.set(more::STALE, stale);
        data.iter().for_each(|data| checkpoint.set(key::DATA, data));
        checkpoint.set(more::EPOCH_SAMPLES, epoch_mean.samples());
        epoch_mean.sums().iter().for_each(|(name, sum)| checkpoint.set(&format!("{}{name}", more::EPOCH_SUM), sum));
        best.iter().for_each(|best| checkpoint.set(more::BEST, best));
        self.notes.iter().for_each(|(name, note)| checkpoint.set(&format!("{}{name}", more::NOTE), note));
        checkpoint.save(path.as_ref())
    }

    /// Goes on with the run that [`Trainer::save`] has written. Nothing changes where anything is wrong.
    /// [`Trainer::fit`] goes on at its place in the data by itself; a loop over steps asks [`Trainer::continued`].
    ///
    /// # Errors
    /// The file is unreadable, damaged or of another model; every difference is listed.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let checkpoint = Checkpoint::load(path)?;
        let expected: Vec<(&str, Type)> = self.residents().iter().map(|p| (p.name.as_str(), p.ty.clone())).collect();
        checkpoint.check_against(&expected).map_err(|e| e.because(format!("it is {}", path.display())))?;
        let model: String = checkpoint.get(key::MODEL)?;
        if model != self.compiled.model {
            let why = format!("its fingerprint is {model}, the model's {}", self.compiled.model);
            let problem = Problem::new("the checkpoint is of a model that computes something else");
            let problem = problem.in_file(path).because(why);
            return Err(problem.help("take over its weights alone with `load_weights`").into());
        }
        let progress = Progress {
            step: checkpoint.get(key::STEP)?,
            seed: checkpoint.get(key::SEED)?,
            position: checkpoint.get::<Position>(key::POSITION)?,
            data: checkpoint.metadata.get(key::DATA).cloned(),
            skipped: checkpoint.get(more::SKIPPED)?,
            skipped_in_a_row: checkpoint.get(more::SKIPPED_IN_A_ROW)?,
            stale: checkpoint.get(more::STALE)?,
            best: optional(&checkpoint, more::BEST)?,
            epoch_mean: epoch_mean(&checkpoint, self.outputs[0].scalars().names())?,
        };
        self.write_all(checkpoint.tensors.iter())?;
        self.progress = progress;
        let notes = checkpoint.metadata.into_iter();
        self.notes = notes.filter_map(|(k, text)| Some((k.strip_prefix(more::NOTE)?.to_owned(), text))).collect();
        Ok(())
    }

    /// Takes over weights and states by name from any safetensors file, such as PyTorch writes or [`Trainer::save`].
    /// A weight that is stored as bf16 takes f32, too, as [`Trainer::set`] does; from a file that stores it as bf16, it takes
    /// what the file keeps beside it. Averages of the weights start anew from them. The optimizer's state and the place
    /// in the data stay. Nothing changes where anything is wrong.
    ///
    /// # Errors
    /// The file is unreadable; a tensor has another type than that of the model; no name fits.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<WeightsReport> {
        let path = path.as_ref();
        let checkpoint = Checkpoint::load_foreign(path)?;
        let mut report = WeightsReport::default();
        let (mut parts, mut problems) = (Vec::new(), Vec::new());
        for port in self.residents().iter().filter(|p| is_of_model(p)) {
            match checkpoint.tensors.get(&port.name) {
                None => report.missing.push(port.name.clone()),
                Some(found) if *found.ty() != port.ty && !is_wide(found, port) => {
                    let what = format!("the tensor '{}' is {}, the model's is {}", port.name, found.ty(), port.ty);
                    problems.push(Problem::new(what).in_file(path));
                }
                Some(_) => match self.taken_over(&port.name, &checkpoint) {
                    Ok(new) => {
                        report.loaded.push(port.name.clone());
                        parts.extend(new);
                    }
                    Err(error) => problems.extend(error.problems().iter().map(|p| p.clone().in_file(path))),
                },
            }
        }
        let is_known = |name: &str| self.residents().iter().any(|p| p.name == name);
        report.unexpected = checkpoint.tensors.keys().filter(|name| !is_known(name)).cloned().collect();
        if problems.is_empty() && report.loaded.is_empty() {
            let problem = Problem::new("no tensor of the file has the name of a weight of the model").in_file(path);
            let problem = problem.because(format!("the model has {}", report.missing.join(", ")));
            problems.push(problem.because(format!("the file has {}", report.unexpected.join(", "))));
        }
        Error::from_problems(problems).map_or(Ok(()), Err)?;
        self.write_all(parts.iter().map(|(name, values)| (name, values)))?;
        Ok(report)
    }

    /// What is written for a tensor of the file: its values as they are stored, what that leaves, its average.
    fn taken_over(&self, name: &str, file: &Checkpoint) -> Result<Vec<(String, Literal)>> {
        let whole = file.weight(name)?;
        let mut parts = self.parts(name, &file.tensors[name])?;
        if let (Some((_, kept)), Some(rest)) = (parts.get_mut(1), file.beside(name)) {
            *kept = rest.clone();
        }
        let average = average_of(name);
        if let Some(port) = self.residents().iter().find(|port| port.name == average) {
            parts.push((average, Literal::from_f64(port.ty.clone(), &whole.to_f64())));
        }
        Ok(parts)
    }

    pub(super) fn write_all<'a>(&mut self, tensors: impl Iterator<Item = (&'a String, &'a Literal)>) -> Result<()> {
        for (name, values) in tensors {
            self.compiled.executable.write(name, values)?;
        }
        Ok(())
    }
}

/// Whether a resident tensor belongs to the model rather than to its training.
fn is_of_model(port: &Port) -> bool {
    match port.role {
        Role::Weight { .. } => true,
        _ => port.name != RNG_KEY && !port.name.starts_with("optimizer."),
    }
}

/// What the epoch had added up; nothing where the checkpoint does not tell it of every number.
fn epoch_mean(checkpoint: &Checkpoint, names: Arc<[String]>) -> Result<Mean> {
    let sum = |name: &String| optional::<f64>(checkpoint, &format!("{}{name}", more::EPOCH_SUM));
    let sums = names.iter().map(sum).collect::<Result<Vec<Option<f64>>>>()?;
    let samples = optional(checkpoint, more::EPOCH_SAMPLES)?;
    Ok(match (sums.into_iter().collect(), samples) {
        (Some(sums), Some(samples)) => Mean::of(names, sums, samples),
        _ => Mean::new(names),
    })
}

fn optional<T: FromStr>(checkpoint: &Checkpoint, key: &str) -> Result<Option<T>> {
    checkpoint.metadata.get(key).map(|_| checkpoint.get(key)).transpose()
}
