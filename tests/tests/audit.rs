//! The operator audit: every operator on every target, driven by the samples in the operators' own files.

use backfit_cpu::Cpu;
use backfit_grad::check_outputs;
use backfit_ir::interp::{Array, Options};
use backfit_ir::ops::definition::values;
use backfit_ir::ops::{Derivative, REGISTRY};
use backfit_ir::{DType, Literal, Op, Tensor};
use backfit_suites::compare::{difference_flushed, interpret, on_cpu};
use backfit_suites::sample::{Case, cases};

const FLUSH: Options = Options { double: false, flush_subnormals: true };

fn report(failures: Vec<String>, of: usize) {
    assert!(of > 0, "there are no cases");
    assert!(failures.is_empty(), "{} of {of} cases fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_operator_but_calls_and_scans_has_samples() {
    let mut bare: Vec<_> = REGISTRY.iter().filter(|d| (d.samples)().is_empty()).map(|d| d.name).collect();
    bare.sort_unstable();
    assert_eq!(bare, ["call", "scan"]);
}

#[test]
fn names_are_unique_and_every_missing_derivative_says_why() {
    let mut names: Vec<_> = REGISTRY.iter().map(|d| d.name).collect();
    names.sort_unstable();
    let mut unique = names.clone();
    unique.dedup();
    assert_eq!(names, unique);
    for def in REGISTRY {
        if let Derivative::NotDifferentiable(why) = def.derivative {
            assert!(why.contains(' '), "{} says only '{why}'", def.name);
        }
    }
}

#[test]
fn the_cpu_target_computes_what_the_interpreter_does() {
    compare_cpu(&Cpu::default().threads(1), FLUSH);
}

#[test]
fn the_cpu_target_computes_what_the_interpreter_does_with_subnormals_kept() {
    compare_cpu(&Cpu::default().threads(2).keep_subnormals(), Options::default());
}

fn compare_cpu(cpu: &Cpu, options: Options) {
    let cases = cases();
    let failures = cases.iter().filter_map(|case| {
        let compared = case.module().and_then(|module| {
            let expected = interpret(&module, &case.inputs, options)?;
            let kept = interpret(&module, &case.inputs, Options::default())?;
            let found = on_cpu(cpu, &module, &case.inputs)?;
            Ok(found
                .iter()
                .zip(expected.iter().zip(&kept))
                .find_map(|(f, (e, k))| difference_flushed(e, k, f, case.def.tolerance)))
        });
        match compared {
            Err(error) => Some(format!("{}: {error}", case.name)),
            Ok(wrong) => wrong.map(|w| format!("{}: {w}", case.name)),
        }
    });
    report(failures.collect(), cases.len());
}

#[test]
fn fused_and_unfused_programs_have_the_same_bits_for_any_number_of_threads() {
    let cases = cases();
    let failures = cases.iter().filter_map(|case| {
        let module = case.module().ok()?;
        let run = |cpu: Cpu| on_cpu(&cpu, &module, &case.inputs);
        let one = run(Cpu::default().threads(1)).ok()?;
        let others = [
            run(Cpu::default().threads(2)),
            run(Cpu::default().threads(1).without_fusion()),
            run(Cpu::default().threads(3)),
        ];
        let same = others.iter().all(|o| o.as_ref().is_ok_and(|o| *o == one));
        (!same).then(|| case.name.clone())
    });
    report(failures.collect(), cases.len());
}

#[test]
fn derivatives_equal_central_differences_in_f64() {
    let cases: Vec<Case> = cases().into_iter().filter(|c| c.smooth && floats_are_double(c)).collect();
    let failures: Vec<String> = cases.iter().filter_map(derivative_failure).collect();
    report(failures, cases.len());
}

fn floats_are_double(case: &Case) -> bool {
    case.inputs.iter().all(|l| !l.ty().dtype.is_float() || l.ty().dtype == DType::F64)
}

fn derivative_failure(case: &Case) -> Option<String> {
    if matches!(case.def.derivative, Derivative::NotDifferentiable(_)) {
        return None;
    }
    let (g, results) = case.graph();
    let float = results.iter().filter(|t| t.dtype().is_float() && t.shape().elements() > 0);
    let outputs: Vec<(Tensor, Tensor)> = float
        .enumerate()
        .map(|(i, t)| {
            let values = values::uniform(t.shape().elements(), 0.5, 1.5, i as u64 + 77);
            (t.clone(), g.push1(Op::Constant(Literal::from_f64(t.ty().clone(), &values)), &[]))
        })
        .collect();
    if outputs.is_empty() {
        return None;
    }
    let arguments: Vec<Array> = case.inputs.iter().map(Array::from_literal).collect();
    match check_outputs(&outputs, &arguments) {
        Err(error) => Some(format!("{}: {error}", case.name)),
        Ok(report) if report.worst() > 2e-7 || report.worst().is_nan() => Some(format!("{}: {report}", case.name)),
        Ok(_) => None,
    }
}
