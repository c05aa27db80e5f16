//! Gradient accumulation: one step over several micro-batches, in a loop within the program.

use super::LossScale;
use super::backward::Computed;
use super::loop_body::{LoopBody, Values, stacked};
use super::scale::Scale;
use crate::scan::refs;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{
    DType, Error, FuncId, Function, Graph, Loc, Param, Place, Problem, Role, Tensor, Type, ValueId, scope,
};

/// How a batch is taken in parts.
#[derive(Clone)]
pub(super) struct Accumulate {
    pub micro_batches: usize,
    /// What each sample of a micro-batch weighs.
    pub weights: Option<Tensor>,
}

/// The step on a whole batch, as far as forward and backward pass go.
pub(super) struct Whole {
    pub graph: Graph,
    pub computed: Computed,
    pub scale: Option<Scale>,
}

/// What the loop over micro-batches carries, shares and takes in slices; all are values of the micro-batch's function.
struct Plan {
    states: Vec<ValueId>,
    /// Gradients, then loss and reports that are float scalars.
    summed: Vec<(ValueId, Type)>,
    constants: Vec<ValueId>,
    slices: Vec<ValueId>,
    /// Other reports.
    outputs: Vec<ValueId>,
}

fn id(tensor: &Tensor) -> ValueId {
    tensor.value().expect("a graph without problems has no poison")
}

/// Whether a result is a mean over the micro-batches; other results are stacked.
fn is_mean(tensor: &Tensor) -> bool {
    tensor.rank() == 0 && tensor.dtype().is_float()
}

fn wide(ty: &Type) -> Type {
    Type::new(ty.dtype.accumulator(), &ty.shape)
}

impl Plan {
    fn new(function: &Function, computed: &Computed) -> Self {
        let states: Vec<ValueId> = computed.states.iter().map(|(old, _)| id(old)).collect();
        let (means, others): (Vec<&Tensor>, Vec<&Tensor>) =
            computed.results.iter().map(|(_, tensor)| tensor).partition(|tensor| is_mean(tensor));
        let summed = computed.gradients.iter().chain(means).map(|t| (id(t), wide(t.ty()))).collect();
        let (inputs, rest): (Vec<&Param>, Vec<&Param>) = function.params.iter().partition(|p| p.role == Role::Input);
        let constants = rest.iter().map(|p| p.value).filter(|value| !states.contains(value)).collect();
        let slices = inputs.iter().map(|p| p.value).collect();
        Plan { states, summed, constants, slices, outputs: others.into_iter().map(id).collect() }
    }
}

impl Accumulate {
    /// The function that takes a whole batch: what `micro` does with a part of it, in a loop. Loss, scalar reports and
    /// gradients become (weighted) means over the micro-batches; state goes from one micro-batch to the next.
    ///
    /// # Errors
    /// An input without rows.
    pub fn whole(
        &self,
        micro: &Graph,
        main: &Function,
        computed: &Computed,
        rule: Option<LossScale>,
        origin: &Loc,
    ) -> Result<Whole, Error> {
        let function = micro.inspect(Function::clone);
        let plan = Plan::new(&function, computed);
        let graph = micro.function("step");
        let mut outside = Values::new();
        for param in &main.params {
            outside.insert(param.value, self.declare(&graph, main, param)?);
        }
        let body = self.body(micro, &function, &plan, computed, origin);
        let Some(body) = body else {
            return Err(Error::from_problems(micro.problems()).expect("why there is no body"));
        };
        let (scale, computed) = graph.originate(origin.clone(), scope::STEP.into(), || {
            let scale = rule.map(|rule| Scale::of(&graph, rule));
            // The parameters of the micro-batch's function are those of the model, and the loss scale where it is resident.
            let added = function.params.iter().skip(main.params.len());
            outside.extend(added.zip(&scale).map(|(param, scale)| (param.value, scale.factor.clone())));
            let ended = self.run(&graph, &function, &plan, body, &outside);
            (scale, self.computed(&graph, &plan, computed, &outside, ended))
        });
        Error::from_problems(graph.problems()).map_or(Ok(Whole { graph, computed, scale }), Err)
    }

    /// A parameter of the whole step: an input has the rows of all micro-batches.
    fn declare(&self, whole: &Graph, main: &Function, param: &Param) -> Result<Tensor, Error> {
        let mut ty = main.ty(param.value).clone();
        if param.role == Role::Input {
            let Some((rows, rest)) = ty.shape.split_first() else {
                let problem =
                    Problem::new(format!("the input '{}: {ty}' has no rows to be taken in parts", param.name));
                let problem = problem.at(Place::Source(param.loc.clone()));
                return Err(problem.help("declare it with `hyper`, or do without `accumulate`").into());
            };
            let Some(rows) = rows.checked_mul(self.micro_batches) else {
                let what = format!("{} micro-batches of '{}: {ty}' have too many rows", self.micro_batches, param.name);
                let problem = Problem::new(what).at(Place::Source(param.loc.clone()));
                return Err(problem.help("accumulate over fewer micro-batches").into());
            };
            ty = ty.with_shape([&[rows][..], rest].concat());
        }
        let declare = || whole.parameter(&param.name, ty, param.role, param.init.clone());
        Ok(whole.originate(param.loc.clone(), "".into(), declare))
    }

