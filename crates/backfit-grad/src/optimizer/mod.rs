//! Optimizers: which state they keep per weight, which scalars a step is fed, and how they update.

mod adafactor;
mod adam;
mod lion;
mod rmsprop;
mod sgd;
mod steps;

pub use adafactor::Adafactor;
pub use adam::{Adam, AdamW};
pub use lion::Lion;
pub use rmsprop::RmsProp;
pub use sgd::Sgd;
pub use steps::{adafactor_step, adam_step, adamw_step, lion_step, optimizer_step, rmsprop_step, sgd_step};

use crate::host::HostUpdate;
use backfit_ir::{Tensor, Type};
use std::fmt::Debug;
use std::sync::Arc;

/// A weight and its optimizer state after a step.
pub struct Updated {
    /// The new weight.
    pub weight: Tensor,
    /// The new state, in the order of [`Optimizer::slots`].
    pub slots: Vec<Tensor>,
}

impl Updated {
    /// From the results of an update: the weight, then the state.
    fn of(mut results: Vec<Tensor>) -> Self {
        Updated { weight: results.remove(0), slots: results }
    }
}

/// An update rule. Users may write their own; the update is built of graph operators like everything else.
pub trait Optimizer: Debug + Send + Sync {
    /// Names of the tensors that may be kept per weight, starting at zero.
    fn slots(&self) -> Vec<&'static str>;

    /// The type of a slot of a weight of this type, the same unless overridden; `None` where such a weight lacks the slot.
    fn slot_type(&self, _slot: &str, weight: &Type) -> Option<Type> {
        Some(weight.clone())
    }

    /// Names of the scalars that every step is fed; the first is the learning rate.
    fn hypers(&self) -> Vec<&'static str> {
        vec!["learning_rate"]
    }

    /// Writes their values at a step (counted from 1) with this learning rate, in the order of [`Optimizer::hypers`].
    fn hyper_values(&self, _step: u64, learning_rate: f64, values: &mut [f64]) {
        values.fill(learning_rate);
    }

    /// The learning rate before any schedule.
    fn learning_rate(&self) -> f64;

    /// The new weight and state. `slots` are those that the weight has; `hypers` have the weight's dtype.
    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated;

    /// The same rule with its weight decay multiplied by this; `None` where it has none to multiply.
    fn with_decay(&self, _factor: f64) -> Option<Arc<dyn Optimizer>> {
        None
    }

    /// The update in plain f32, bit-equal to [`Optimizer::update`]; `false` where there is no such form.
    fn update_on_host(&self, _host: &mut HostUpdate) -> bool {
        false
    }
}

/// The slots that a weight of this type has, with their types.
pub(crate) fn slots_of(optimizer: &dyn Optimizer, weight: &Type) -> impl Iterator<Item = (&'static str, Type)> {
    optimizer.slots().into_iter().filter_map(|slot| Some((slot, optimizer.slot_type(slot, weight)?)))
}
