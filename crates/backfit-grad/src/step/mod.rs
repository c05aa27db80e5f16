//! Assembly of a training step: forward, backward, guard and update in one function.
//!
//! | module | it has |
//! |---|---|
//! | [`backward`] | gradients, and new values of state |
//! | [`accumulate`] | the same over several micro-batches |
//! | [`update`] | guard, clipping, optimizer, averages |
//! | [`scale`], [`group`] | loss scaling; groups of weights |
//! | [`unroll`] | several steps in one program |
//! | [`init`] | the function that fills the resident store |

mod accumulate;
mod backward;
mod group;
mod init;
mod loop_body;
mod scale;
mod unroll;
mod update;

pub use group::Group;
pub use scale::{GOOD_STEPS, LOSS_SCALE, LossScale, SCALE};
pub use unroll::Unrolled;
pub(crate) use update::GRADIENT;
pub use update::average_of;

use crate::host::HostWeight;
use crate::optimizer::Optimizer;
use crate::taps::TapReport;
use crate::variants::Inference;
use accumulate::{Accumulate, Whole};
use backfit_ir::{Error, FuncId, Function, Graph, Loc, Module, Param, Problem, Role, Tensor, Type, ValueId, scope};
use group::Groups;
use scale::Scale;
use std::panic::Location;
use std::sync::Arc;
use update::Update;

/// How gradients are bounded before the update, after the loss scale is divided out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Every element into `[-limit, limit]`.
    Value(f64),
    /// All together, so that their Euclidean norm is at most this.
    GlobalNorm(f64),
}

/// A tensor of the resident store.
#[derive(Clone, Debug, PartialEq)]
pub struct Resident {
    /// Its name, unique in the store.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// What it is.
    pub role: Role,
}

/// Evaluation and prediction with the averages of the weights in the place of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Averaged {
    /// As [`TrainModule::eval`].
    pub eval: FuncId,
    /// As [`TrainModule::predict`].
    pub predict: Option<FuncId>,
}

/// A training program: functions over one resident store.
#[derive(Clone)]
pub struct TrainModule {
    /// All functions.
    pub module: Module,
    /// `init(key)`: fills the resident store. The key is `u32[4]`.
    pub init: FuncId,
    /// `step(inputs, resident, hyper-parameters)`: loss, reports, `finite`, and the new resident store.
    pub step: FuncId,
    /// `eval(inputs, resident)`: loss and reports, as outside training.
    pub eval: FuncId,
    /// `predict(inputs, resident)`: the prediction.
    pub predict: Option<FuncId>,
    /// `eval` and `predict` of averaged weights, where [`TrainStep::ema`] keeps them.
    pub averaged: Option<Averaged>,
    /// Several steps at once, where [`TrainStep::unroll`] asked for them.
    pub unrolled: Option<Unrolled>,
    /// The resident store.
    pub residents: Vec<Resident>,
    /// What differentiated functions hand from the forward to the backward pass.
    pub taps: Vec<TapReport>,
    /// The optimizer, which tells the hyper-parameters of every step.
    pub optimizer: Arc<dyn Optimizer>,
    /// What the host updates after every step, where [`TrainStep::optimizer_on_host`] asked for it.
    pub on_host: Vec<HostWeight>,
}

/// Collects what a training program is made of. [`TrainStep::build`] makes it.
#[derive(Clone)]
pub struct TrainStep {
    loss: Tensor,
    optimizer: Option<Arc<dyn Optimizer>>,
    reports: Vec<(String, Tensor)>,
    prediction: Option<Tensor>,
    clip: Option<Clip>,
    guarded: bool,
    scale: Option<LossScale>,
    groups: Groups,
    ema: Option<f64>,
    accumulate: Option<Accumulate>,
    unroll: Option<usize>,
    on_host: bool,
}

/// The name of the result that says whether all gradients and all new state were finite.
pub const FINITE: &str = "finite";
/// The name of the result that holds the loss.
pub const LOSS: &str = "loss";
/// The name of the result that holds the prediction.
const PREDICTION: &str = "prediction";

impl TrainStep {
    /// A step that lowers this scalar.
    pub fn new(loss: &Tensor) -> Self {
        TrainStep {
            loss: loss.clone(),
            optimizer: None,
            reports: vec![],
            prediction: None,
            clip: None,
            guarded: true,
            scale: None,
            groups: Groups::default(),
            ema: None,
            accumulate: None,
            unroll: None,
            on_host: false,
        }
    }

    /// The optimizer; a step needs one.
    pub fn optimizer(mut self, optimizer: impl Optimizer + 'static) -> Self {
        self.optimizer = Some(Arc::new(optimizer));
        self
    }

