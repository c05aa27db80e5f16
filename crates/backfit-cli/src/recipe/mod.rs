//! Recipes: small TOML files that say what is trained on what, and how.
//!
//! | module | it has |
//! |---|---|
//! | [`model`], [`data`], [`optimizer`] | the tables of a recipe, and what their values may be |
//! | `range` | which numbers a step can be given |
//! | [`source`] | the text of a recipe, its changes by `--set`, and the line of every key |
//! | [`builtin`] | the recipes inside the program |

pub mod builtin;
pub mod data;
pub mod model;
pub mod optimizer;
mod range;
pub mod source;
#[cfg(test)]
mod tests;

use backfit::precision::Masters;
use backfit::{Error, Policy, Problem, Result};
use data::Data;
use model::{Kind, Loss, Model};
use optimizer::{EarlyStop, LossScale, Optimizer, Schedule};
use serde::{Deserialize, Serialize};
use source::Source;

/// The most epochs of a run.
const MOST_EPOCHS: u64 = 1_000_000;

/// The most steps in one run of the program.
const MOST_STEPS: usize = 65_536;

/// A recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What it is, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Passes over the data.
    pub epochs: u64,
    /// Samples in a batch.
    pub batch: usize,
    /// Of weights, order and dropout.
    #[serde(default)]
    pub seed: u64,
    /// The name of the precision policy: in which dtypes it is computed; f32 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// How weights are stored; as f32 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masters: Option<MastersName>,
    /// Parts in which a batch is taken, to save memory; 1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulate: Option<usize>,
    /// Steps in one run of the program; 1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unroll: Option<usize>,
    /// By what the loss is multiplied before it is differentiated: a number, or "dynamic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<LossScale>,
    /// What is trained.
    pub model: Model,
    /// On what.
    pub data: Data,
    /// What is lowered.
    pub loss: Loss,
    /// How.
    pub optimizer: Optimizer,
    /// How the learning rate changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// When to stop before all epochs are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stop: Option<EarlyStop>,
    /// What it runs on.
    #[serde(default)]
    pub target: Target,
}

/// How weights are stored, other than as f32.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MastersName {
    /// As bf16, rounded at random.
    Stochastic,
    /// As bf16, with what rounding leaves beside it.
    Compensated,
}

/// The table `[target]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The target.
    #[serde(default)]
    pub name: TargetName,
    /// Number of threads; as many as there are cores unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
}

/// What can run a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetName {
    /// The CPU.
    #[default]
    Cpu,
}

/// A recipe together with where its values come from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The recipe, checked.
    pub recipe: Recipe,
    /// Its text.
    pub source: Source,
}

/// Everything wrong in a recipe, each with its place.
pub struct Checks<'a> {
    source: &'a Source,
    problems: Vec<Problem>,
}

impl Checks<'_> {
    /// Notes a problem with the value of a key unless `ok`.
    pub fn require(&mut self, ok: bool, key: &str, what: impl std::fmt::Display, help: &str) {
        if !ok {
            let problem = Problem::new(format!("{key}: {what}")).at(self.source.place(key));
            self.problems.push(problem.help(help));
        }
    }

    /// Notes a problem unless the key is absent: it would have no effect.
    pub fn unused<T>(&mut self, value: &Option<T>, key: &str, by: &str, help: &str) {
        self.require(value.is_none(), key, format_args!("it has no meaning for {by}"), help);
    }
}

/// Reads a recipe, a file or a name, changes it, and checks every value.
///
/// # Errors
/// There is no such recipe; it is not TOML; unknown keys; values that cannot be. All problems at once.
pub fn load(name: &str, overrides: &[String]) -> Result<Loaded> {
    check(Source::open(name, overrides)?)
}

/// The recipe of a text, checked.
///
/// # Errors
/// As for [`load`].
pub fn check(source: Source) -> Result<Loaded> {
    let mut recipe = source.parse()?;
    recipe.data.resolve(source.folder());
    let mut checks = Checks { source: &source, problems: Vec::new() };
    let c = &mut checks;
    c.require(recipe.epochs > 0, "epochs", "there is nothing to train in 0 epochs", "give at least 1");
    let few = recipe.epochs <= MOST_EPOCHS;
    c.require(few, "epochs", format_args!("more than {MOST_EPOCHS} epochs"), &format!("give at most {MOST_EPOCHS}"));
    c.require(recipe.batch > 0, "batch", "a batch of 0 samples", "give at least 1");
    let policy = recipe.precision.as_deref().unwrap_or("f32");
    let known = Policy::named(policy).is_some();
    let names = Policy::NAMES.map(|name| format!("\"{name}\"")).join(", ");
    c.require(known, "precision", format_args!("there is no policy \"{policy}\""), &format!("give one of {names}"));
    recipe.check_parts(c);
    recipe.loss_scale.iter().for_each(|scale| scale.check(c));
    let threads = recipe.target.threads;
    c.require(threads != Some(0), "target.threads", "0 threads", "give at least 1, or leave it out");
    c.require(
        threads.is_none_or(|t| t <= 1024),
        "target.threads",
        "more than 1024 threads",
        "give as many as the machine has cores",
    );
    recipe.model.check(c);
    recipe.loss.check(c);
    recipe.data.check(c);
    recipe.check_text(c);
    recipe.optimizer.check(c);
    recipe.schedule.iter().for_each(|s| s.check(c));
    recipe.early_stop.iter().for_each(|s| s.check(&recipe.loss, c));
    let problems = checks.problems;
    Error::from_problems(problems).map_or(Ok(Loaded { recipe, source }), Err)
}

