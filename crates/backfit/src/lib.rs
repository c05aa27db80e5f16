//! Backfit compiles a whole training step — forward, backward and optimizer update — into one planned program.
//!
//! ```
//! use backfit::prelude::*;
//! # fn main() -> backfit::Result<()> {
//! let mnist = datasets::digits()?.to_unit("image")?.reshape("image", &[784])?;
//! # let mnist = mnist.take(1000);
//!
//! let g = Graph::new();
//! let x = g.input("image", F32, [128, 784]);
//! let label = g.input("label", I32, [128]);
//! let h = nn::linear(&g, "fc1", &x, 256).gelu();
//! let logits = nn::linear(&g, "fc2", &h, 10);
//! let loss = logits.cross_entropy(&label);
//!
//! let model = TrainStep::new(&loss)
//!     .optimizer(Adam::new(1e-3))
//!     .report("accuracy", &logits.accuracy(&label))
//!     .predict(&logits)
//!     .build()?;
//! let mut trainer = Trainer::new(model.compile(&Cpu::default())?);
//! for batch in mnist.batches(128).epochs(5) {
//!     let out = trainer.step(&batch?)?;
//!     println!("{} {}", out["loss"], out["accuracy"]);
//! }
//! # let file = std::env::temp_dir().join(format!("backfit-doc-{}.safetensors", std::process::id()));
//! # #[cfg(any())]
//! trainer.save("mlp.safetensors")?;
//! # trainer.save(&file)?;
//! # std::fs::remove_file(file).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! * [`nn`]: layers, each a weight or some and the operators that use them. Operators are methods of [`Tensor`].
//! * [`TrainStep`] makes the training program; [`Compile::compile`] compiles it for a [`Target`], here the [`Cpu`].
//! * [`Compile::compile_with`] takes a precision [`Policy`], such as [`Policy::bf16`]; [`ranges`] says how large values are.
//! * [`Trainer`] steps, evaluates, predicts, saves and resumes; [`Trainer::fit`] does so over epochs.
//! * [`Dataset`] and [`datasets`]: data in memory, from files, and the sets inside Backfit.
//! * A new operator, with its own derivative if need be, is one [`OpDef`]; the folder `examples/custom_op` shows it.
//! * [`onnx`] writes training steps, or inference, as models that ONNX Runtime runs.
//! * [`ir`], [`grad`], [`target`], [`train`]: the crates below, in full.

pub mod datasets;
mod lora;
pub mod models;
pub mod nn;
pub mod prelude;

pub use backfit_compile as target;
pub use backfit_grad as grad;
pub use backfit_ir as ir;
pub use backfit_onnx as onnx;
pub use backfit_train as train;

pub use backfit_compile::precision::{self, Policy};
pub use backfit_compile::range as ranges;
pub use backfit_compile::shuttle::Shuttle;
pub use backfit_compile::target::{Executable, Program, Target};
pub use backfit_cpu::Cpu;
pub use backfit_grad::{
    Adafactor, Adam, AdamW, Clip, Group, Lion, LossScale, Optimizer, RmsProp, Sgd, Tap, TapReport, TrainModule,
    TrainStep, Updated, grad_check, gradients,
};
pub use backfit_ir::{
    Attributes, DType, Dim, Error, Graph, Init, Literal, Module, OpDef, Place, Problem, Result, Shape, Taps, Tensor,
    Type, Vjp,
};
pub use backfit_train::checkpoint::Checkpoint;
pub use backfit_train::data::{Augment, Batch, Batches, Compaction, Dataset, Normalizer, Position, Source, Split};
pub use backfit_train::{
    Checkpoints, Compile, Compiled, EpochReport, Event, FitOptions, FitReport, Monitor, Report, Scalars, Schedule,
    StepOutput, Stopped, Trace, Trainer, WeightsReport,
};
pub use lora::{Adapters, Lora};
