//! What the command line may say.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Trains models as one statically planned program.
#[derive(Debug, Parser)]
#[command(name = "backfit", version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    /// Prints one JSON object a line on stdout instead of text, each with a key 'event'.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  backfit train digits                     train a recipe that needs no files (seconds)
  backfit eval runs/digits-1               judge the result on the digits that were held back
  backfit predict runs/digits-1 --input three.png
  backfit inspect digits                   operators, memory map, FLOPs of the training step
  backfit export digits --step -o out      the training step as an ONNX model
  backfit train digits --set optimizer.learning_rate=0.003 --set 'model.layers=[64, 64]'

Recipes that come with backfit: digits, digits-cnn, iris, sine, mnist, mnist-cnn, cifar10-cnn, char-lm, char-lm-16.
A recipe of your own is a TOML file: start from the recipe.toml that every run leaves in its folder.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trains a recipe, or goes on with an interrupted run.
    Train(Train),
    /// Judges a trained model on data that was held back.
    Eval(Eval),
    /// Asks a trained model about samples in a file.
    Predict(Predict),
    /// Shows what a recipe compiles to: operators, memory map, FLOPs, every stage.
    Inspect(Inspect),
    /// Writes a model, or its whole training step, for another engine.
    Export(Export),
    /// Lists and fetches public data sets.
    #[command(subcommand)]
    Data(Data),
}

/// How a recipe is named and changed.
#[derive(Clone, Debug, Default, Args)]
pub struct Changes {
    /// Changes a value of the recipe; keys with dots, values as in TOML. May be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where the files of the data set lie; short for --set data.dir=DIR.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Number of threads; short for --set target.threads=N. Results have the same bits for any.
    #[arg(long, value_name = "N")]
    pub threads: Option<u64>,
    /// The seed of weights, order and dropout; short for --set seed=N.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Passes over the data; short for --set epochs=N.
    #[arg(long, value_name = "N")]
    pub epochs: Option<u64>,
}

/// `backfit train`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  backfit train digits
  backfit train my.toml --epochs 20 --seed 7 --out runs/attempt
  backfit train mnist --data ~/data            (fetch it first: backfit data fetch mnist --to ~/data)
  backfit train --resume runs/digits-1         goes on bit for bit after Ctrl-C
  backfit train --resume runs/digits-1 --epochs 40
  backfit train my.toml --nan-trace            names the operator where a number stopped being finite

Every run has a folder of its own: checkpoint.safetensors, log.jsonl, curve.svg, recipe.toml.
Ctrl-C ends the run after the current step, with a checkpoint and exit code 130.")]
pub struct Train {
    /// A file recipe.toml, or the name of a recipe that comes with backfit.
    #[arg(required_unless_present = "resume")]
    pub recipe: Option<String>,
    /// Goes on with this run, in its folder: that folder, or checkpoint.safetensors in it. From any other checkpoint, such
    /// as best.safetensors, a run goes on in a folder of its own. A checkpoint knows its recipe.
    #[arg(long, value_name = "PATH")]
    pub resume: Option<PathBuf>,
    /// The folder of the run, which must not exist yet or be empty, instead of runs/RECIPE-N.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where a step is skipped because its gradients are not finite, replays it and names the operator and the line where
    /// the first such number arose. Results have the same bits.
    #[arg(long)]
    pub nan_trace: bool,
    /// Changes to the recipe.
    #[command(flatten)]
    pub changes: Changes,
}

/// `backfit eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  backfit eval runs/digits-1
  backfit eval runs/mnist-1/checkpoint.safetensors --data ~/data
  backfit eval runs/attempt-1 --recipe my.toml --json")]
pub struct Eval {
    /// The folder of a run, or a checkpoint.
    pub run: PathBuf,
    /// Another recipe than that in the checkpoint; its model must be the same.
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// Changes to the recipe.
    #[command(flatten)]
    pub changes: Changes,
}

/// `backfit predict`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  backfit predict runs/digits-1 --input three.png      an image of the size the model was trained on
  backfit predict runs/iris-1 --input flowers.csv      one line per sample
  backfit predict runs/digits-1 --input images.idx3.gz --json

