//! Assembly of a training step: forward, backward, guard and update in one function.

use crate::optimizer::Optimizer;
use crate::reverse::gradients_and_taps;
use crate::taps::TapReport;
use crate::variants::Inference;
use backfit_ir::op::Monoid;
use backfit_ir::ops::clip_by_global_norm::clip_by_global_norm;
use backfit_ir::{
    DType, Error, FuncId, Function, Graph, Init, Literal, Module, Param, Place, Problem, Role, Tensor, Type, ValueId,
};
use std::sync::Arc;

/// How gradients are bounded before the update.
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

/// A training program: four functions over one resident store.
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
    /// `predict(inputs, resident)`: the predictions.
    pub predict: Option<FuncId>,
    /// The resident store.
    pub residents: Vec<Resident>,
    /// What differentiated functions hand from the forward to the backward pass.
    pub taps: Vec<TapReport>,
    /// The optimizer, which tells the hyper-parameters of every step.
    pub optimizer: Arc<dyn Optimizer>,
}

/// Collects what a training program is made of. [`TrainStep::build`] makes it.
#[derive(Clone)]
pub struct TrainStep {
    loss: Tensor,
    optimizer: Option<Arc<dyn Optimizer>>,
    reports: Vec<(String, Tensor)>,
    predictions: Vec<(String, Tensor)>,
    clip: Option<Clip>,
    guarded: bool,
}

/// The name of the result that says whether all gradients and all new state were finite.
pub const FINITE: &str = "finite";
/// The name of the result that holds the loss.
pub const LOSS: &str = "loss";

