//! From the table `[data]` to samples, and what a model must know of them.

use crate::interface::{Interface, Output, Scaling};
use crate::recipe::Loaded;
use crate::recipe::data::{Data, Normalisation, Paths};
use crate::recipe::model::Kind;
use backfit::datasets::csv::Table;
use backfit::datasets::text::Corpus;
use backfit::datasets::{idx, images, npz, public};
use backfit::train::data::bundled;
use backfit::{Augment, Batches, DType, Dataset, Literal, Normalizer, Place, Problem, Result, Source};
use std::path::Path;

/// The name under which a model takes class labels.
pub const LABEL: &str = "label";
/// The name under which a model takes the numbers to be predicted.
pub const TARGET: &str = "target";
/// The name under which a model takes the characters of a text.
pub const TOKENS: &str = "x";
/// The name under which a model takes the same characters, each one later.
pub const NEXT: &str = "y";

/// The samples of a recipe, ready for its model.
#[derive(Clone, Debug)]
pub struct Samples {
    /// To learn from.
    pub train: Dataset,
    /// Held back.
    pub test: Option<Dataset>,
    /// What a model must know of them.
    pub interface: Interface,
}

/// Samples as they were read.
struct Raw {
    train: Dataset,
    test: Option<Dataset>,
    /// The column that goes into the model.
    input: String,
    /// The characters of a text, where the samples are of one.
    characters: Option<String>,
}

impl Samples {
    /// Batches to train on.
    pub fn batches(&self, loaded: &Loaded) -> Batches<Dataset> {
        let (recipe, data) = (&loaded.recipe, &loaded.recipe.data);
        let batches = self.train.batches(recipe.batch).seed(recipe.seed);
        let (mirror, shift) = (data.mirror == Some(true), data.shift.unwrap_or(0));
        if !mirror && shift == 0 {
            return batches;
        }
        let changes = Augment::new(&self.interface.input).shift(shift);
        batches.augment(if mirror { changes.mirror() } else { changes })
    }
}

impl Raw {
    fn new(input: &str, train: Dataset, test: Option<Dataset>) -> Self {
        Raw { train, test, input: input.to_owned(), characters: None }
    }

    fn parts(&self) -> impl Iterator<Item = &Dataset> {
        std::iter::once(&self.train).chain(&self.test)
    }
}

/// Reads, checks, splits and normalises the samples of a recipe, to train on.
///
/// # Errors
/// Files that cannot be read; empty data; labels out of range; numbers that are not finite; a batch larger than the
/// data; more steps in one run than in an epoch; a loss that does not fit what is to be predicted.
pub fn load(loaded: &Loaded) -> Result<Samples> {
    let raw = checked(loaded)?;
    check_batch(loaded, &raw.train, raw.test.as_ref())?;
    let output = output(loaded, &raw)?;
    let scaling = scaling(loaded, &raw)?;
    let shape = raw.train.column(&raw.input)?.ty().shape[1..].to_vec();
    let interface = Interface { input: raw.input.clone(), shape, output, scaling };
    scaled(&raw, interface)
}

/// The same for a model that has been trained, with the statistics of the data it was trained on.
///
/// # Errors
/// As for [`load`]; samples that the model does not take.
pub fn load_for(loaded: &Loaded, interface: &Interface) -> Result<Samples> {
    let raw = checked(loaded)?;
    for set in raw.parts() {
        interface.check(&raw.input, set)?;
        match &interface.output {
            Output::Classes { count, .. } => set.check_labels(LABEL, *count)?,
            Output::Text { characters } if raw.characters.as_ref() != Some(characters) => {
                let problem = loaded.problem("data", "the text has other characters than the one of the training");
                return Err(problem.help("give the same text").into());
            }
            Output::Text { .. } => {}
            Output::Values { width, .. } => {
                let found: usize = set.column(TARGET)?.ty().shape[1..].iter().product();
                if found != *width {
                    let what = format!("the model predicts {width} numbers, and the data has {found}");
                    return Err(loaded.problem("data.targets", what).help("name as many columns").into());
                }
            }
        }
    }
    scaled(&raw, interface.clone())
}

