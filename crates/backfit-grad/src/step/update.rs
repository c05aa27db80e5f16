//! The second half of a step: guard, loss scale, clipping, optimizer, averages.

use super::backward::Computed;
use super::scale::Scale;
use super::{Clip, FINITE, TrainStep};
use crate::host::HostWeight;
use crate::optimizer::{Optimizer, slots_of};
use backfit_ir::op::Monoid;
use backfit_ir::ops::clip_by_global_norm::clip_by_global_norm;
use backfit_ir::{DType, Error, Graph, Init, Problem, Role, Tensor};
use std::sync::Arc;

/// What the names of averaged weights in the resident store begin with.
pub(super) const AVERAGE: &str = "optimizer.ema.";
/// What the names of gradients that a step returns to an optimizer on the host begin with.
pub(crate) const GRADIENT: &str = "gradient.";

/// The name of the average of a weight, which is in the resident store where [`TrainStep::ema`] asks for it.
pub fn average_of(weight: &str) -> String {
    format!("{AVERAGE}{weight}")
}

/// How a step ends.
pub(super) struct Update<'a> {
    pub step: &'a TrainStep,
    pub optimizer: &'a Arc<dyn Optimizer>,
    pub scale: Option<Scale>,
}

/// Keeps old values where a step is not finite.
struct Guard(Option<Tensor>);

impl Guard {
    fn choose(&self, new: &Tensor, old: &Tensor) -> Tensor {
        self.0.as_ref().map_or_else(|| new.clone(), |finite| finite.select(new, old))
    }

    fn update(&self, graph: &Graph, old: &Tensor, new: &Tensor) {
        graph.update(old, &self.choose(new, old));
    }
}

impl Update<'_> {
    /// Appends the update to the function that has computed gradients and new state. Where the optimizer is on the
    /// host, tells what it needs to know.
    ///
    /// # Errors
    /// A group that changes a weight decay of which the optimizer does not know; a weight that the host cannot update.
    pub fn append(&self, graph: &Graph, computed: Computed) -> Result<Vec<HostWeight>, Error> {
        let Computed { results, weights, gradients, divisor, states, .. } = computed;
        // Of the gradients as they are: clipping by value would make infinite ones finite.
        // And of running statistics, which a huge batch makes infinite while the gradients stay finite.
        let floats = states.iter().map(|(_, new)| new).filter(|new| new.dtype().is_float());
        let factor = divisor.map(|divisor| 1.0 / divisor);
        let finite = self.step.guarded.then(|| all_finite(graph, gradients.iter().chain(&factor).chain(floats)));
        let gradients = gradients.into_iter().map(|gradient| self.whole(gradient, factor.as_ref())).collect();
        let gradients = self.clipped(gradients);
        results.iter().for_each(|(name, tensor)| graph.result(name, tensor));
        if let Some(finite) = &finite {
            graph.result(FINITE, finite);
            self.scale.iter().for_each(|scale| scale.adapt(graph, finite));
        }
        let guard = Guard(finite);
        states.iter().for_each(|(old, new)| guard.update(graph, old, new));
        let hypers = self.hypers(graph, &weights);
        let mut on_host = Vec::new();
        for ((name, weight), gradient) in weights.iter().zip(&gradients) {
            let group = self.step.groups.of(name);
            let optimizer = group.optimizer(self.optimizer)?;
            let slots = slots(graph, name, weight, &*optimizer);
            if self.step.on_host {
                graph.result(&format!("{GRADIENT}{name}"), &gradient.cast(weight.dtype()));
                on_host.push(HostWeight::new(name, weight.dtype(), group.rate, optimizer)?);
                continue;
            }
            let mut cast: Vec<Tensor> = hypers.iter().map(|h| h.cast(weight.dtype())).collect();
            if group.rate != 1.0 {
                cast[0] = (&hypers[0] * group.rate).cast(weight.dtype());
            }
            let new = optimizer.update(weight, &slots, gradient, &cast);
            guard.update(graph, weight, &new.weight);
            slots.iter().zip(&new.slots).for_each(|(old, new)| guard.update(graph, old, new));
            self.average(graph, &guard, name, &new.weight);
        }
        Ok(on_host)
    }

    /// A gradient without divisor and loss scale, in the accumulator's dtype where it had any: what half precision could
    /// not hold does not get lost.
    fn whole(&self, gradient: Tensor, factor: Option<&Tensor>) -> Tensor {
        let factors = factor.cloned().into_iter().chain(self.scale.iter().map(|scale| 1.0 / &scale.factor));
        factors.fold(gradient, |gradient, factor| {
            let gradient = gradient.widen();
            let factor = factor.cast(gradient.dtype());
            gradient * factor
        })
    }

    fn clipped(&self, gradients: Vec<Tensor>) -> Vec<Tensor> {
        match self.step.clip {
            None => gradients,
            Some(Clip::Value(limit)) => gradients.iter().map(|g| g.clip_by_value(-limit, limit)).collect(),
            Some(Clip::GlobalNorm(limit)) => clip_by_global_norm(&gradients, limit).0,
        }
    }

    /// The fed scalars, in f64 where any weight is f64 and in f32 otherwise.
    fn hypers(&self, graph: &Graph, weights: &[(String, Tensor)]) -> Vec<Tensor> {
        let double = weights.iter().any(|(_, weight)| weight.dtype() == DType::F64);
        let dtype = if double { DType::F64 } else { DType::F32 };
        let names = self.optimizer.hypers();
        if self.step.on_host { vec![] } else { names.iter().map(|name| graph.hyper(name, dtype)).collect() }
    }

    /// average ← average + (1 − decay)(weight − average), in the accumulator's dtype.
    fn average(&self, graph: &Graph, guard: &Guard, name: &str, weight: &Tensor) {
        let Some(decay) = self.step.ema else { return };
        let old = graph.parameter(&average_of(name), weight.ty().clone(), Role::State, Some(Init::ZEROS));
        let wide = old.widen();
        let new = &wide + (weight.widen() - &wide) * (1.0 - decay);
        guard.update(graph, &old, &new.cast(weight.dtype()));
    }
}

