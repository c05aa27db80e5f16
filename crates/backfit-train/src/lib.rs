//! Data, checkpoints, plots and event logs of a training run.
//!
//! * [`data`]: data sets, their readers, and batches that can be resumed exactly;
//! * [`checkpoint`]: named tensors and metadata in one file, replaced atomically;
//! * [`plot`]: a training curve as SVG or text;
//! * [`log`]: events, one JSON object a line.

pub mod atomic_file;
pub mod checkpoint;
pub mod data;
pub mod log;
pub mod plot;
mod reading;
