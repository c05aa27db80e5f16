//! Vector-Jacobian products of every operator against JAX's, in f64.

use backfit_cpu::Cpu;
use backfit_grad::{Request, vjp};
use backfit_ir::interp::Options;
use backfit_ir::{Error, Graph, Literal, Module, Role, Tensor};
use backfit_suites::compare::{interpret, on_cpu};
use backfit_suites::oracle::build;
use backfit_suites::oracle::file::{Case, cases};

/// A module of the products of the inputs that JAX differentiates.
fn module(case: &Case) -> Result<Module, Error> {
    let g = Graph::new();
    let named = case.inputs.iter().enumerate();
    let x: Vec<Tensor> =
        named.map(|(i, l)| g.parameter(&format!("in{i}"), l.ty().clone(), Role::Input, None)).collect();
    let results = build(case, &g, &x).unwrap_or_else(|| panic!("{}: no such operator", case.name));
    let given = results.iter().zip(&case.cotangents);
    let outputs: Vec<_> = given.filter_map(|(y, c)| Some((y.clone(), g.constant(c.clone()?)))).collect();
    let targets: Vec<&Tensor> = x.iter().zip(&case.products).filter(|(_, p)| p.is_some()).map(|(t, _)| t).collect();
    let found = vjp(&Request { outputs: &outputs, targets: &targets, stop: &[] })?;
    for (i, (product, target)) in found.into_iter().zip(targets).enumerate() {
        g.result(&format!("vjp{i}"), &product.unwrap_or_else(|| target.like(0.0)));
    }
    g.finish()
}

/// As in the values: JAX clips without PyTorch's 1e-6 beside the norm.
fn tolerance(case: &Case) -> f64 {
    if case.name == "clip_by_global_norm.above" { 1e-5 } else { 1e-10 }
}

/// The largest difference, relative to the largest magnitude where that is above 1.
fn error(found: &Literal, expected: &Literal) -> f64 {
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let scale = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    found
        .iter()
        .zip(&expected)
        .map(|(f, e)| (f - e).abs() / scale)
        .fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a })
}

fn compare(run: impl Fn(&Module, &[Literal]) -> Result<Vec<Literal>, Error>) {
    let cases = cases();
    let cases: Vec<&Case> = cases.iter().filter(|c| c.products.iter().any(Option::is_some)).collect();
    assert!(cases.len() >= 250, "only {} cases have products", cases.len());
    let mut wrong = Vec::new();
    let mut worst = 0.0f64;
    for case in &cases {
        let found = match module(case).and_then(|module| run(&module, &case.inputs)) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{}: {error}", case.name));
                continue;
            }
        };
        for (i, (found, expected)) in found.iter().zip(case.products.iter().flatten()).enumerate() {
            assert_eq!(found.ty(), expected.ty(), "{}", case.name);
            let error = error(found, expected);
            if error.is_nan() || error > tolerance(case) {
                wrong.push(format!("{}, product {i}: off by {error:e}", case.name));
            }
            worst = if tolerance(case) < 1e-6 { worst.max(error) } else { worst };
        }
    }
    println!("{} cases, the worst off by {worst:.1e}", cases.len());
    assert!(wrong.is_empty(), "{} products are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn on_the_interpreter_products_are_those_of_jax() {
    compare(|module, inputs| interpret(module, inputs, Options { double: true, ..Options::default() }));
}

#[test]
fn on_the_cpu_products_are_those_of_jax() {
    compare(|module, inputs| on_cpu(&Cpu::default().threads(1), module, inputs));
}
