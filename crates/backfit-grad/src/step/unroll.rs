//! Several steps in one program: a loop over minibatches whose body is the step.

use super::FINITE;
use super::loop_body::{LoopBody, Values, stacked};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, FuncId, Function, Graph, Loc, Param, Role, Tensor, Type, ValueId, scope};

/// The function that takes several steps, as one [`TrainStep::unroll`](super::TrainStep::unroll) asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrolled {
    /// Its parameters are those of a step; inputs, results and the optimizer's hyper-parameters have a leading axis for
    /// the steps.
    pub function: FuncId,
    /// How many.
    pub steps: usize,
}

/// The function `steps`: what the function under construction does, `count` times.
pub(super) fn define(step: &Graph, count: usize, fed: &[&str], origin: &Loc) -> Option<FuncId> {
    let function = step.inspect(Function::clone);
    let is_fed = |p: &Param| p.role == Role::Hyper && fed.contains(&p.name.as_str());
    let is_updated =
        |p: &Param| function.results.iter().any(|r| r.alias.is_some_and(|a| function.params[a].value == p.value));
    let of = |wanted: &dyn Fn(&Param) -> bool| {
        function.params.iter().filter(|p| wanted(p)).map(|p| p.value).collect::<Vec<ValueId>>()
    };
    let (tables, carries, slices) = (of(&is_fed), of(&is_updated), of(&|p| p.role == Role::Input));
    let constants = of(&|p| !is_fed(p) && !is_updated(p) && p.role != Role::Input);
    let body = define_body(step, &function, count, origin, [&carries, &tables, &constants, &slices])?;

    let steps = step.function("steps");
    let mut values = Values::new();
    for param in &function.params {
        let ty = function.ty(param.value);
        let ty = if param.role == Role::Input || is_fed(param) { stacked(ty, count) } else { ty.clone() };
        let declare = || steps.parameter(&param.name, ty, param.role, param.init.clone());
        values.insert(param.value, steps.originate(param.loc.clone(), "".into(), declare));
    }
    steps.originate(origin.clone(), scope::STEP.into(), || {
        let from = |ids: &[ValueId]| ids.iter().map(|v| &values[v]).collect::<Vec<&Tensor>>();
        let good = steps.scalar(DType::I32, 0.0);
        let (carried, shared) = ([from(&carries), vec![&good]].concat(), [from(&tables), from(&constants)].concat());
        let scan = Scan { body, carries: carried.len(), constants: shared.len(), trip_count: count, reverse: false };
        let ended = steps.scan(scan, &carried, &shared, &from(&slices));
        let returned = function.results.iter().filter(|r| r.alias.is_none());
        returned.zip(&ended[carried.len()..]).for_each(|(result, tensor)| steps.result(&result.name, tensor));
        carries.iter().zip(&ended).for_each(|(old, new)| steps.update(&values[old], new));
    });
    step.define(steps)
}

/// One step. A skipped one does not count: the next has the same learning rate and bias corrections.
fn define_body(
    step: &Graph,
    function: &Function,
    count: usize,
    origin: &Loc,
    [carries, tables, constants, slices]: [&[ValueId]; 4],
) -> Option<FuncId> {
    let mut body = LoopBody::new(step, "one_of_steps", function, origin);
    body.take(carries);
    let good = body.parameter("good_steps", Type::new(DType::I32, []));
    for &table in tables {
        let name = &function.params.iter().find(|p| p.value == table)?.name;
        let all = body.parameter(name, stacked(function.ty(table), count));
        let one = body.build(|| all.dynamic_slice(&[&good], &[1]).reshape([]));
        body.stand_for(table, one);
    }
    body.take(constants);
    body.take(slices);
    body.replay();
    let updated = |old: &ValueId| {
        function.results.iter().find(|r| r.alias.is_some_and(|a| function.params[a].value == *old)).map(|r| r.value)
    };
    let mut new: Vec<Tensor> = carries.iter().filter_map(updated).map(|v| body.of(v)).collect();
    let finite = function.result_index(FINITE).map(|i| body.of(function.results[i].value));
    new.push(body.build(|| &good + finite.map_or_else(|| good.like(1.0), |finite| finite.cast(DType::I32))));
    let returned = function.results.iter().filter(|r| r.alias.is_none());
    let outputs: Vec<Tensor> = returned.map(|r| body.of(r.value)).collect();
    body.end(step, &new, &outputs)
}
