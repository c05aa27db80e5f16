//! `backfit export`.

use crate::args::{self, Engine};
use crate::console::{Console, bytes};
use crate::interface::Interface;
use crate::network::training_program;
use crate::recipe::{self, Loaded};
use crate::run_folder::{check_free, checkpoint_of};
use crate::samples::{self, Samples};
use crate::session;
use backfit::datasets::npz::write_npz;
use backfit::onnx::{self, Model};
use backfit::precision::Masters;
use backfit::train::atomic_file;
use backfit::{Dataset, Literal, Problem, Program, Result, TrainModule, Trainer};
use serde_json::json;
use std::path::Path;

/// For so many steps at most it is written what is fed.
const MOST_STEPS: u64 = 10_000_000;

/// Writes models, and what they start from, into a folder.
///
/// # Errors
/// Whatever is wrong with recipe, run or data; a folder that holds something; operators that the other engine lacks. All
/// of it before anything is written.
pub fn run(args: &args::Export, console: Console) -> Result<()> {
    let Engine::Onnx = args.target;
    check_free(&args.out, "name another one with --out")?;
    let source = Source::open(args)?;
    let module = training_program(&source.loaded, &source.interface)?;
    let mut models = onnx::export(&program(&module, args.step).precision(source.loaded.policy()))?;
    let interface = source.interface.to_json()?;
    let state = state(&source.trainer)?;
    for model in &mut models {
        if !args.step {
            model.bake(state.iter().map(|(name, value)| (name.as_str(), value)));
        }
        if model.name == "predict" {
            model.annotate("interface", &interface);
        }
    }
    let files: Vec<Vec<u8>> = models.iter().map(Model::to_bytes).collect::<Result<_>>()?;
    let recipe = source.loaded.to_toml()?;
    let hypers = source
        .samples
        .as_ref()
        .map(|samples| hypers(&source.loaded, samples, &module, source.trainer.steps()))
        .transpose()?;

    std::fs::create_dir_all(&args.out).map_err(|e| {
        Problem::new("cannot make the folder").in_file(&args.out).because(e.to_string()).help("choose one with --out")
    })?;
    write_models(&args.out, &models, &files, console)?;
    if args.step {
        write_npz(&args.out.join("state.npz"), state.iter().map(|(name, value)| (name.as_str(), value)))?;
        let hypers = hypers.unwrap_or_default();
        write_npz(&args.out.join("hypers.npz"), hypers.iter().map(|(name, values)| (name.as_str(), values)))?;
    }
    if let Some(samples) = source.samples.as_ref().filter(|_| args.samples) {
        write_samples(&args.out.join("samples.npz"), samples)?;
    }
    atomic_file::replace(&args.out.join("recipe.toml"), |out| out.write_all(recipe.as_bytes()))?;
    console.event(&json!({"event": "exported", "target": "onnx", "folder": args.out.to_string_lossy()}));
    console.say(format!("\nNext:\n  {}", next(args)));
    Ok(())
}

fn next(args: &args::Export) -> String {
    let out = args.out.display();
    match (args.step, args.samples) {
        (true, true) => format!("python examples/onnx_train.py {out}"),
        (true, false) => {
            "examples/onnx_train.py trains with such a folder; --samples adds the samples to it".to_owned()
        }
        (false, _) => format!("python -c 'import onnxruntime; onnxruntime.InferenceSession(\"{out}/predict.onnx\")'"),
    }
}

/// A recipe, or a run: what is exported and where it stands.
struct Source {
    loaded: Loaded,
    interface: Interface,
    samples: Option<Samples>,
    trainer: Trainer,
}

impl Source {
    fn open(args: &args::Export) -> Result<Self> {
        let (path, overrides) = (Path::new(&args.recipe), args.changes.overrides());
        let is_run = path.is_dir() || path.extension().is_some_and(|e| e == "safetensors");
        let checkpoint = if is_run { Some(checkpoint_of(path)?) } else { None };
        let (loaded, known) = match &checkpoint {
            Some(checkpoint) => {
                let (loaded, interface) = session::of_checkpoint(checkpoint, &overrides)?;
                (loaded, Some(interface))
            }
            None => {
                let loaded = recipe::load(&args.recipe, &overrides)?;
                let interface = samples::known(&loaded);
                (loaded, interface)
            }
        };
        if args.step {
            check_masters(&loaded)?;
        }
        // A step needs to know how many there are in an epoch: so many learning rates are written.
        let samples = match &known {
            Some(_) if !args.step && !args.samples => None,
            Some(interface) if checkpoint.is_some() => Some(samples::load_for(&loaded, interface)?),
            _ => Some(samples::load(&loaded)?),
        };
        let interface = match (&samples, known) {
            (Some(samples), _) => samples.interface.clone(),
            (None, Some(interface)) => interface,
            (None, None) => unreachable!("samples are read where nothing else tells the interface"),
        };
        let mut trainer = session::compile(&loaded, &interface)?;
        if let Some(checkpoint) = &checkpoint {
            session::resume(&mut trainer, checkpoint)?;
        }
        Ok(Source { loaded, interface, samples, trainer })
    }
}