    /// Returns a value under this name at every step and evaluation, as well as the loss.
    pub fn report(mut self, name: &str, value: &Tensor) -> Self {
        self.reports.push((name.to_owned(), value.clone()));
        self
    }

    /// The value that `predict` returns, under the name `prediction`, in place of any given before.
    pub fn predict(mut self, value: &Tensor) -> Self {
        self.prediction = Some(value.clone());
        self
    }

    /// Bounds the gradients before the update.
    pub fn clip(mut self, clip: Clip) -> Self {
        self.clip = Some(clip);
        self
    }

    /// Without the guard a step with non-finite gradients or state is applied all the same.
    pub fn unguarded(mut self) -> Self {
        self.guarded = false;
        self
    }

    /// Multiplies the loss by a scale before it is differentiated, and divides the gradients by it before anything else is
    /// done with them.
    ///
    /// ```
    /// use backfit_grad::{LossScale, Sgd, TrainStep};
    /// use backfit_ir::{DType, Graph, Init, Type};
    /// let g = Graph::new();
    /// let w = g.weight("w", Type::new(DType::F16, [4]), Init::ONES);
    /// let loss = w.square().sum_all();
    /// let step = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).loss_scale(LossScale::dynamic());
    /// let names: Vec<String> = step.build()?.residents.into_iter().map(|r| r.name).collect();
    /// assert_eq!(names, ["w", "optimizer.loss_scale", "optimizer.good_steps"]);
    /// # Ok::<(), backfit_ir::Error>(())
    /// ```
    pub fn loss_scale(mut self, scale: LossScale) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Treats the weights whose names fit the pattern (`*` stands for any characters, `?` for one) as a group of their
    /// own. Where several patterns fit a name, the last one counts. A pattern that fits none is an error.
    ///
    /// ```
    /// use backfit_grad::{AdamW, Group, TrainStep};
    /// use backfit_ir::{DType, Graph, Init, Type};
    /// let g = Graph::new();
    /// let weight = |name: &str| g.weight(name, Type::new(DType::F32, [4]), Init::ONES);
    /// let loss = (weight("fc1.weight") * weight("fc1.bias") * weight("fc2.weight")).sum_all();
    /// let step = TrainStep::new(&loss)
    ///     .optimizer(AdamW::new(1e-3))
    ///     .group("*.bias", Group { decay: 0.0, ..Group::default() })
    ///     .group("fc2.*", Group { frozen: true, ..Group::default() });
    /// assert!(step.build().is_ok());
    /// ```
    #[track_caller]
    pub fn group(mut self, pattern: &str, group: Group) -> Self {
        self.groups.add(pattern, group, Loc::of(Location::caller()));
        self
    }

    /// Keeps an exponential moving average of every trainable weight in the resident store, under its name after
    /// `optimizer.ema.`: average + (1 − decay)(weight − average) after every step. It starts as the weight does.
    pub fn ema(mut self, decay: f64) -> Self {
        self.ema = Some(decay);
        self
    }

    /// Takes a batch of `micro_batches` times as many rows as the inputs have, in a loop: gradients, loss and float scalar
    /// reports are the means over the micro-batches, added in order; other reports get a leading axis for them. State and
    /// random key go from one micro-batch to the next.
    ///
    /// With `weights`, such as the mask of a batch, these are means weighted by the sum of the weights in each
    /// micro-batch: the mean over all samples where the loss is the weighted mean over its own. A micro-batch of weight
    /// 0 changes nothing.
    pub fn accumulate(mut self, micro_batches: usize, weights: Option<&Tensor>) -> Self {
        self.accumulate = Some(Accumulate { micro_batches, weights: weights.cloned() });
        self
    }

    /// Makes a function that takes so many steps at once, on as many batches, beside the one that takes a single step.
    pub fn unroll(mut self, steps: usize) -> Self {
        self.unroll = Some(steps);
        self
    }

