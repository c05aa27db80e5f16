//! Building, running and comparing.

use backfit_ir::interp::{Array, Options, run};
use backfit_ir::{DType, FuncId, Graph, Literal, Module, Tensor, Type};

/// An f64 tensor.
pub fn floats(shape: &[usize], values: &[f64]) -> Literal {
    Literal::from_f64(Type::new(DType::F64, shape), values)
}

/// An i32 tensor.
pub fn ids(shape: &[usize], values: &[i32]) -> Literal {
    Literal::from_i32(shape, values)
}

/// Makes a parameter for every literal.
pub fn parameters(g: &Graph, inputs: &[Literal]) -> Vec<Tensor> {
    let named = inputs.iter().enumerate();
    named.map(|(i, x)| g.parameter(&format!("in{i}"), x.ty().clone(), backfit_ir::Role::Input, None)).collect()
}

/// Builds a function of inputs and runs it.
pub fn try_all(
    inputs: &[Literal],
    build: impl FnOnce(&Graph, &[Tensor]) -> Vec<Tensor>,
    options: Options,
) -> backfit_ir::Result<(Module, Vec<Array>)> {
    let g = Graph::new();
    let results = build(&g, &parameters(&g, inputs));
    results.iter().enumerate().for_each(|(i, t)| g.result(&format!("out{i}"), t));
    let module = g.finish()?;
    let arguments: Vec<Array> = inputs.iter().map(Array::from_literal).collect();
    let values = run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, options)?;
    Ok((module, values))
}

/// The results of a function of inputs.
pub fn all(inputs: &[Literal], build: impl FnOnce(&Graph, &[Tensor]) -> Vec<Tensor>) -> Vec<Array> {
    try_all(inputs, build, Options::default()).map(|(_, values)| values).unwrap_or_else(|e| panic!("{e}"))
}

/// The elements of the single float result of a function of inputs.
pub fn one(inputs: &[Literal], build: impl FnOnce(&[Tensor]) -> Tensor) -> Vec<f64> {
    all(inputs, |_, x| vec![build(x)])[0].as_floats().to_vec()
}

/// The complaint about a wrong call.
pub fn complaint(inputs: &[Literal], build: impl FnOnce(&[Tensor]) -> Tensor) -> String {
    let result = try_all(inputs, |_, x| vec![build(x)], Options::default());
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

/// Compares relative to the largest expected element, element by element for infinities and NaN.
#[track_caller]
pub fn near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    let scale = expected.iter().filter(|v| v.is_finite()).fold(1e-300, |m: f64, v| m.max(v.abs()));
    for (f, e) in found.iter().zip(expected) {
        let same = f == e || (f.is_nan() && e.is_nan()) || (f - e).abs() <= tolerance * scale;
        assert!(same, "found {found:?}, expected {expected:?}");
    }
}