/// Refuses a step whose state archives of NumPy do not hold: they have no bf16.
fn check_masters(loaded: &Loaded) -> Result<()> {
    if loaded.policy().stores() == Masters::F32 {
        return Ok(());
    }
    let problem = loaded.problem("masters", "a step with weights that are stored as bf16 cannot be exported");
    Err(problem.help("leave out masters, so that weights are f32, or export without --step what predicts").into())
}

/// Evaluation and prediction are those of averaged weights where the recipe keeps averages, as with `eval` and `predict`.
fn program(module: &TrainModule, step: bool) -> Program {
    let (eval, predict) = module.averaged.map_or((module.eval, module.predict), |a| (a.eval, a.predict));
    let training = [("init", module.init), ("step", module.step), ("eval", eval)];
    let mut functions: Vec<_> = training.into_iter().filter(|_| step).collect();
    functions.extend(predict.map(|id| ("predict", id)));
    let functions = functions.into_iter().map(|(name, id)| (name.to_owned(), id)).collect();
    Program::new(module.module.clone(), functions)
}

/// The resident store.
fn state(trainer: &Trainer) -> Result<Vec<(String, Literal)>> {
    let executable = trainer.executable();
    let read = |name: &str| executable.read(name).ok_or_else(|| Problem::new(format!("there is no '{name}'")));
    let names = executable.residents().iter().map(|port| port.name.clone());
    Ok(names.map(|name| read(&name).map(|value| (name, value))).collect::<Result<_, _>>()?)
}

/// What is fed at each step to come beside the batch: to the end of the recipe, and for an epoch at least.
///
/// # Errors
/// More steps than anyone takes one by one.
fn hypers(loaded: &Loaded, samples: &Samples, module: &TrainModule, done: u64) -> Result<Vec<(String, Literal)>> {
    let recipe = &loaded.recipe;
    let per_epoch = samples.batches(loaded).per_epoch();
    let total = recipe.epochs.saturating_mul(per_epoch);
    if total > MOST_STEPS {
        let problem =
            loaded.problem("epochs", format_args!("a file with what is fed at each of {total} steps is too large"));
        return Err(problem.help(format!("give fewer epochs: at most {MOST_STEPS} steps")).into());
    }
    let schedule = loaded.schedule(per_epoch);
    let optimizer = &module.optimizer;
    let names = optimizer.hypers();
    let mut columns = vec![Vec::new(); names.len()];
    let mut values = vec![0.0; names.len()];
    for step in done..total.max(done + per_epoch) {
        let rate = schedule.learning_rate(optimizer.learning_rate(), step);
        optimizer.hyper_values(step + 1, rate, &mut values);
        columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(*value as f32));
    }
    let literal = |column: &Vec<f32>| Literal::from_f32([column.len()], column);
    Ok(names.into_iter().zip(&columns).map(|(name, column)| (name.to_owned(), literal(column))).collect())
}

fn write_models(folder: &Path, models: &[Model], files: &[Vec<u8>], console: Console) -> Result<()> {
    for (model, content) in models.iter().zip(files) {
        let file = folder.join(format!("{}.onnx", model.name));
        atomic_file::replace(&file, |out| out.write_all(content))?;
        let nodes = model.proto.graph.as_ref().map_or(0, |graph| graph.node.len());
        console.event(&json!({
            "event": "model", "file": file.to_string_lossy(), "nodes": nodes, "bytes": content.len(),
        }));
        console.say(format!("{}: {nodes} nodes, {}", file.display(), bytes(content.len())));
    }
    Ok(())
}

/// Every column under `train.NAME`, and `test.NAME` where samples are held back.
fn write_samples(file: &Path, samples: &Samples) -> Result<()> {
    let columns = |part: &'static str, set: &Dataset| -> Vec<(String, Literal)> {
        set.columns().map(|(name, values)| (format!("{part}.{name}"), values.clone())).collect()
    };
    let mut all = columns("train", &samples.train);
    all.extend(samples.test.iter().flat_map(|set| columns("test", set)));
    write_npz(file, all.iter().map(|(name, values)| (name.as_str(), values)))
}