/// The optimizer's state of a weight.
fn slots(graph: &Graph, name: &str, weight: &Tensor, optimizer: &dyn Optimizer) -> Vec<Tensor> {
    let state = |(slot, ty)| graph.parameter(&format!("optimizer.{slot}.{name}"), ty, Role::State, Some(Init::ZEROS));
    slots_of(optimizer, weight.ty()).map(state).collect()
}

fn all_finite<'t>(graph: &Graph, tensors: impl Iterator<Item = &'t Tensor>) -> Tensor {
    let checks = tensors.map(|t| t.is_finite().reduce_by_rows(Monoid::And));
    checks.reduce(|a, b| a.and(&b)).unwrap_or_else(|| graph.scalar(DType::Bool, 1.0))
}

impl TrainStep {
    /// What cannot be together.
    pub(super) fn flaws(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.scale.and_then(|scale| scale.flaw()).into_iter().collect();
        let weights = self.accumulate.iter().flat_map(|parts| parts.weights.as_ref().map(|w| ("weights", w)));
        let prediction = self.prediction.iter().map(|tensor| (super::PREDICTION, tensor));
        let reports = self.reports.iter().map(|(name, tensor)| (name.as_str(), tensor));
        for (name, _) in
            reports.chain(prediction).chain(weights).filter(|(_, tensor)| !tensor.graph().same(self.loss.graph()))
        {
            let problem = Problem::new(format!("'{name}' is of another graph than the loss"));
            problems.push(problem.help("a value of a function or layer has to be among its results"));
        }
        let mut refuse = |wrong: bool, what: &str, help: &str| {
            if wrong {
                problems.push(Problem::new(what).help(help));
            }
        };
        let dynamic = matches!(self.scale, Some(super::LossScale::Dynamic { .. }));
        refuse(
            dynamic && !self.guarded,
            "a dynamic loss scale needs the guard: it is by skipped steps that it adapts",
            "remove `unguarded`, or give `LossScale::Static`",
        );
        let decay = self.ema.is_some_and(|decay| !(0.0..1.0).contains(&decay));
        refuse(decay, "the decay of the average must be at least 0 and below 1", "give a number such as 0.999");
        refuse(
            self.on_host && self.ema.is_some(),
            "the host keeps no average of the weights",
            "remove `ema` or `optimizer_on_host`",
        );
        refuse(
            self.on_host && self.unroll.is_some(),
            "several steps in one program cannot wait for an optimizer on the host",
            "remove `unroll` or `optimizer_on_host`",
        );
        refuse(self.unroll == Some(0), "0 steps in one program", "give `unroll` at least 1");
        let none = self.accumulate.as_ref().is_some_and(|a| a.micro_batches == 0);
        refuse(none, "gradients of 0 micro-batches", "give `accumulate` at least 1");
        problems
    }
}
