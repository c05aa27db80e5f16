//! Reverse mode over functions, and the assembly of whole training steps.
//!
//! [`gradients`] appends the derivative of a scalar to the graph that computes it. [`TrainStep`] joins forward,
//! backward, guard and optimizer update into one function and puts `init`, `eval` and `predict` beside it,
//! all over one resident store. This crate knows no target.

mod check;
mod host;
mod optimizer;
mod pairs;
mod reverse;
mod scan;
mod step;
mod taps;
mod variants;

pub use check::{CheckReport, Disagreement, check_outputs, grad_check};
pub use host::{HostUpdate, HostWeight};
pub use optimizer::{
    Adafactor, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd, Updated, adafactor_step, adam_step, adamw_step, lion_step,
    optimizer_step, rmsprop_step, sgd_step,
};
pub use reverse::{Request, gradients, vjp};
pub use step::{
    Averaged, Clip, FINITE, GOOD_STEPS, Group, LOSS, LOSS_SCALE, LossScale, Resident, SCALE, TrainModule, TrainStep,
    Unrolled, average_of,
};
pub use taps::{Tap, TapReport};
