//! Training on the CPU, from layers to checkpoints.

#[path = "training/accumulating.rs"]
mod accumulating;
#[path = "training/averaging.rs"]
mod averaging;
#[path = "training/evaluation.rs"]
mod evaluation;
#[path = "training/feeding.rs"]
mod feeding;
#[path = "training/fitting.rs"]
mod fitting;
#[path = "training/grouping.rs"]
mod grouping;
#[path = "training/learning.rs"]
mod learning;
#[path = "training/masters.rs"]
mod masters;
#[path = "training/models.rs"]
mod models;
#[path = "training/modes.rs"]
mod modes;
#[path = "training/on_host.rs"]
mod on_host;
#[path = "training/own_data.rs"]
mod own_data;
#[path = "training/resuming.rs"]
mod resuming;
#[path = "training/scaling.rs"]
mod scaling;
#[path = "training/shuttling.rs"]
mod shuttling;
#[path = "training/tracing.rs"]
mod tracing;
#[path = "training/unrolling.rs"]
mod unrolling;