impl TrainStep {
    /// A step that lowers this scalar.
    pub fn new(loss: &Tensor) -> Self {
        TrainStep {
            loss: loss.clone(),
            optimizer: None,
            reports: vec![],
            predictions: vec![],
            clip: None,
            guarded: true,
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

    /// The value that `predict` returns, under the name `prediction`.
    pub fn predict(mut self, value: &Tensor) -> Self {
        self.predictions.push(("prediction".to_owned(), value.clone()));
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

    /// Makes the program.
    ///
    /// # Errors
    /// Every problem of the graph; no optimizer; a trainable weight that the loss does not depend on; a missing derivative.
    #[track_caller]
    pub fn build(&self) -> Result<TrainModule, Error> {
        let graph = self.loss.graph();
        let module = graph.finish()?;
        let optimizer = self.optimizer.clone().ok_or_else(|| {
            Error::from(Problem::new("the training step has no optimizer").help("add `.optimizer(Adam::new(1e-3))`"))
        })?;
        let main = module.functions.last().expect("finish adds the function").clone();
        let step = Graph::resume(module).expect("the module has a function");
        let mut inference = Inference::new(&step);
        let mut results = named(LOSS, &self.loss);
        self.reports.iter().for_each(|(name, tensor)| results.extend(named(name, tensor)));
        let eval = inference.define(&main, "eval", &results);
        let predictions: Vec<_> = self.predictions.iter().flat_map(|(name, tensor)| named(name, tensor)).collect();
        let predict = (!predictions.is_empty()).then(|| inference.define(&main, "predict", &predictions));
        let taps = self.assemble(&step, &main, &*optimizer, &results)?;
        let residents = step.inspect(residents);
        let init = define_init(&step, &residents);
        let module = step.finish()?;
        let ids = [eval, init].into_iter().chain(predict).collect::<Option<Vec<_>>>();
        let ids = ids.ok_or_else(|| Error::from(Problem::new("a variant of the graph could not be built")))?;
        let mut module = module;
        let last = FuncId(module.functions.len() as u32 - 1);
        module.functions[last.index()].name = "step".to_owned();
        let residents = residents.into_iter().map(|(resident, _)| resident).collect();
        Ok(TrainModule {
            module,
            init: ids[1],
            step: last,
            eval: ids[0],
            predict: ids.get(2).copied(),
            residents,
            taps,
            optimizer,
        })
    }

    /// Appends backward, guard and update to the forward function.
    fn assemble(
        &self,
        step: &Graph,
        main: &Function,
        optimizer: &dyn Optimizer,
        results: &[(String, ValueId)],
    ) -> Result<Vec<TapReport>, Error> {
        let weights: Vec<(usize, Tensor)> = main
            .params
            .iter()
            .enumerate()
            .filter(|(_, p)| p.role == Role::Weight { trainable: true })
            .map(|(i, p)| (i, step.tensor(p.value)))
            .collect();
        let loss = step.tensor(results[0].1);
        let origin = main.node_of(results[0].1).map(|n| n.loc.clone()).unwrap_or_else(|| main.params[0].loc.clone());
        step.originate(origin, "step".into(), || {
            let targets: Vec<&Tensor> = weights.iter().map(|(_, t)| t).collect();
            check_reached(main, &weights, results[0].1)?;
            let (found, taps) = gradients_and_taps(&loss, &targets, &loss.like(1.0))?;
            // Of the gradients as they are: clipping by value would make infinite ones finite.
            // And of running statistics, which a huge batch makes infinite while the gradients stay finite.
            let states: Vec<(Tensor, Tensor)> = main
                .results
                .iter()
                .filter_map(|r| r.alias.map(|a| (a, r.value)))
                .map(|(param, value)| (step.tensor(main.params[param].value), step.tensor(value)))
                .collect();
            let floats = states.iter().map(|(_, new)| new).filter(|new| new.dtype().is_float());
            let finite = self.guarded.then(|| all_finite(step, found.iter().chain(floats)));
            let found = self.clipped(found);
            let guard =
                |new: &Tensor, old: &Tensor| finite.as_ref().map_or_else(|| new.clone(), |ok| ok.select(new, old));
            for (name, value) in results {
                step.result(name, &step.tensor(*value));
            }
            if let Some(finite) = &finite {
                step.result(FINITE, finite);
            }
            for (old, new) in &states {
                step.update(old, &guard(new, old));
            }
            advance_key(step, main, guard);
            let hypers = hypers(step, main, optimizer);
            for ((index, weight), gradient) in weights.iter().zip(&found) {
                let name = &main.params[*index].name;
                let slot = |s: &&str| {
                    step.parameter(
                        &format!("optimizer.{s}.{name}"),
                        weight.ty().clone(),
                        Role::State,
                        Some(Init::ZEROS),
                    )
                };
                let slots: Vec<Tensor> = optimizer.slots().iter().map(slot).collect();
                let cast: Vec<Tensor> = hypers.iter().map(|h| h.cast(weight.dtype())).collect();
                let new = optimizer.update(weight, &slots, gradient, &cast);
                step.update(weight, &guard(&new.weight, weight));
                for (old, new) in slots.iter().zip(&new.slots) {
                    step.update(old, &guard(new, old));
                }
            }
            Error::from_problems(step.problems()).map_or(Ok(taps), Err)
        })
    }

    fn clipped(&self, gradients: Vec<Tensor>) -> Vec<Tensor> {
        match self.clip {
            None => gradients,
            Some(Clip::Value(limit)) => gradients.iter().map(|g| g.clip_by_value(-limit, limit)).collect(),
            Some(Clip::GlobalNorm(limit)) => clip_by_global_norm(&gradients, limit).0,
        }
    }
}

fn named(name: &str, tensor: &Tensor) -> Vec<(String, ValueId)> {
    tensor.value().map(|v| (name.to_owned(), v)).into_iter().collect()
}

/// Refuses trainable weights that the loss does not depend on: a user's slip more often than not.
fn check_reached(main: &Function, weights: &[(usize, Tensor)], loss: ValueId) -> Result<(), Error> {
    let sources: Vec<ValueId> = weights.iter().filter_map(|(_, t)| t.value()).collect();
    let mut reached = vec![false; main.values.len()];
    reached[loss.index()] = true;
    for node in main.nodes.iter().rev() {
        if node.results.iter().any(|v| reached[v.index()]) {
            node.operands.iter().for_each(|v| reached[v.index()] = true);
        }
    }
    let lost = weights.iter().zip(sources).filter(|(_, v)| !reached[v.index()]).map(|((index, _), _)| {
        let param = &main.params[*index];
        Problem::new(format!("the loss does not depend on the weight '{}'", param.name))
            .at(Place::Source(param.loc.clone()))
            .help("use it, or declare it with a role other than a trainable weight")
    });
    let mut problems: Vec<Problem> = lost.collect();
    if weights.is_empty() {
        problems.push(
            Problem::new("there is no trainable weight").help("make one with `Graph::weight` or a layer of `nn`"),
        );
    }
    Error::from_problems(problems).map_or(Ok(()), Err)
}

fn all_finite<'t>(step: &Graph, tensors: impl Iterator<Item = &'t Tensor>) -> Tensor {
    let checks = tensors.map(|t| t.is_finite().reduce_by_rows(Monoid::And));
    checks.reduce(|a, b| a.and(&b)).unwrap_or_else(|| step.scalar(DType::Bool, 1.0))
}

/// Counts the step in the key of random operators, if there are any.
fn advance_key(step: &Graph, main: &Function, guard: impl Fn(&Tensor, &Tensor) -> Tensor) {
    let Some(param) = main.params.iter().find(|p| p.name == backfit_ir::random::RNG_KEY) else { return };
    let key = step.tensor(param.value);
    let one = step.constant(Literal::from_i64(key.ty().clone(), &[0, 0, 1, 0]));
    step.update(&key, &guard(&(&key + &one), &key));
}

/// The fed scalars, in f64 where any weight is f64 and in f32 otherwise.
fn hypers(step: &Graph, main: &Function, optimizer: &dyn Optimizer) -> Vec<Tensor> {
    let double =
        main.params.iter().any(|p| matches!(p.role, Role::Weight { .. }) && main.ty(p.value).dtype == DType::F64);
    let dtype = if double { DType::F64 } else { DType::F32 };
    optimizer.hypers().iter().map(|name| step.hyper(name, dtype)).collect()
}

fn residents(step: &Function) -> Vec<(Resident, Param)> {
    let resident = step.params.iter().filter(|p| p.role.is_resident());
    resident
        .map(|p| (Resident { name: p.name.clone(), ty: step.ty(p.value).clone(), role: p.role }, p.clone()))
        .collect()
}

/// `init(key)`: every resident tensor from its initializer; the i-th draws from the key folded with i.
/// What belongs to a tensor stands where the tensor was declared.
fn define_init(step: &Graph, residents: &[(Resident, Param)]) -> Option<FuncId> {
    let g = step.function("init");
    let (_, first) = residents.first()?;
    let declare_key = || g.parameter("key", Type::new(DType::U32, [4]), Role::Input, None);
    let key = g.originate(first.loc.clone(), "".into(), declare_key);
    for (index, (resident, param)) in residents.iter().enumerate() {
        g.originate(param.loc.clone(), "".into(), || {
            let old = g.parameter(&resident.name, resident.ty.clone(), resident.role, None);
            let site = g.scalar(DType::U32, index as f64 + 1.0);
            let own = || key.fold_in(&site);
            let (dtype, shape) = (resident.ty.dtype, resident.ty.shape.clone());
            let value = match &param.init {
                _ if resident.name == backfit_ir::random::RNG_KEY => key.clone(),
                None => old.like(0.0),
                Some(Init::Constant(c)) => old.like(*c),
                Some(Init::Uniform { low, high }) => own().random_uniform(shape, *low, *high, dtype),
                Some(Init::Normal { mean, std }) => own().random_normal(shape, *mean, *std, dtype),
                Some(Init::Literal(literal)) => g.constant(literal.clone()),
            };
            g.update(&old, &value);
        });
    }
    step.define(g)
}
