//! Training: the loop over a compiled program, data, checkpoints, plots and event logs.
//!
//! * [`Compile`], [`Trainer`]: a model on a target, and its steps, evaluation, prediction, saving and resuming;
//! * [`Schedule`]: how the learning rate changes;
//! * [`data`]: data sets, their readers, and batches that can be resumed exactly;
//! * [`checkpoint`]: named tensors and metadata in one file, replaced atomically;
//! * [`plot`]: a training curve as SVG or text;
//! * [`log`]: events, one JSON object a line.

pub mod atomic_file;
pub mod checkpoint;
mod compile;
pub mod data;
mod feed;
mod fingerprint;
pub mod log;
mod masking;
pub mod plot;
mod reading;
mod scalar;
mod scalars;
mod schedule;
pub mod trainer;

pub use compile::{Compile, Compiled};
pub use masking::VALID;
pub use scalars::Scalars;
pub use schedule::Schedule;
pub use trainer::{
    Checkpoints, EpochReport, Event, FitOptions, FitReport, Listener, Monitor, Report, StepOutput, Stopped, Trace,
    Trainer, WeightsReport,
};
