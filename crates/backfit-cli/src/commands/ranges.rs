//! `backfit inspect --ranges`: how large the values of a training step are, and what a dtype makes of that.

use crate::args;
use crate::console::{Console, table};
use crate::network::training_program;
use crate::recipe::Loaded;
use crate::{samples, session};
use backfit::ir::{FuncId, Function, Node, Op, Role};
use backfit::precision::{Class, Compute, Policy};
use backfit::ranges::{Bounds, Chip, Interval, Observations, Warning, bounds, declared_range, warnings};
use backfit::{Batch, Compile, DType, Literal, Module, Problem, Result, Trainer};
use serde_json::{Value, json};

/// No more values than this are printed; `--json` has them all.
const ROWS: usize = 40;
/// Steps of training between the first calibration run and the second.
const STEPS: usize = 20;

/// Prints bounds and what was seen, the largest values first, and warnings.
///
/// # Errors
/// Whatever is wrong with recipe or data.
pub fn run(args: &args::Inspect, loaded: &Loaded, console: Console) -> Result<()> {
    let samples = samples::load(loaded)?;
    let program = training_program(loaded, &samples.interface)?;
    // As declared: rounding to another dtype would hide what it loses.
    let compiled = program.compile(&session::cpu(loaded))?;
    let mut batches = samples.batches(loaded);
    let mut trainer = Trainer::new(compiled).schedule(loaded.schedule(batches.per_epoch())).seed(loaded.recipe.seed)?;
    let stage = trainer.executable().stages().last().cloned();
    let found = stage.and_then(|stage| Some((stage.module.find("step")?, stage.module)));
    let (id, module) = found.ok_or_else(|| Problem::new("the training program has no function 'step'"))?;
    let Some(batch) = batches.next().transpose()? else {
        return Err(Problem::new("there is no batch to calibrate with").into());
    };
    let chip = chip_of(&loaded.policy());
    let f = module.function(id);
    let first = arguments(f, &trainer, &batch)?;
    let bounds = bounds(&module, id, &ranges(f, &first));
    let mut seen = Observations::default();
    seen.run(&module, id, &first)?;
    for batch in batches.by_ref().take(STEPS) {
        trainer.step(&batch?)?;
    }
    seen.run(&module, id, &arguments(f, &trainer, &batch)?)?;
    let told = warnings(&module, &bounds, Some(&seen), &chip);
    let rows = rows(&module, &bounds, &seen, &chip);
    console.event(&json!({
        "event": "ranges", "recipe": loaded.source.name(), "chip": chip.name,
        "values": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        "warnings": told.iter().map(json_of).collect::<Vec<_>>(),
    }));
    if !console.json {
        console.say(page(args, &chip, &rows, &told));
    }
    Ok(())
}

/// The chip that a policy stands for: that of what it contracts in.
fn chip_of(policy: &Policy) -> Chip {
    match (policy.engine(), policy.compute(Class::Contraction, "")) {
        (Some(engine), _) => Chip { product_ceiling: engine.product_ceiling, ..Chip::f16_engine() },
        (None, Compute::F16) => Chip::of(DType::F16),
        (None, Compute::Bf16) => Chip::of(DType::BF16),
        (None, Compute::F32 | Compute::Bf16x3) => Chip::of(DType::F32),
    }
}

/// The values of all parameters of the next step.
fn arguments(f: &Function, trainer: &Trainer, batch: &Batch) -> Result<Vec<Literal>> {
    let value = |param: &backfit::ir::Param| match param.role {
        Role::Input => batch.literal(&param.name),
        // Bias corrections are 1 in the long run.
        Role::Hyper if param.name == "learning_rate" => {
            Ok(Literal::scalar(f.ty(param.value).dtype, trainer.learning_rate()))
        }
        Role::Hyper => Ok(Literal::scalar(f.ty(param.value).dtype, 1.0)),
        Role::Weight { .. } | Role::State => trainer.get(&param.name),
    };
    f.params.iter().map(value).collect()
}

