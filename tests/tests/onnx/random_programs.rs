//! Random programs, exported, beside the interpreter.

use backfit_compile::target::Program;
use backfit_ir::op::Unary;
use backfit_ir::{DType, Function, Literal, Op};
use backfit_onnx::{Model, export};
use backfit_suites::compare::last;
use backfit_suites::fuzz::check::{Compared, compare};
use backfit_suites::fuzz::{Case, generate};
use backfit_suites::onnxruntime::{Job, run};

const CASES: u64 = 200;

/// onnxruntime reduces the arguments of sines in f64 less exactly than half a unit in the last place.
fn turns_in_double(case: &Case) -> bool {
    let turns = |op: &Op| matches!(op, Op::Unary(Unary::Sin | Unary::Cos | Unary::Tan));
    let double = |f: &Function| f.nodes.iter().any(|n| turns(&n.op) && f.ty(n.operands[0]).dtype == DType::F64);
    case.module.functions.iter().any(double)
}

/// Places of the results in the order of the model's outputs: those that are returned, then updates.
fn order(case: &Case) -> Vec<usize> {
    let results = &case.module.function(last(&case.module)).results;
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|&i| results[i].alias.is_some());
    order
}

fn job<'m>(seed: u64, case: &Case, model: &'m Model) -> Job<'m> {
    let f = case.module.function(last(&case.module));
    let inputs = f.params.iter().zip(&case.inputs).map(|(param, value)| (param.name.clone(), value.clone()));
    let outputs = order(case).into_iter().map(|i| f.ty(f.results[i].value).clone()).collect();
    Job { name: format!("seed {seed}"), model, runs: vec![inputs.collect()], outputs, only_last: false }
}

/// Where the results of a case are not the interpreter's.
fn difference(case: &Case, found: Vec<Literal>, compared: &mut Compared) -> Option<String> {
    let mut placed: Vec<(usize, Literal)> = order(case).into_iter().zip(found).collect();
    placed.sort_by_key(|(i, _)| *i);
    let found: Vec<Literal> = placed.into_iter().map(|(_, value)| value).collect();
    // The `Where` of onnxruntime loses the sign of zeros.
    compare(case, &case.inputs, &found, false, compared).err()
}

#[test]
fn random_programs_give_in_onnxruntime_what_the_interpreter_gives() {
    let mut refused = 0;
    let mut exported: Vec<(u64, Case, Model)> = Vec::new();
    for seed in 0..CASES {
        // onnxruntime keeps subnormal numbers.
        let case = Case { flush: false, ..generate::case(seed) };
        if turns_in_double(&case) {
            continue;
        }
        let program = Program::new(case.module.clone(), vec![("main".to_owned(), last(&case.module))]);
        match export(&program) {
            Ok(mut models) => exported.push((seed, case, models.remove(0))),
            Err(error) => {
                assert!(error.to_string().contains("cannot be exported to ONNX"), "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    let jobs: Vec<Job> = exported.iter().map(|(seed, case, model)| job(*seed, case, model)).collect();
    let Some(answers) = run(&jobs) else { return };
    let (mut compared, mut failures) = (Compared::default(), Vec::new());
    for ((seed, case, _), answer) in exported.iter().zip(answers) {
        let wrong = match answer {
            Ok(mut found) => difference(case, found.remove(0), &mut compared),
            Err(why) => Some(why),
        };
        failures.extend(wrong.map(|why| format!("seed {seed}: {why}\n{}", case.describe())));
    }
    println!("{} programs, {refused} refused: {compared:?}", jobs.len());
    assert!(failures.is_empty(), "{} programs fail:\n{}", failures.len(), failures.join("\n"));
    assert!(refused * 2 < CASES, "{refused} of {CASES} programs are refused");
}
