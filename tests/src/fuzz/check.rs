//! One case in every configuration of the CPU target, against the interpreter.

use super::{Case, Random, exact, noisy::Noisy};
use crate::compare::{epsilon, last};
use backfit_compile::target::{Executable, Program};
use backfit_cpu::{Cpu, CpuExecutable};
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::{Function, Literal};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Elements whose bits must be those of the interpreter.
    pub exact: usize,
    /// Elements that must be near.
    pub near: usize,
    /// Elements that rounding decides, so that nothing can be said of them.
    pub skipped: usize,
}

/// Runs a case everywhere, twice where it has states. The first difference in words.
///
/// # Errors
/// Where configurations differ from each other or from the interpreter, or anything fails.
pub fn check(case: &Case) -> Result<Compared, String> {
    let program = Program::new(case.module.clone(), vec![("main".to_owned(), last(&case.module))]);
    let configurations = [(1, true, true), (2, true, true), (1, false, true), (2, false, true), (2, true, false)];
    let mut executables = Vec::new();
    for (threads, fused, loops) in configurations {
        let cpu = Cpu::default().threads(threads);
        let cpu = if fused { cpu } else { cpu.without_fusion() };
        let cpu = if case.flush { cpu } else { cpu.keep_subnormals() };
        let cpu = if loops { cpu } else { cpu.without_loops().with_packed_results() };
        let fusion = if fused { "fused" } else { "unfused" };
        let name = format!("{threads} threads, {fusion}{}", if loops { "" } else { ", unrolled and packed" });
        let built =
            quietly(|| cpu.build(&program).map_err(|e| e.to_string())).map_err(|why| format!("{name}: {why}"))?;
        built.programs().iter().try_for_each(|p| p.check_races()).map_err(|why| format!("{name}: {why}"))?;
        executables.push((name, built));
    }
    let mut compared = Compared::default();
    let mut inputs = case.inputs.clone();
    let f = &case.module.functions[last(&case.module).index()];
    let updates = f.results.iter().any(|r| r.alias.is_some());
    for round in 0..if updates { 2 } else { 1 } {
        let mut all = Vec::new();
        for (name, executable) in &mut executables {
            let found = quietly(|| run_on(executable, f, &inputs)).map_err(|why| format!("{name}: {why}"))?;
            all.push(found);
        }
        let found = all.remove(0);
        for (other, (name, _)) in all.iter().zip(&executables[1..]) {
            if let Some(at) = (0..found.len()).find(|&i| other[i].bytes() != found[i].bytes()) {
                return Err(format!(
                    "run {round}: '{}' differs between {} and {name}",
                    f.results[at].name, executables[0].0
                ));
            }
        }
        compare(case, &inputs, &found, true, &mut compared).map_err(|why| format!("run {round}: {why}"))?;
        for (result, value) in f.results.iter().zip(found) {
            if let Some(param) = result.alias {
                inputs[param] = value;
            }
        }
    }
    Ok(compared)
}

fn quietly<T>(act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// The value of every result after a run; those that update a parameter are read from the resident store. Residents
/// that nothing updates must stay as they were.
fn run_on(executable: &mut CpuExecutable, f: &Function, inputs: &[Literal]) -> Result<Vec<Literal>, String> {
    let mut fed = 0;
    for (param, value) in f.params.iter().zip(inputs) {
        if param.role.is_resident() {
            executable.write(&param.name, value).map_err(|e| e.to_string())?;
        } else {
            executable.input(0, fed).copy_from_slice(value.bytes());
            fed += 1;
        }
    }
    executable.run(0).map_err(|e| e.to_string())?;
    for (index, (param, value)) in f.params.iter().zip(inputs).enumerate() {
        let updated = f.results.iter().any(|r| r.alias == Some(index));
        if param.role.is_resident() && !updated && executable.read(&param.name).as_ref() != Some(value) {
            return Err(format!("'{}' was changed", param.name));
        }
    }
    let mut returned = 0;
    let mut results = Vec::new();
    for result in &f.results {
        results.push(match result.alias {
            Some(param) => executable.read(&f.params[param].name).ok_or("a resident is missing")?,
            None => {
                returned += 1;
                let bytes = executable.output(0, returned - 1);
                Literal::from_bytes(f.ty(result.value).clone(), bytes).ok_or("a result of the wrong size")?
            }
        });
    }
    Ok(results)
}

/// Compares results with the interpreter's; −0 is as good as 0 where their signs do not count.
///
/// # Errors
/// The first difference in words.
pub fn compare(
    case: &Case,
    inputs: &[Literal],
    found: &[Literal],
    signed_zeros: bool,
    compared: &mut Compared,
) -> Result<(), String> {
    let module = &case.module;
    let rounding = Options { double: false, flush_subnormals: case.flush };
    let id = last(module);
    let f = module.function(id);
    let arguments: Vec<Array> = inputs.iter().map(Array::from_literal).collect();
    let run = |options| run(module, id, &arguments, options).map_err(|e| e.to_string());
    let expected = run(rounding)?;
    let exact = exact::exact_values(module, f);
    let mut others: Vec<Vec<Array>> = Vec::new();
    if f.results.iter().any(|r| !exact[r.value.index()]) {
        others.push(run(Options { double: true, flush_subnormals: false })?);
        let noise = |seed| Noisy::new(module, rounding, Some(Random(seed))).results(id, &arguments);
        others.extend((1..5).map(noise));
    }
    for (at, result) in f.results.iter().enumerate() {
        let (have, want) = (Array::from_literal(&found[at]), &expected[at]);
        let spread = |i: usize| others.iter().map(|o| distance(want, &o[at], i)).fold(0.0, f64::max);
        for i in 0..want.len() {
            let zeros = !signed_zeros && number(want, i) == 0.0 && number(&have, i) == 0.0;
            let off = if zeros { 0.0 } else { distance(want, &have, i) };
            let wrong = if exact[result.value.index()] {
                compared.exact += 1;
                off != 0.0
            } else {
                let (spread, size) = (spread(i), number(want, i).abs());
                let skip = spread > 1e-3 * size.max(1e-30);
                *(if skip { &mut compared.skipped } else { &mut compared.near }) += 1;
                let finite = if size.is_finite() { size } else { 0.0 };
                !skip && off > 4.0 * spread + 4.0 * epsilon(want.ty.dtype) * finite + 1e-37
            };
            if wrong {
                let kind = if exact[result.value.index()] { "exact" } else { "near" };
                return Err(format!(
                    "'{}' ({}) at {i}: {:?} instead of {:?} ({kind})",
                    result.name,
                    want.ty,
                    number(&have, i),
                    number(want, i)
                ));
            }
        }
    }
    Ok(())
}

fn number(array: &Array, i: usize) -> f64 {
    match &array.data {
        backfit_ir::interp::Data::Float(v) => v[i],
        backfit_ir::interp::Data::Int(v) => v[i] as f64,
    }
}

/// How far two elements are from each other: 0 only for the same bits, or NaN and NaN; ∞ where only one is finite.
fn distance(a: &Array, b: &Array, i: usize) -> f64 {
    use backfit_ir::interp::Data;
    match (&a.data, &b.data) {
        (Data::Int(a), Data::Int(b)) if a[i] == b[i] => 0.0,
        (Data::Int(a), Data::Int(b)) => (a[i] as f64 - b[i] as f64).abs().max(1.0),
        _ => {
            let (a, b) = (number(a, i), number(b, i));
            match a - b {
                _ if a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() => 0.0,
                d if d.is_finite() => d.abs().max(f64::MIN_POSITIVE),
                _ => f64::INFINITY,
            }
        }
    }
}
