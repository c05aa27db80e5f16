//! Every sample of every operator, exported, accepted by the checker of ONNX, and run.

use backfit_compile::target::Program;
use backfit_ir::interp::Options;
use backfit_ir::{Error, Literal, Module, Type};
use backfit_onnx::{Model, export};
use backfit_suites::compare::{difference, interpret, last};
use backfit_suites::onnxruntime::{Job, run};
use backfit_suites::sample::{Case, cases};

/// A row of `tests/onnx/exclusions.txt`: `operator | label | dtype | reason`; `*` stands for any label.
struct Exclusion {
    operator: &'static str,
    label: &'static str,
    dtype: &'static str,
}

fn exclusions() -> Vec<Exclusion> {
    let rows = include_str!("../../onnx/exclusions.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty());
    rows.map(|row| match row.split('|').map(str::trim).collect::<Vec<_>>()[..] {
        [operator, label, dtype, why] if why.contains(' ') => Exclusion { operator, label, dtype },
        _ => panic!("'{row}' is no row"),
    })
    .collect()
}

impl Exclusion {
    fn matches(&self, case: &Case) -> bool {
        let name = |label: &str| format!("{}: {label} ({})", self.operator, self.dtype);
        case.def.name == self.operator
            && (case.name == name(self.label)
                || self.label == "*" && case.name.ends_with(&format!(" ({})", self.dtype)))
    }
}

fn exported(module: &Module) -> Result<Model, Error> {
    let functions = vec![("main".to_owned(), last(module))];
    Ok(export(&Program::new(module.clone(), functions))?.remove(0))
}

/// What a case should give, and its model.
struct Prepared {
    name: String,
    inputs: Vec<Literal>,
    expected: Vec<Literal>,
    model: Model,
}

fn prepare(case: &Case) -> Result<Prepared, Error> {
    let module = case.module()?;
    let expected = interpret(&module, &case.inputs, Options::default())?;
    Ok(Prepared { name: case.name.clone(), inputs: case.inputs.clone(), expected, model: exported(&module)? })
}

impl Prepared {
    fn job(&self) -> Job<'_> {
        let inputs = self.inputs.iter().enumerate().map(|(i, value)| (format!("x{i}"), value.clone()));
        let outputs: Vec<Type> = self.expected.iter().map(|l| l.ty().clone()).collect();
        Job { name: self.name.clone(), model: &self.model, runs: vec![inputs.collect()], outputs, only_last: false }
    }
}

/// The `Where` of onnxruntime loses the sign of zeros.
fn unsigned_zeros(literal: &Literal) -> Literal {
    if !literal.ty().dtype.is_float() {
        return literal.clone();
    }
    let values: Vec<f64> = literal.to_f64().into_iter().map(|v| if v == 0.0 { 0.0 } else { v }).collect();
    Literal::from_f64(literal.ty().clone(), &values)
}

#[test]
fn onnxruntime_computes_what_the_interpreter_does_for_every_operator() {
    let exclusions = exclusions();
    let mut used = vec![false; exclusions.len()];
    let mut failures = Vec::new();
    let mut prepared: Vec<(Case, Prepared)> = Vec::new();
    let excluded = |case: &Case, used: &mut Vec<bool>| match exclusions.iter().position(|e| e.matches(case)) {
        Some(at) => {
            used[at] = true;
            true
        }
        None => false,
    };
    for case in cases() {
        match prepare(&case) {
            Ok(model) => prepared.push((case, model)),
            Err(error) => {
                if !excluded(&case, &mut used) {
                    failures.push(format!("{}: {error}", case.name));
                }
            }
        }
    }
    let jobs: Vec<Job> = prepared.iter().map(|(_, p)| p.job()).collect();
    let Some(answers) = run(&jobs) else { return };
    for ((case, prepared), answer) in prepared.iter().zip(answers) {
        let wrong = match answer {
            Err(error) => Some(error),
            Ok(found) => found[0].iter().zip(&prepared.expected).find_map(|(found, expected)| {
                difference(&unsigned_zeros(expected), &unsigned_zeros(found), case.def.tolerance)
            }),
        };
        if let Some(wrong) = wrong
            && !excluded(case, &mut used)
        {
            failures.push(format!("{}: {wrong}", case.name));
        }
    }
    let idle = exclusions.iter().zip(&used).filter(|(_, used)| !**used);
    failures.extend(idle.map(|(e, _)| format!("{} | {} | {} need not be excluded", e.operator, e.label, e.dtype)));
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), jobs.len(), failures.join("\n"));
    println!("{} cases, {} rows of exclusions", jobs.len(), exclusions.len());
}