/// The same for a run that goes on.
///
/// # Errors
/// As for [`load_for`]; more samples in a batch, or steps in a run, than there are.
pub fn load_to_resume(loaded: &Loaded, interface: &Interface) -> Result<Samples> {
    let samples = load_for(loaded, interface)?;
    check_batch(loaded, &samples.train, samples.test.as_ref())?;
    Ok(samples)
}

fn checked(loaded: &Loaded) -> Result<Raw> {
    let raw = split(loaded, read(loaded)?)?;
    for set in raw.parts() {
        if set.is_empty() {
            return Err(loaded.problem("data", "there are no samples").help("check path and content").into());
        }
        set.check_finite()?;
    }
    Ok(raw)
}

fn scaled(raw: &Raw, interface: Interface) -> Result<Samples> {
    let apply = |set: &Dataset| interface.scaling.apply(set, &raw.input);
    let (train, test) = (apply(&raw.train)?, raw.test.as_ref().map(apply).transpose()?);
    Ok(Samples { train, test, interface })
}

/// What is known of the samples of a recipe without their files, for named sets.
pub fn known(loaded: &Loaded) -> Option<Interface> {
    let (shape, classes) = match loaded.recipe.data.name.as_deref()? {
        "mnist" => (vec![1, 28, 28], 10),
        "cifar10" => (vec![3, 32, 32], 10),
        _ => return None,
    };
    let output = Output::Classes { count: classes, names: vec![] };
    Some(Interface { input: "image".to_owned(), shape, output, scaling: Scaling::Unit })
}

fn read(loaded: &Loaded) -> Result<Raw> {
    let data = &loaded.recipe.data;
    let features = |train, test| Raw::new("features", train, test);
    let pictures = |train, test| Raw::new("image", train, test);
    let one = match &data.test {
        Some(Paths::One(path)) => Some(path.as_path()),
        _ => None,
    };
    if let Some(name) = &data.name {
        return named(loaded, name);
    }
    if let Some(path) = &data.text {
        return text(loaded, &Corpus::read(path)?);
    }
    if let Some(path) = &data.csv {
        let table = table(data);
        let read = |path: &Path| table.read(path);
        return Ok(features(read(path)?, one.map(read).transpose()?));
    }
    if let Some(path) = &data.npz {
        let read = |path: &Path| arrays(data, path);
        return Ok(features(read(path)?, one.map(read).transpose()?));
    }
    if let Some(path) = &data.images {
        let read = |path: &Path| if path.is_dir() { images::read_folder(path) } else { images::read_archive(path) };
        return Ok(pictures(read(path)?, one.map(read).transpose()?));
    }
    if let Some([first, second]) = &data.idx {
        let test = match &data.test {
            Some(Paths::Two([images, labels])) => Some(idx::read_pair(images, labels)?),
            _ => None,
        };
        return Ok(pictures(idx::read_pair(first, second)?, test));
    }
    Err(loaded.problem("data", "there is no source of data").into())
}

fn named(loaded: &Loaded, name: &str) -> Result<Raw> {
    let raw = Raw::new;
    match name {
        "digits" => {
            let parts = bundled::digits_split()?;
            Ok(raw("image", parts.train, Some(parts.test)))
        }
        "iris" => {
            let all = bundled::iris()?;
            // Of the 50 flowers of each species every fifth is held back.
            let (test, train): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|i| (i % 50).is_multiple_of(5));
            Ok(raw("features", all.select(&train)?, Some(all.select(&test)?)))
        }
        "sine" => {
            // The first of the features is x itself; the model makes the powers.
            let all = bundled::sine()?;
            let powers = all.column("features")?;
            let width = powers.ty().shape[1];
            let x: Vec<f32> = powers.to_f32().into_iter().step_by(width).collect();
            Ok(raw("features", all.clone().with_column("features", Literal::from_f32([x.len(), 1], &x))?, None))
        }
        name => {
            let known = public::catalog().iter().map(|set| set.name);
            if !known.clone().any(|n| n == name) {
                let names: Vec<&str> = ["digits", "iris", "sine"].into_iter().chain(known).collect();
                let problem = loaded.problem("data.name", format_args!("there is no data set '{name}'"));
                return Err(problem.help(format!("the data sets are: {}", names.join(", "))).into());
            }
            let Some(dir) = &loaded.recipe.data.dir else {
                let problem = loaded.problem("data.dir", format_args!("where the files of '{name}' lie is not known"));
                let help = format!("give --data DIR; 'backfit data fetch {name} --to DIR' brings them there");
                return Err(problem.help(help).into());
            };
            match public::load(name, dir)? {
                public::Loaded::Samples(parts) => Ok(raw("image", parts.train, Some(parts.test))),
                public::Loaded::Text(corpus) => text(loaded, &corpus),
            }
        }
    }
}