/// Of weights and state the range they start with, of everything else that of the first batch.
fn ranges(f: &Function, first: &[Literal]) -> Vec<Interval> {
    let of = |(param, value): (&backfit::ir::Param, &Literal)| match param.init {
        Some(_) => declared_range(param, f.ty(param.value)),
        None => Interval::of_literal(value),
    };
    f.params.iter().zip(first).map(of).collect()
}

/// A value with its line.
struct Row {
    operator: &'static str,
    scope: String,
    line: String,
    bound: f64,
    seen: f64,
    vanishing: f64,
}

impl Row {
    fn to_json(&self) -> Value {
        json!({"operator": self.operator, "scope": self.scope, "location": self.line,
               "bound": self.bound.is_finite().then_some(self.bound), "seen": self.seen, "vanishing": self.vanishing})
    }
}

/// Whether a value is worth a row: forward and backward compute it, and do not only move it.
fn is_computed(node: &Node) -> bool {
    let moves = matches!(
        node.op,
        Op::Call(_)
            | Op::Scan(_)
            | Op::Constant(_)
            | Op::Iota { .. }
            | Op::Broadcast { .. }
            | Op::Reshape(_)
            | Op::Transpose(_)
            | Op::Slice { .. }
    );
    !moves && Class::of(node) != Class::Update
}

/// Every float that forward and backward compute, in calls and loops, too; the largest first.
fn rows(module: &Module, bounds: &Bounds, seen: &Observations, chip: &Chip) -> Vec<Row> {
    let row = |id: FuncId, f: &Function, node: &Node| {
        let &value = node.results.first().filter(|&&v| f.ty(v).dtype.is_float())?;
        let (bound, observed) = (bounds.of(id, value)?, seen.of(id, value)?);
        let (scope, line) = (node.scope.to_string(), node.loc.to_string());
        let (seen, vanishing) = (observed.magnitude(), observed.share_below(chip.smallest));
        Some(Row { operator: node.op.name(), scope, line, bound: bound.magnitude(), seen, vanishing })
    };
    let mut rows = Vec::new();
    for (index, f) in module.functions.iter().enumerate() {
        let computed = f.nodes.iter().filter(|n| is_computed(n));
        rows.extend(computed.filter_map(|n| row(FuncId(index as u32), f, n)));
    }
    rows.sort_by(|a, b| b.seen.total_cmp(&a.seen));
    rows
}

fn json_of(warning: &Warning) -> Value {
    let place = warning.problem.place.as_ref().map(ToString::to_string);
    json!({"kind": format!("{:?}", warning.kind), "what": warning.problem.what, "location": place, "help": warning.problem.help})
}

fn page(args: &args::Inspect, chip: &Chip, rows: &[Row], told: &[Warning]) -> String {
    let mut out = vec![format!(
        "{}: magnitudes in 'step'. Bounds hold for the initial weights and the first batch; seen is what two runs had,\n\
         before and after {STEPS} steps. {} stores at most {:.4e} and at least {:.1e}.\n",
        args.recipe, chip.name, chip.max_finite, chip.smallest
    )];
    let mut lines = vec![["  bound", "seen", "vanishing", "operator", "scope", "line"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().take(ROWS).map(|row| {
        let vanishing = if row.vanishing > 0.0 { format!("{:.1} %", row.vanishing * 100.0) } else { "–".to_owned() };
        let numbers = [format!("  {:.2e}", row.bound), format!("{:.2e}", row.seen), vanishing];
        numbers.into_iter().chain([row.operator.to_owned(), row.scope.clone(), row.line.clone()]).collect()
    }));
    out.push(table(&lines));
    if rows.len() > ROWS {
        out.push(format!("  … and {} more; --json has them all", rows.len() - ROWS));
    }
    out.push(format!("\n{} warnings{}", told.len(), if told.is_empty() { "" } else { ":" }));
    out.extend(told.iter().map(|warning| format!("\n{}", warning.problem)));
    out.join("\n")
}
