//! The forward values of all operators against JAX's (`tests/oracle`), in f64.

use backfit_ir::interp::{Array, Options, run};
use backfit_ir::{FuncId, Graph, Role, Tensor};
use backfit_suites::oracle::file::{self, Case};

/// What our operator gives for a case, in f64 throughout.
fn evaluate(case: &Case) -> Vec<Array> {
    let g = Graph::new();
    let named = case.inputs.iter().enumerate();
    let x: Vec<Tensor> =
        named.map(|(i, l)| g.parameter(&format!("in{i}"), l.ty().clone(), Role::Input, None)).collect();
    let results =
        backfit_suites::oracle::build(case, &g, &x).unwrap_or_else(|| panic!("{}: no such operator", case.name));
    results.iter().enumerate().for_each(|(i, t)| g.result(&format!("out{i}"), t));
    let module = g.finish().unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let arguments: Vec<Array> = case.inputs.iter().map(Array::from_literal).collect();
    let options = Options { double: true, ..Options::default() };
    run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, options).unwrap()
}

/// JAX clips without PyTorch's 1e-6 beside the norm.
fn tolerance(case: &Case) -> f64 {
    if case.name == "clip_by_global_norm.above" { 1e-6 } else { 1e-12 }
}

fn values(array: &Array) -> Vec<f64> {
    if array.ty.dtype.is_float() { array.as_floats().to_vec() } else { array.to_literal().to_f64() }
}

#[test]
fn every_case_gives_the_values_of_jax() {
    let cases = file::cases();
    assert!(cases.len() >= 270, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let found = evaluate(case);
        assert_eq!(found.len(), case.outputs.len(), "{}", case.name);
        for (found, expected) in found.iter().zip(&case.outputs) {
            assert_eq!(found.shape(), &expected.ty().shape, "{}", case.name);
            let (found, expected) = (values(found), expected.to_f64());
            let allowed = tolerance(case) * expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            let near = |(f, e): (&f64, &f64)| f == e || (f - e).abs() <= allowed;
            if !found.iter().zip(&expected).all(near) {
                wrong.push(format!("{}: {found:?}, not {expected:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