    /// Leaves the update to the host: the step returns gradients, and the trainer updates the weights in plain f32. This
    /// is a baseline; it has the same bits and is slower.
    pub fn optimizer_on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// Makes the program.
    ///
    /// # Errors
    /// Every problem of the graph; no optimizer; a trainable weight that the loss does not depend on; a missing
    /// derivative; settings that cannot be.
    #[track_caller]
    pub fn build(&self) -> Result<TrainModule, Error> {
        let mut module = self.loss.graph().finish()?;
        let optimizer = self.optimizer.clone().ok_or_else(|| {
            Error::from(Problem::new("the training step has no optimizer").help("add `.optimizer(Adam::new(1e-3))`"))
        })?;
        Error::from_problems(self.flaws()).map_or(Ok(()), Err)?;
        let main = module.functions.last_mut().expect("finish adds the function");
        self.groups.freeze(main)?;
        let main = main.clone();
        let graph = Graph::resume(module).expect("the module has a function");
        let mut inference = Inference::new(&graph);
        let mut results = named(LOSS, &self.loss);
        self.reports.iter().for_each(|(name, tensor)| results.extend(named(name, tensor)));
        let prediction = self.prediction.as_ref().map(|tensor| named(PREDICTION, tensor));
        let mut infer = |of: &Function, suffix: &str| {
            let eval = inference.define(of, &format!("eval{suffix}"), &results);
            let mut predict = |result: &Vec<_>| inference.define(of, &format!("predict{suffix}"), result);
            Some((eval?, if let Some(result) = &prediction { Some(predict(result)?) } else { None }))
        };
        let inference = infer(&main, "");
        let averaged = self.ema.map(|_| infer(&averaged(&main), "_averaged"));
        let origin = main.node_of(results[0].1).map_or(&main.params[0].loc, |node| &node.loc);
        let Assembled { step, taps, on_host } = self.assemble(graph.clone(), &main, &optimizer, &results, origin)?;
        let residents = step.inspect(residents);
        let init = init::define(&step, &residents);
        let unrolled = self.unroll.map(|steps| {
            unroll::define(&step, steps, &optimizer.hypers(), origin).map(|function| Unrolled { function, steps })
        });
        // The functions beside the step report their problems to either.
        Error::from_problems(graph.problems()).map_or(Ok(()), Err)?;
        let mut module = step.finish()?;
        let missing = || Error::from(Problem::new("a variant of the graph could not be built"));
        let (eval, predict) = inference.ok_or_else(missing)?;
        let averaged = averaged.map(|made| made.ok_or_else(missing)).transpose()?;
        let last = FuncId(module.functions.len() as u32 - 1);
        module.functions[last.index()].name = "step".to_owned();
        Ok(TrainModule {
            module,
            init: init.ok_or_else(missing)?,
            step: last,
            eval,
            predict,
            averaged: averaged.map(|(eval, predict)| Averaged { eval, predict }),
            unrolled: unrolled.map(|made| made.ok_or_else(missing)).transpose()?,
            residents: residents.into_iter().map(|(resident, _)| resident).collect(),
            taps,
            optimizer,
            on_host,
        })
    }

    /// Appends backward, guard and update to the forward function, or to a loop over it. Returns the function that is
    /// the step, under construction.
    fn assemble(
        &self,
        graph: Graph,
        main: &Function,
        optimizer: &Arc<dyn Optimizer>,
        results: &[(String, ValueId)],
        origin: &Loc,
    ) -> Result<Assembled, Error> {
        let (computed, scale) = at_step(&graph, origin, || {
            let scale = self.scale.map(|rule| Scale::of(&graph, rule));
            let computed = backward::differentiate(&graph, main, results, scale.as_ref())?;
            Ok((computed, scale))
        })?;
        let Whole { graph, computed, scale } = match &self.accumulate {
            Some(accumulate) => accumulate.whole(&graph, main, &computed, self.scale, origin)?,
            None => Whole { graph, computed, scale },
        };
        let update = Update { step: self, optimizer, scale };
        let taps = computed.taps.clone();
        let on_host = at_step(&graph, origin, || update.append(&graph, computed))?;
        Ok(Assembled { step: graph, taps, on_host })
    }
}

/// The step, under construction, and what is known of it.
struct Assembled {
    step: Graph,
    taps: Vec<TapReport>,
    on_host: Vec<HostWeight>,
}

/// Builds what belongs to the step as a whole and stands where the loss was made.
fn at_step<T>(graph: &Graph, origin: &Loc, build: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let built = graph.originate(origin.clone(), scope::STEP.into(), build)?;
    Error::from_problems(graph.problems()).map_or(Ok(built), Err)
}

fn named(name: &str, tensor: &Tensor) -> Vec<(String, ValueId)> {
    tensor.value().map(|v| (name.to_owned(), v)).into_iter().collect()
}

/// The function with the average of every trainable weight in its place.
fn averaged(main: &Function) -> Function {
    let mut averaged = main.clone();
    for param in averaged.params.iter_mut().filter(|p| p.role == Role::Weight { trainable: true }) {
        (param.name, param.role) = (average_of(&param.name), Role::State);
    }
    averaged
}

fn residents(step: &Function) -> Vec<(Resident, Param)> {
    let resident = step.params.iter().filter(|p| p.role.is_resident());
    resident
        .map(|p| (Resident { name: p.name.clone(), ty: step.ty(p.value).clone(), role: p.role }, p.clone()))
        .collect()
}
