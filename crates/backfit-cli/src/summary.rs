//! What a training tells at its end.

use crate::console::{Console, number, table};
use crate::recipe::Loaded;
use crate::recipe::model::Kind;
use crate::run_folder::RunFolder;
use backfit::train::data::bundled::sine_closed_form;
use backfit::{Report, Stopped, Trainer};
use serde_json::{Map, Value, json};

/// How a training ended.
pub struct Result {
    /// Why it ended.
    pub stopped: Stopped,
    /// Over the samples that were trained on, with the final weights.
    pub train: Report,
    /// Over the samples that were held back.
    pub test: Option<Report>,
    /// Steps done.
    pub steps: u64,
    /// From the start of the program on, compiling and judging included.
    pub seconds: f64,
    /// Of training alone.
    pub samples_per_second: f64,
    /// Allocations per step.
    pub allocations: f64,
}

/// A report as JSON.
pub fn json_of(report: &Report) -> Value {
    let mut object: Map<String, Value> = report.scalars.iter().map(|(n, v)| (n.to_owned(), json!(v))).collect();
    object.insert("samples".to_owned(), json!(report.samples));
    Value::Object(object)
}

/// Reports as a table, each under its name.
pub fn table_of(reports: &[(&str, &Report)]) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let names = first.scalars.iter().map(|(name, _)| name.to_owned());
    let mut rows = vec![[String::new()].into_iter().chain(names).chain(["samples".to_owned()]).collect()];
    for (name, report) in reports {
        let values = report.scalars.iter().map(|(_, value)| number(value));
        rows.push([(*name).to_owned()].into_iter().chain(values).chain([report.samples.to_string()]).collect());
    }
    table(&rows)
}

/// The least loss that any training can reach, where that is known.
fn optimum(loaded: &Loaded) -> Option<f64> {
    let (model, data) = (&loaded.recipe.model, &loaded.recipe.data);
    let is_cubic = model.kind == Kind::Polynomial && model.degree == Some(3);
    let whole = data.take.is_none() && data.held_back.is_none();
    let sum = loaded.recipe.loss.reduction == crate::recipe::model::Reduction::Sum;
    let squares = loaded.recipe.loss.name == crate::recipe::model::LossName::Mse;
    let known = data.name.as_deref() == Some("sine") && is_cubic && whole && sum && squares;
    known.then(|| sine_closed_form().loss)
}

/// Tells the result of a run that ended by itself.
///
/// # Errors
/// The log, from which the curve is drawn, cannot be read.
pub fn done(console: Console, loaded: &Loaded, folder: &RunFolder, result: &Result) -> backfit::Result<()> {
    let optimum = optimum(loaded);
    console.event(&json!({
        "event": "done", "stopped": if result.stopped == Stopped::Early { "early" } else { "done" },
        "train": json_of(&result.train), "test": result.test.as_ref().map(json_of), "optimum": optimum,
        "seconds": result.seconds, "steps": result.steps, "samples_per_second": result.samples_per_second,
        "allocations_per_step": result.allocations, "checkpoint": folder.checkpoint().to_string_lossy(),
        "curve": folder.curve().to_string_lossy(), "log": folder.log().to_string_lossy(),
        "recipe": folder.recipe().to_string_lossy(),
    }));
    if console.json {
        return Ok(());
    }
    let mut reports = vec![("train", &result.train)];
    reports.extend(result.test.as_ref().map(|report| ("held back", report)));
    console.say(format!("\n{}", table_of(&reports)));
    if let Some(best) = optimum {
        let above = (result.train["loss"] / best - 1.0) * 100.0;
        console.say(format!("the closed form has a loss of {best:.8}; this is {above:+.4} % of it"));
    }
    console.say(format!(
        "\n{} steps in {:.2} s, {:.0} samples/s, {} allocations per step{}",
        result.steps,
        result.seconds,
        result.samples_per_second,
        result.allocations,
        if result.stopped == Stopped::Early { ", stopped early" } else { "" }
    ));
    console.say(format!("\n{}", folder.plot(loaded.source.name())?.to_text(76, 14)));
    console.say(places(folder));
    console.say(next(loaded, folder));
    Ok(())
}

fn places(folder: &RunFolder) -> String {
    let row = |name: &str, path: std::path::PathBuf| format!("{name:<11} {}", path.display());
    [
        row("checkpoint", folder.checkpoint()),
        row("curve", folder.curve()),
        row("log", folder.log()),
        row("recipe", folder.recipe()),
    ]
    .join("\n")
}

fn next(loaded: &Loaded, folder: &RunFolder) -> String {
    let (run, recipe) = (folder.path().display(), folder.recipe());
    let kind = if loaded.recipe.data.csv.is_some() { "samples.csv" } else { "FILE" };
    format!(
        "\nNext:\n  backfit eval {run}\n  backfit predict {run} --input {kind}\n  backfit inspect {}\n  \
         backfit train {} --set optimizer.learning_rate={}",
        recipe.display(),
        recipe.display(),
        loaded.recipe.optimizer.learning_rate / 2.0,
    )
}

/// Tells that a run was interrupted, and how to go on.
pub fn interrupted(console: Console, folder: &RunFolder, trainer: &Trainer) {
    let resume = format!("backfit train --resume {}", folder.path().display());
    console.event(&json!({
        "event": "interrupted", "steps": trainer.steps(), "checkpoint": folder.checkpoint().to_string_lossy(),
        "resume": resume,
    }));
    console.say(format!("\ninterrupted after {} steps; the run is saved\n{}", trainer.steps(), places(folder)));
    console.say(format!("\nGo on with:\n  {resume}"));
}
