//! The binary, driven as a user drives it.

#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/optimizers.rs"]
mod optimizers;
#[path = "cli/predict.rs"]
mod predict;
#[path = "cli/resume.rs"]
mod resume;
#[path = "cli/runner.rs"]
mod runner;
#[path = "cli/text.rs"]
mod text;
#[path = "cli/train.rs"]
mod train;