/// Windows over a text, of which the end is held back.
fn text(loaded: &Loaded, corpus: &Corpus) -> Result<Raw> {
    let recipe = &loaded.recipe;
    if recipe.model.kind != Kind::Transformer {
        let problem = loaded.problem("model.kind", "the data is a text, and this kind of model does not take one");
        return Err(problem.help("set model.kind to \"transformer\"").into());
    }
    let context = recipe.data.context.unwrap_or(1);
    let windows = |corpus: &Corpus, stride| {
        let short = || {
            let what =
                format!("{} characters are fewer than a window of {context} and one more", corpus.tokens().len());
            loaded.problem("data.context", what).help("give a smaller context, or a longer text")
        };
        let windows = corpus.windows(context).every(stride);
        if windows.is_empty() { Err(short().into()) } else { Dataset::collect(&windows) }
    };
    let parts = recipe.data.held_back.map(|share| corpus.split(share)).transpose()?;
    let (train, test) = match &parts {
        Some((train, test)) => (train, Some(windows(test, context)?)),
        None => (corpus, None),
    };
    let train = windows(train, recipe.data.stride.unwrap_or(context))?;
    let characters = corpus.vocabulary().characters().iter().collect();
    Ok(Raw { characters: Some(characters), ..Raw::new(TOKENS, train, test) })
}

fn table(data: &Data) -> Table {
    Table {
        delimiter: data.delimiter.map_or(b',', |d| d as u8),
        label: data.label.clone(),
        targets: data.targets.clone(),
        ignored: data.ignored.clone(),
        ..Table::default()
    }
}

/// The arrays of a file under the names that models use.
fn arrays(data: &Data, path: &Path) -> Result<Dataset> {
    let all = npz::read_npz(path)?;
    let named = |e: backfit::Error| e.because(format!("the file is {}", path.display()));
    let column = |name: &str| all.column(name).cloned().map_err(named);
    let mut columns = vec![("features", column(data.input.as_deref().unwrap_or("x"))?)];
    if let Some(label) = &data.label {
        columns.push((LABEL, column(label)?));
    }
    if let Some(target) = data.targets.first() {
        columns.push((TARGET, column(target)?));
    }
    let set = Dataset::new(columns)?.from_file(path);
    let set = if set.column("features")?.ty().dtype == DType::U8 { set } else { set.to_f32("features")? };
    match (&data.label, data.targets.is_empty()) {
        (Some(label), _) => {
            let integers = set.to_i32(LABEL).map_err(|e| e.because(format!("it is the array '{label}' of the file")));
            integers?.reshape(LABEL, &[])
        }
        (None, false) => {
            let set = set.to_f32(TARGET)?;
            let width = set.column(TARGET)?.ty().shape[1..].iter().product();
            set.reshape(TARGET, &[width])
        }
        _ => Ok(set),
    }
}

fn split(loaded: &Loaded, mut raw: Raw) -> Result<Raw> {
    let recipe = &loaded.recipe;
    if let Some(share) = recipe.data.held_back.filter(|_| raw.characters.is_none()) {
        if raw.test.is_some() {
            let problem = loaded.problem("data.held_back", "this data set has its own held-back samples");
            return Err(problem.help("remove it").into());
        }
        let parts = raw.train.split(share, recipe.seed)?;
        (raw.train, raw.test) = (parts.train, Some(parts.test));
    }
    if let Some(n) = recipe.data.take {
        raw.train = raw.train.take(n);
    }
    Ok(raw)
}

