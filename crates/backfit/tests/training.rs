//! Training on the CPU, from layers to checkpoints.

#[path = "training/evaluation.rs"]
mod evaluation;
#[path = "training/feeding.rs"]
mod feeding;
#[path = "training/fitting.rs"]
mod fitting;
#[path = "training/learning.rs"]
mod learning;
#[path = "training/models.rs"]
mod models;
#[path = "training/resuming.rs"]
mod resuming;
