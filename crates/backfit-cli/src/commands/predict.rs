//! `backfit predict`.

use crate::args;
use crate::console::{Console, number};
use crate::interface::{Interface, Output};
use crate::recipe::Loaded;
use crate::run_folder::checkpoint_of;
use crate::session;
use crate::writer::Writer;
use backfit::datasets::csv::Table;
use backfit::datasets::{idx, images, npz};
use backfit::{Dataset, Literal, Problem, Result};
use serde_json::json;
use std::path::Path;

/// How many characters a model of texts adds.
const CHARACTERS: usize = 400;

/// Prints a class or values for every sample of a file; of a text, how it may go on.
///
/// # Errors
/// No checkpoint; a file that cannot be read, or with samples that the model does not take.
pub fn run(args: &args::Predict, console: Console) -> Result<()> {
    let checkpoint = checkpoint_of(&args.run)?;
    let threads = args.threads.map(|n| format!("target.threads={n}"));
    let (loaded, interface) = session::of_checkpoint(&checkpoint, threads.as_slice())?;
    if let Some(mut writer) = Writer::new(&loaded, &interface)? {
        let mut trainer = session::compile(&loaded, &interface)?;
        session::resume(&mut trainer, &checkpoint)?;
        let start = std::fs::read_to_string(&args.input).map_err(|e| unreadable(&args.input, &e))?;
        let text = writer.write(&trainer, &start, CHARACTERS)?;
        console.event(&json!({"event": "text", "start": start, "text": text}));
        console.say(format!("{start}{text}"));
        return Ok(());
    }
    let set = read(&loaded, &interface, &args.input)?;
    interface.check(&interface.input, &set)?;
    set.check_finite()?;
    let set = interface.scaling.apply(&set, &interface.input)?;
    let mut trainer = session::compile(&loaded, &interface)?;
    session::resume(&mut trainer, &checkpoint)?;
    let predictions = trainer.predict(&set)?.to_f32();
    for (index, row) in predictions.chunks_exact(interface.output.width().max(1)).enumerate() {
        tell(console, &interface, index, row);
    }
    Ok(())
}

fn tell(console: Console, interface: &Interface, index: usize, row: &[f32]) {
    match &interface.output {
        Output::Classes { .. } => {
            let shares = softmax(row);
            let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
            let name = interface.output.name(best).map_or_else(|| best.to_string(), str::to_owned);
            console.event(&json!({
                "event": "prediction", "sample": index, "class": best, "name": name, "probability": shares[best],
                "probabilities": shares,
            }));
            console.say(format!("{index}: {name}  ({:.1} %)", shares[best] * 100.0));
        }
        Output::Values { .. } | Output::Text { .. } => {
            console.event(&json!({"event": "prediction", "sample": index, "values": row}));
            let values = row.iter().enumerate().map(|(i, value)| match interface.output.name(i) {
                Some(name) => format!("{name} = {}", number(f64::from(*value))),
                None => number(f64::from(*value)),
            });
            console.say(format!("{index}: {}", values.collect::<Vec<_>>().join("  ")));
        }
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Problem {
    Problem::new("cannot read the samples").in_file(file).because(error.to_string())
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = logits.iter().map(|x| f64::from(x - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|p| p / sum).collect()
}

/// The samples of a file, in the column that the model takes.
fn read(loaded: &Loaded, interface: &Interface, file: &Path) -> Result<Dataset> {
    let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let values = match ending.as_str() {
        "png" | "jpg" | "jpeg" => images::read_image(file)?,
        "csv" => table(loaded, file)?,
        "npy" => npz::read_npy(file)?,
        "npz" => array(loaded, file)?,
        _ => idx::read(file)?,
    };
    let values = match (interface.shape.as_slice(), values.ty().shape.dims()) {
        // Grey images come without an axis of channels in IDX and often in NumPy's files.
        ([1, ..], [n, height, width]) => {
            let ty = values.ty().with_shape([*n, 1, *height, *width]);
            Literal::from_bytes(ty, values.bytes()).unwrap_or(values)
        }
        _ => values,
    };
    let is_float = values.ty().dtype.is_float();
    if interface.scaling == crate::interface::Scaling::Unit && is_float {
        let problem = Problem::new(format!("the file has {}, and the model takes bytes", values.ty())).in_file(file);
        return Err(problem.help("give pixels as numbers from 0 to 255, of dtype uint8").into());
    }
    Ok(Dataset::new([(interface.input.as_str(), values)])?.from_file(file))
}

/// The features of a table; a column with the answer is left out where the table has one.
fn table(loaded: &Loaded, file: &Path) -> Result<Literal> {
    let data = &loaded.recipe.data;
    let delimiter = data.delimiter.unwrap_or(',');
    let bytes = std::fs::read(file).map_err(|e| unreadable(file, &e))?;
    let head = String::from_utf8_lossy(bytes.split(|&b| b == b'\n').next().unwrap_or_default()).into_owned();
    let present: Vec<&str> = head.split(delimiter).map(|name| name.trim().trim_matches('"')).collect();
    let answers = match data.name.as_deref() {
        Some("iris") => vec!["species".to_owned()],
        _ => data.label.iter().chain(&data.targets).chain(&data.ignored).cloned().collect(),
    };
    let ignored = answers.into_iter().filter(|name| present.contains(&name.as_str())).collect();
    let table = Table { delimiter: delimiter as u8, ignored, ..Table::default() };
    table.decode(&bytes[..], file)?.column("features").cloned()
}

/// The array that the recipe names, or the only one.
fn array(loaded: &Loaded, file: &Path) -> Result<Literal> {
    let set = npz::read_npz(file)?;
    let name = loaded.recipe.data.input.as_deref().unwrap_or("x");
    let mut columns = set.columns();
    match (columns.next(), columns.next()) {
        (Some((_, only)), None) => Ok(only.clone()),
        _ => set.column(name).cloned().map_err(|e| e.because(format!("the file is {}", file.display()))),
    }
}
