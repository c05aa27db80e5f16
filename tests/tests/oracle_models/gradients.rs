//! The loss, the logits and every gradient of each model.

use backfit_cpu::Cpu;
use backfit_grad::gradients;
use backfit_ir::interp::Options;
use backfit_ir::{DType, Error, Literal, Module, Tensor};
use backfit_suites::compare::{distance, interpret, on_cpu};
use backfit_suites::oracle::models::{Model, models};

/// The model's results by their names in the oracle, as a module that returns them in this order.
fn module(model: &Model, dtype: DType) -> (Module, Vec<Literal>, Vec<String>) {
    let built = model.build(dtype);
    let targets: Vec<&Tensor> = built.weights.values().collect();
    let found = gradients(&built.loss, &targets).unwrap_or_else(|e| panic!("{}: {e}", model.name));
    let mut results = vec![("loss".to_owned(), built.loss.clone()), ("logits".to_owned(), built.logits.clone())];
    results.extend(built.weights.keys().zip(found).map(|(name, gradient)| (format!("grad/{name}"), gradient)));
    results.extend(built.statistics.iter().map(|(name, value)| (format!("aux/{name}"), value.clone())));
    results.iter().for_each(|(name, value)| built.graph.result(name, value));
    let module = built.graph.finish().unwrap_or_else(|e| panic!("{}: {e}", model.name));
    (module, model.arguments(&built.graph, dtype), results.into_iter().map(|(name, _)| name).collect())
}

type Run = fn(&Module, &[Literal]) -> Result<Vec<Literal>, Error>;

/// Compares all results of all models, in norm, and those that are zero but for rounding absolutely.
fn compare(dtype: DType, tolerance: f64, run: Run) {
    let mut wrong = Vec::new();
    for model in models() {
        let (module, arguments, names) = module(&model, dtype);
        let found = run(&module, &arguments).unwrap_or_else(|e| panic!("{}: {e}", model.name));
        let mut worst = 0.0f64;
        for (name, found) in names.iter().zip(&found) {
            let expected = model.expected(dtype, name);
            assert_eq!(found.ty(), expected.ty(), "{}: {name}", model.name);
            let zero = model.zero_gradient.iter().any(|z| name == &format!("grad/{z}"));
            let error = if zero { norm(found) } else { distance(found, expected) };
            worst = worst.max(error);
            if error.is_nan() || error > tolerance {
                wrong.push(format!("{}: {name} is off by {error:e}", model.name));
            }
        }
        println!("{}: {} results, the worst off by {worst:.1e}", model.name, names.len());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn norm(value: &Literal) -> f64 {
    value.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn on_the_cpu_in_f32_losses_logits_and_gradients_are_those_of_jax() {
    compare(DType::F32, 1e-5, |module, arguments| on_cpu(&Cpu::default().threads(2), module, arguments));
}

#[test]
fn on_the_cpu_in_f64_losses_logits_and_gradients_are_those_of_jax() {
    compare(DType::F64, 1e-10, |module, arguments| on_cpu(&Cpu::default().threads(2), module, arguments));
}

#[test]
fn on_the_interpreter_in_f64_losses_logits_and_gradients_are_those_of_jax() {
    compare(DType::F64, 1e-10, |module, arguments| interpret(module, arguments, Options::default()));
}