fn check_batch(loaded: &Loaded, train: &Dataset, test: Option<&Dataset>) -> Result<()> {
    let recipe = &loaded.recipe;
    let samples = train.len();
    if recipe.batch > samples {
        let what = format!("a batch of {} samples, but there are only {samples} to train on", recipe.batch);
        return Err(loaded.problem("batch", what).help(format!("give a batch of at most {samples}")).into());
    }
    let (steps, unroll) = (samples.div_ceil(recipe.batch), recipe.unroll.unwrap_or(1));
    if unroll > steps {
        let what = format!("{unroll} steps in one run, but an epoch has only {steps}");
        return Err(loaded.problem("unroll", what).help(format!("give at most {steps}, or leave it out")).into());
    }
    let most = samples.max(test.map_or(0, Dataset::len));
    if recipe.loss.reduction == crate::recipe::model::Reduction::Sum && recipe.batch < most {
        let problem = loaded.problem("loss.reduction", "a sum over all samples needs them all in one batch");
        return Err(problem.help(format!("set batch to {most}, or loss.reduction to \"mean\"")).into());
    }
    Ok(())
}

/// What is to be predicted, which must be what the loss compares.
fn output(loaded: &Loaded, raw: &Raw) -> Result<Output> {
    if let Some(characters) = &raw.characters {
        return Ok(Output::Text { characters: characters.clone() });
    }
    if loaded.recipe.model.kind == Kind::Transformer {
        let problem = loaded.problem("model.kind", "a transformer learns from a text, and the data is none");
        return Err(problem.help("set data.name to \"tinyshakespeare\", or model.kind to another").into());
    }
    let has_labels = raw.train.columns().any(|(name, _)| name == LABEL);
    match (has_labels, loaded.recipe.loss.is_of_classes()) {
        (true, true) => classes(loaded, raw),
        (false, false) => {
            let shape = raw.train.column(TARGET)?.ty().shape.clone();
            Ok(Output::Values { width: shape[1..].iter().product(), names: loaded.recipe.data.targets.clone() })
        }
        (true, false) => Err(loaded
            .problem("loss.name", "the data has classes, and this loss compares numbers")
            .help("set loss.name to \"cross_entropy\", or name columns of numbers in data.targets")
            .into()),
        (false, true) => Err(loaded
            .problem("loss.name", "cross_entropy compares classes, and the data has numbers to be predicted")
            .help("set loss.name to \"mse\", or name the column of the class in data.label")
            .into()),
    }
}

fn classes(loaded: &Loaded, raw: &Raw) -> Result<Output> {
    let names = raw.train.class_names().map(<[String]>::to_vec).unwrap_or_default();
    let largest = raw.train.column(LABEL)?.to_i64().into_iter().max().unwrap_or(0).max(0) as usize;
    let count = loaded.recipe.data.classes.unwrap_or_else(|| names.len().max(largest + 1));
    if count > raw.train.len().max(1000) {
        let what = format!("a label is {largest}, which would make {count} classes");
        let problem = Problem::new(what).at(file_of(&raw.train).unwrap_or_else(|| loaded.source.place("data")));
        return Err(problem.help("number the classes from 0, or set data.classes if there are so many").into());
    }
    raw.parts().try_for_each(|set| set.check_labels(LABEL, count))?;
    Ok(Output::Classes { count, names })
}

fn file_of(set: &Dataset) -> Option<Place> {
    set.file(LABEL).map(|file| Place::File(file.to_owned(), None))
}

fn scaling(loaded: &Loaded, raw: &Raw) -> Result<Scaling> {
    if raw.characters.is_some() {
        return Ok(Scaling::Tokens);
    }
    let bytes = raw.train.column(&raw.input)?.ty().dtype == DType::U8;
    Ok(match loaded.recipe.data.normalisation {
        Normalisation::None => Scaling::None,
        Normalisation::Unit if !bytes => {
            let problem =
                loaded.problem("data.normalisation", "\"unit\" is for bytes, and the input has other numbers");
            return Err(problem.help("set it to \"standard\" or \"none\"").into());
        }
        Normalisation::Unit => Scaling::Unit,
        Normalisation::Standard => {
            let by_train = Normalizer::fit(&raw.train, &raw.input)?;
            Scaling::Standard { mean: by_train.mean().to_vec(), deviation: by_train.deviation().to_vec() }
        }
    })
}
