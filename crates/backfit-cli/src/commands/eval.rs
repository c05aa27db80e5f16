//! `backfit eval`.

use crate::args;
use crate::console::Console;
use crate::run_folder::checkpoint_of;
use crate::summary::{json_of, table_of};
use crate::{recipe, samples, session};
use backfit::Result;
use serde_json::json;

/// Judges a trained model on the samples that were held back, or on all where none were.
///
/// # Errors
/// No checkpoint, or one of another model; whatever is wrong with the data.
pub fn run(args: &args::Eval, console: Console) -> Result<()> {
    let checkpoint = checkpoint_of(&args.run)?;
    let overrides = args.changes.overrides();
    let (loaded, samples) = match &args.recipe {
        Some(name) => {
            let loaded = recipe::load(name, &overrides)?;
            let samples = samples::load(&loaded)?;
            (loaded, samples)
        }
        None => {
            let (loaded, interface) = session::of_checkpoint(&checkpoint, &overrides)?;
            let samples = samples::load_for(&loaded, &interface)?;
            (loaded, samples)
        }
    };
    let mut trainer = session::compile(&loaded, &samples.interface)?;
    session::resume(&mut trainer, &checkpoint)?;
    let (part, set) = match &samples.test {
        Some(test) => ("held back", test),
        None => ("train", &samples.train),
    };
    let report = trainer.evaluate(set)?;
    console.event(&json!({
        "event": "evaluated", "checkpoint": checkpoint.to_string_lossy(), "steps": trainer.steps(),
        "part": part, "test": json_of(&report),
    }));
    console.say(format!("{} after {} steps\n", checkpoint.display(), trainer.steps()));
    console.say(table_of(&[(part, &report)]));
    if samples.test.is_none() {
        console.say("\nNo samples are held back: these are the ones it was trained on.");
    }
    Ok(())
}
