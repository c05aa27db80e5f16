//! Running a module's last function on the interpreter and on targets, and comparing.

use backfit_compile::precision::Policy;
use backfit_compile::target::{Executable, Program};
use backfit_cpu::Cpu;
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::ops::Tolerance;
use backfit_ir::{DType, Error, FuncId, Literal, Module};

/// The last function of a module.
pub fn last(module: &Module) -> FuncId {
    FuncId(module.functions.len() as u32 - 1)
}

/// Results by the interpreter.
///
/// # Errors
/// Arguments that do not fit.
pub fn interpret(module: &Module, inputs: &[Literal], options: Options) -> Result<Vec<Literal>, Error> {
    let arguments: Vec<Array> = inputs.iter().map(Array::from_literal).collect();
    Ok(run(module, last(module), &arguments, options)?.iter().map(Array::to_literal).collect())
}

/// Results by the CPU target, but for updates; `inputs` has a value for every parameter.
///
/// # Errors
/// Where it does not compile or run.
pub fn on_cpu(cpu: &Cpu, module: &Module, inputs: &[Literal]) -> Result<Vec<Literal>, Error> {
    on_cpu_in(cpu, &Policy::f32(), module, inputs)
}

/// Results by the CPU target in the dtypes of a precision policy; otherwise as [`on_cpu`].
///
/// # Errors
/// Where it does not compile or run.
pub fn on_cpu_in(cpu: &Cpu, policy: &Policy, module: &Module, inputs: &[Literal]) -> Result<Vec<Literal>, Error> {
    let program = Program::new(module.clone(), vec![("main".to_owned(), last(module))]).precision(policy.clone());
    let mut executable = cpu.build(&program)?;
    for program in executable.programs() {
        program.check_races().map_err(backfit_ir::Problem::new)?;
    }
    let mut fed = 0;
    for (param, value) in module.function(last(module)).params.iter().zip(inputs) {
        if param.role.is_resident() {
            executable.write(&param.name, value)?;
        } else {
            executable.input(0, fed).copy_from_slice(value.bytes());
            fed += 1;
        }
    }
    executable.run(0)?;
    let outputs = executable.signatures()[0].outputs.clone();
    let read = |(i, port): (usize, &backfit_compile::target::Port)| {
        Literal::from_bytes(port.ty.clone(), executable.output(0, i)).expect("as many bytes as the type says")
    };
    Ok(outputs.iter().enumerate().map(read).collect())
}

/// ‖found − expected‖ / ‖expected‖, in the Euclidean norm; absolute where the expected norm is 0.
pub fn distance(found: &Literal, expected: &Literal) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let away = norm(&mut found.iter().zip(&expected).map(|(f, e)| f - e));
    match norm(&mut expected.iter().copied()) {
        0.0 => away,
        whole => away / whole,
    }
}

/// The distance from 1 to the next number of a float dtype.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 1.0 / 1024.0,
        DType::BF16 => 1.0 / 128.0,
        _ => 0.0,
    }
}

/// [`difference`] from the nearer of two expectations, element by element: with subnormal numbers flushed, and with them
/// kept. Flushing is a licence, not a duty: operators that only move or test bits keep subnormal numbers.
pub fn difference_flushed(flushed: &Literal, kept: &Literal, found: &Literal, tolerance: Tolerance) -> Option<String> {
    difference(kept, found, tolerance)?;
    if !flushed.ty().dtype.is_float() || flushed.ty() != found.ty() {
        return difference(flushed, found, tolerance);
    }
    let smallest = if found.ty().dtype == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let flush = |v: f64| if v.abs() < smallest { 0f64.copysign(v) } else { v };
    let scalar = |v: f64| Literal::from_f64(found.ty().with_shape([]), &[v]);
    let (want, kept, have) = (flushed.to_f64(), kept.to_f64(), found.to_f64());
    (0..have.len()).find_map(|i| {
        difference(&scalar(kept[i]), &scalar(have[i]), tolerance)?;
        let why = difference(&scalar(flush(want[i])), &scalar(flush(have[i])), tolerance)?;
        Some(format!("at {i}: {why}"))
    })
}

/// The first element in which `found` is further from `expected` than the tolerance allows, in words.
pub fn difference(expected: &Literal, found: &Literal, tolerance: Tolerance) -> Option<String> {
    if expected.ty() != found.ty() {
        return Some(format!("{} instead of {}", found.ty(), expected.ty()));
    }
    let dtype = expected.ty().dtype;
    if !dtype.is_float() {
        let at = expected.to_i64().iter().zip(found.to_i64()).position(|(a, b)| *a != b)?;
        return Some(format!("element {at}: {} instead of {}", found.to_i64()[at], expected.to_i64()[at]));
    }
    let (want, have) = (expected.to_f64(), found.to_f64());
    let norm = want.iter().filter(|v| v.is_finite()).fold(0.0f64, |a, b| a.max(b.abs()));
    let tiny = match dtype {
        DType::F16 => 6e-8,
        DType::F32 | DType::BF16 => 1e-37,
        _ => 1e-300,
    };
    let close = |w: f64, h: f64| match tolerance {
        _ if w.is_nan() || h.is_nan() => w.is_nan() && h.is_nan(),
        _ if w == h => {
            w.is_sign_negative() == h.is_sign_negative() || w != 0.0 || !matches!(tolerance, Tolerance::Exact)
        }
        Tolerance::Exact => false,
        Tolerance::Element(ulps) => (w - h).abs() <= ulps * epsilon(dtype) * w.abs() + tiny,
        Tolerance::Norm(ulps) => (w - h).abs() <= ulps * epsilon(dtype) * norm + tiny,
    };
    let at = want.iter().zip(&have).position(|(&w, &h)| !close(w, h))?;
    Some(format!("element {at}: {:e} instead of {:e}", have[at], want[at]))
}