Which files are understood: .png .jpg .npy .npz .csv, and IDX under any other name; for models of texts, texts.")]
pub struct Predict {
    /// The folder of a run, or a checkpoint.
    pub run: PathBuf,
    /// The samples.
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Number of threads.
    #[arg(long, value_name = "N")]
    pub threads: Option<u64>,
}

/// `backfit inspect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  backfit inspect digits
  backfit inspect digits --function eval
  backfit inspect digits --stage simplify --text       the text form after that stage
  backfit inspect digits --dot | dot -Tsvg > step.svg  a picture
  backfit inspect digits --ranges --set precision=f16  how large values are, and which do not fit
  backfit inspect digits --json                        sizes of the plan as one object

Stages: differentiate, precision, decompose, simplify, layout.")]
pub struct Inspect {
    /// A file recipe.toml, or the name of a recipe that comes with backfit.
    pub recipe: String,
    /// What of the training program: init, step, eval, predict, and where the recipe asks for them steps,
    /// eval_averaged, predict_averaged.
    #[arg(long, value_name = "NAME", default_value = "step")]
    pub function: String,
    /// A stage of the compiler, for --text and --dot; the last one unless given.
    #[arg(long, value_name = "NAME")]
    pub stage: Option<String>,
    /// Prints the text form.
    #[arg(long)]
    pub text: bool,
    /// Prints a picture in the language of Graphviz.
    #[arg(long, conflicts_with = "text")]
    pub dot: bool,
    /// Prints how large the values of a step are, by bounds and in calibration runs, and what the precision policy's dtype
    /// makes of that. Reads the data.
    #[arg(long, conflicts_with_all = ["text", "dot", "stage", "function"])]
    pub ranges: bool,
    /// Changes to the recipe.
    #[command(flatten)]
    pub changes: Changes,
}

/// `backfit export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  backfit export runs/digits-1 -o out              predict.onnx, with the trained weights inside
  backfit export digits --step -o out              the training step, to train anywhere
  backfit export runs/digits-1 --step -o out       the same, from where that run stands
  backfit export digits --step --samples -o out && python examples/onnx_train.py out

With --step: step.onnx, eval.onnx, predict.onnx and init.onnx take the state as inputs, and the metadata of a model says
which of its outputs feeds which input; state.npz has the state to start from, hypers.npz the learning rate and what
else is fed at each step, recipe.toml the recipe.")]
pub struct Export {
    /// A file recipe.toml, the name of a recipe that comes with backfit, the folder of a run, or a checkpoint.
    pub recipe: String,
    /// What it is written for.
    #[arg(long, value_name = "NAME", default_value = "onnx")]
    pub target: Engine,
    /// The whole training program, and not just what predicts.
    #[arg(long)]
    pub step: bool,
    /// The samples too, as the model takes them: samples.npz.
    #[arg(long)]
    pub samples: bool,
    /// The folder, which must not exist yet or be empty.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Changes to the recipe.
    #[command(flatten)]
    pub changes: Changes,
}

/// Other engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Whatever runs ONNX models of operator set 21, as ONNX Runtime does.
    Onnx,
}

/// `backfit data`.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Lists the data sets that recipes can name.
    List,
    /// Brings a data set into a folder and verifies its checksums.
    #[command(after_help = "\
Examples:
  backfit data fetch mnist --to ~/data
  backfit data fetch mnist --from /media/disk --to ~/data    copies instead of downloading")]
    Fetch {
        /// Its name, as in the list.
        name: String,
        /// Copies the files from here instead of downloading them.
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// Where the folder of the data set is made.
        #[arg(long, value_name = "DIR", default_value = "data")]
        to: PathBuf,
    },
}

impl Changes {
    /// All changes as keys and values, the short forms last.
    pub fn overrides(&self) -> Vec<String> {
        let mut all = self.set.clone();
        // Debug formatting quotes and escapes a path as TOML's basic strings do, for all that paths contain in practice.
        all.extend(self.data.as_ref().map(|dir| format!("data.dir={:?}", absolute(dir).to_string_lossy())));
        let numbers = [("target.threads", self.threads), ("seed", self.seed), ("epochs", self.epochs)];
        all.extend(numbers.iter().filter_map(|(key, value)| value.map(|v| format!("{key}={v}"))));
        all
    }
}

fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
