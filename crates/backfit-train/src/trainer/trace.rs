//! Why a step was skipped: the same step once more, looked at operator by operator.

use super::Trainer;
use crate::data::Batch;
use crate::feed::{Place, feed};
use backfit_compile::precision;
use backfit_grad::{LOSS_SCALE, SCALE};
use backfit_ir::interp::{Array, NonFinite, Options, trace};
use backfit_ir::{Literal, Param, Problem, Result};
use std::fmt;

/// Where the numbers of a step that are not finite came in or arose, in the order in which that happened. The first is the
/// cause, unless the model makes infinities on purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// No more than a few: others follow from them.
    pub found: Vec<NonFinite>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.found.split_first() else {
            return f.write_str("the reference interpreter finds every number of the step finite");
        };
        write!(f, "{}", first.problem())?;
        for found in rest {
            write!(f, "\nthen {}", found.problem())?;
        }
        Ok(())
    }
}

impl Trainer {
    /// Replays the step that was last taken, with this batch, and tells where its first numbers that are not finite come
    /// from: the input, or the operator and the user's line. Ask after a step that was skipped: its weights, state and random
    /// key are still there. Nothing is changed.
    ///
    /// The replay is the reference interpreter's, in the dtypes of the precision policy: exact, and slow.
    ///
    /// # Errors
    /// As for [`Trainer::step`]; the last run of the program took several steps, so that its start is gone.
    pub fn trace(&mut self, batch: &Batch) -> Result<Trace> {
        if self.last_run_was_unrolled {
            let problem = Problem::new("the last run of the program took several steps; its start cannot be replayed");
            return Err(problem.help("take steps one by one with `step`, or set `FitOptions::nan_trace`").into());
        }
        let entry = &self.compiled.entries.step;
        let executable = &mut *self.compiled.executable;
        feed(executable, Place::of(entry), entry, batch)?;
        super::step::feed_hypers(executable, entry, &self.hypers)?;
        let program = &self.compiled.program;
        let (module, roots, _) = precision::apply(&program.module, &[program.step], &self.compiled.precision);
        let function = module.function(roots[0]);
        // A dynamic loss scale has backed off since.
        let scale = self.outputs[self.last_output].get(SCALE);
        let mut argument = |param: &Param| -> Result<Array> {
            let ty = function.ty(param.value);
            let literal = match scale.filter(|_| param.name == LOSS_SCALE) {
                Some(scale) => Some(Literal::scalar(ty.dtype, scale)),
                None if param.role.is_resident() => executable.read(&param.name),
                None => entry
                    .inputs
                    .iter()
                    .position(|port| port.name == param.name)
                    .and_then(|i| Literal::from_bytes(ty.clone(), &*executable.input(entry.number, i))),
            };
            let literal =
                literal.ok_or_else(|| Problem::new(format!("the target does not give '{}: {ty}'", param.name)))?;
            Ok(Array::from_literal(&literal))
        };
        let arguments = function.params.iter().map(&mut argument).collect::<Result<Vec<Array>>>()?;
        let options = Options { flush_subnormals: executable.flushes_subnormals(), ..Options::default() };
        Ok(Trace { found: trace(&module, roots[0], &arguments, options)? })
    }
}