impl Recipe {
    /// What a text needs of the tables, and what only a text may have.
    fn check_text(&self, c: &mut Checks) {
        let (data, help) = (&self.data, "remove it, or set model.kind to \"transformer\"");
        if self.model.kind != Kind::Transformer {
            let by = "this kind of model";
            c.unused(&data.text, "data.text", by, help);
            c.unused(&data.context, "data.context", by, help);
            c.unused(&data.stride, "data.stride", by, help);
            return;
        }
        let named = data.name.is_some() || data.text.is_some();
        c.require(
            named,
            "data",
            "a transformer learns from a text",
            "give data.text, or data.name = \"tinyshakespeare\"",
        );
        let context = data.context.is_some();
        c.require(context, "data.context", "a transformer needs a context", "such as context = 128");
        let characters = self.loss.is_of_classes();
        c.require(characters, "loss.name", "characters are classes", "set loss.name to \"cross_entropy\"");
        c.unused(&data.test, "data.test", "a text", "give data.held_back, the share of the text to hold back");
        c.unused(&data.mirror, "data.mirror", "a text", "remove it");
        c.unused(&data.shift, "data.shift", "a text", "remove it");
    }

    /// Samples in a part of a batch.
    pub fn rows(&self) -> usize {
        self.batch / self.accumulate.unwrap_or(1).max(1)
    }

    fn check_parts(&self, c: &mut Checks) {
        let (batch, parts) = (self.batch, self.accumulate.unwrap_or(1));
        c.require(parts > 0, "accumulate", "a batch in 0 parts", "give at least 1, or leave it out");
        let whole = parts == 0 || batch.is_multiple_of(parts);
        let what = format_args!("a batch of {batch} does not divide into {parts} equal parts");
        c.require(whole, "accumulate", what, "give a divisor of batch");
        let summed = self.loss.reduction == model::Reduction::Sum && parts > 1;
        c.require(!summed, "accumulate", "parts are averaged, and the loss is a sum", "set loss.reduction to \"mean\"");
        c.require(self.unroll != Some(0), "unroll", "0 steps in a run", "give at least 1, or leave it out");
        let most = format_args!("more than {MOST_STEPS} steps in a run");
        c.require(self.unroll.is_none_or(|n| n <= MOST_STEPS), "unroll", most, "give as many as an epoch has at most");
        let stored = self.unroll.is_none() || self.masters.is_none();
        let what = "between steps in one run weights are f32, and masters stores them otherwise";
        c.require(stored, "unroll", what, "leave out unroll, or masters");
    }
}

impl Loaded {
    /// The precision policy.
    pub fn policy(&self) -> Policy {
        let policy = self.recipe.precision.as_deref().and_then(Policy::named).unwrap_or_default();
        policy.masters(match self.recipe.masters {
            None => Masters::F32,
            Some(MastersName::Stochastic) => Masters::Stochastic,
            Some(MastersName::Compensated) => Masters::Compensated,
        })
    }

    /// The learning rate's schedule over all epochs, each of so many steps.
    pub fn schedule(&self, per_epoch: u64) -> backfit::Schedule {
        let total = self.recipe.epochs.saturating_mul(per_epoch);
        self.recipe.schedule.as_ref().map_or(backfit::Schedule::Constant, |schedule| schedule.over(total))
    }

    /// A problem with the value of a key.
    pub fn problem(&self, key: &str, what: impl std::fmt::Display) -> Problem {
        Problem::new(format!("{key}: {what}")).at(self.source.place(key))
    }

    /// The recipe with all changes, as TOML.
    ///
    /// # Errors
    /// A number that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String> {
        let text = toml::to_string(&self.recipe);
        text.map_err(|e| Problem::new("the recipe cannot be written as TOML").because(e.to_string()).into())
    }
}