    /// One micro-batch: sums and state, old to new. A micro-batch of weight 0 changes nothing.
    fn body(
        &self,
        micro: &Graph,
        function: &Function,
        plan: &Plan,
        computed: &Computed,
        origin: &Loc,
    ) -> Option<FuncId> {
        let mut body = LoopBody::new(micro, "micro_batch", function, origin);
        let states = body.take(&plan.states);
        let sum = |(i, (_, ty)): (usize, &(ValueId, Type))| body.parameter(&format!("sum{i}"), ty.clone());
        let sums: Vec<Tensor> = plan.summed.iter().enumerate().map(sum).collect();
        let total = body.parameter("total", Type::new(DType::F64, []));
        body.take(&plan.constants);
        body.take(&plan.slices);
        body.replay();
        let carries = body.build(|| {
            let weight = self.weights.as_ref().map(|w| body.of(id(w)).cast(DType::F64).sum_all());
            let counts = weight.as_ref().map(|w| w.gt(&w.like(0.0)));
            let choose =
                |new: Tensor, old: &Tensor| counts.as_ref().map_or(new.clone(), |counts| counts.select(&new, old));
            let state = |((_, new), old): (&(Tensor, Tensor), &Tensor)| choose(body.of(id(new)), old);
            let sum = |((value, ty), old): (&(ValueId, Type), &Tensor)| {
                let part = body.of(*value).widen();
                let part = weight.as_ref().map_or(part.clone(), |weight| &part * weight.cast(ty.dtype));
                choose(old + part, old)
            };
            let mut carries: Vec<Tensor> = computed.states.iter().zip(&states).map(state).collect();
            carries.extend(plan.summed.iter().zip(&sums).map(sum));
            carries.push(&total + weight.clone().unwrap_or_else(|| total.like(1.0)));
            carries
        });
        let outputs: Vec<Tensor> = plan.outputs.iter().map(|&v| body.of(v)).collect();
        body.end(micro, &carries, &outputs)
    }

    /// The loop. Returns state, sums, the total weight, outputs.
    fn run(&self, graph: &Graph, function: &Function, plan: &Plan, body: FuncId, outside: &Values) -> Vec<Tensor> {
        let from = |values: &[ValueId]| values.iter().map(|v| outside[v].clone()).collect::<Vec<_>>();
        let mut carries = from(&plan.states);
        carries.extend(plan.summed.iter().map(|(_, ty)| graph.full(ty.clone(), 0.0)));
        carries.push(graph.scalar(DType::F64, 0.0));
        let constants = from(&plan.constants);
        let part = |v: &ValueId| outside[v].reshape(stacked(function.ty(*v), self.micro_batches).shape);
        let slices: Vec<Tensor> = plan.slices.iter().map(part).collect();
        let scan = Scan {
            body,
            carries: carries.len(),
            constants: constants.len(),
            trip_count: self.micro_batches,
            reverse: false,
        };
        graph.scan(scan, &refs(&carries), &refs(&constants), &refs(&slices))
    }

    /// Means from sums.
    fn computed(&self, graph: &Graph, plan: &Plan, micro: &Computed, outside: &Values, ended: Vec<Tensor>) -> Computed {
        let (new_states, rest) = ended.split_at(plan.states.len());
        let (sums, rest) = rest.split_at(plan.summed.len());
        let (total, outputs) = (&rest[0], &rest[1..]);
        let mean = |sum: &Tensor| sum / total.cast(sum.dtype());
        let (gradients, means) = sums.split_at(micro.gradients.len());
        let (mut means, mut outputs) = (means.iter(), outputs.iter());
        let result = |(name, tensor): &(String, Tensor)| {
            let found = if is_mean(tensor) {
                means.next().map(|s| mean(s).cast(tensor.dtype()))
            } else {
                outputs.next().cloned()
            };
            (name.clone(), found.unwrap_or_else(|| graph.poison(tensor.ty().clone())))
        };
        Computed {
            results: micro.results.iter().map(result).collect(),
            weights: micro.weights.iter().map(|(name, weight)| (name.clone(), outside[&id(weight)].clone())).collect(),
            gradients: gradients.to_vec(),
            divisor: Some(total.clone()),
            states: plan.states.iter().map(|v| outside[v].clone()).zip(new_states.iter().cloned()).collect(),
            taps: micro.taps.clone(),
        }
    }
}
