//! The oracle's models under every policy, against JAX in f32.

use backfit_compile::precision::{Compute, Policy};
use backfit_cpu::Cpu;
use backfit_grad::gradients;
use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::ops::definition::values::uniform;
use backfit_ir::{DType, Graph, Literal, Module, Tensor, Type};
use backfit_suites::compare::{distance, on_cpu, on_cpu_in};
use backfit_suites::oracle::file::json;
use backfit_suites::oracle::models::{Model, models};
use serde_json::Value;

/// Loss, logits and all gradients by their names in the oracle, as a module that returns them in this order.
fn module(model: &Model) -> (Module, Vec<Literal>, Vec<String>) {
    let built = model.build(DType::F32);
    let targets: Vec<&Tensor> = built.weights.values().collect();
    let found = gradients(&built.loss, &targets).unwrap();
    let mut results = vec![("loss".to_owned(), built.loss.clone()), ("logits".to_owned(), built.logits.clone())];
    results.extend(built.weights.keys().zip(found).map(|(name, gradient)| (format!("grad/{name}"), gradient)));
    results.iter().for_each(|(name, value)| built.graph.result(name, value));
    let module = built.graph.finish().unwrap();
    (module, model.arguments(&built.graph, DType::F32), results.into_iter().map(|(name, _)| name).collect())
}

/// Compares all results of all models with JAX, in norm. Gradients through batch norm are differences of sums that nearly
/// cancel; they have a tolerance of their own.
fn compare(policy: &Policy, tolerance: f64, through_batch_norm: f64) {
    let mut wrong = Vec::new();
    for model in models() {
        let (module, arguments, names) = module(&model);
        let found = on_cpu_in(&Cpu::default().threads(2), policy, &module, &arguments);
        let found = found.unwrap_or_else(|e| panic!("{}: {e}", model.name));
        let tolerance = if model.name == "cnn" { through_batch_norm } else { tolerance };
        let mut worst = 0.0f64;
        for (name, found) in names.iter().zip(&found) {
            if model.zero_gradient.iter().any(|z| name == &format!("grad/{z}")) {
                continue;
            }
            let error = distance(found, model.expected(DType::F32, name));
            worst = worst.max(error);
            if error.is_nan() || error > tolerance {
                wrong.push(format!("{}: {name} is off by {error:e}", model.name));
            }
        }
        println!("{}: {} results, the worst off by {worst:.1e}", model.name, names.len());
    }
    assert!(wrong.is_empty(), "{}: {}", policy.name(), wrong.join("\n"));
}

#[test]
fn in_bf16_gradients_are_those_of_jax_in_f32_but_for_two_percent() {
    compare(&Policy::bf16(), 2e-2, 3e-2);
}

#[test]
fn in_f16_gradients_are_those_of_jax_in_f32_but_for_a_quarter_percent() {
    compare(&Policy::f16(), 2.5e-3, 5e-3);
}

#[test]
fn by_three_way_splits_gradients_are_as_near_to_jax_as_in_f32() {
    compare(&Policy::bf16x3(), 1e-5, 1e-5);
}

#[test]
fn on_an_f16_engine_gradients_are_those_of_jax_in_f32_but_for_half_a_percent() {
    compare(&Policy::f16_engine(), 5e-3, 2e-2);
}

#[test]
fn half_precision_rounds_where_numpy_does() {
    let model = models().into_iter().find(|m| m.name == "mlp").unwrap();
    let (module, arguments, names) = module(&model);
    let rows = json("half.json");
    for (policy, tolerance) in [(Policy::bf16(), 1e-5), (Policy::f16(), 1e-5)] {
        let found = on_cpu_in(&Cpu::default().threads(2), &policy, &module, &arguments).unwrap();
        for (name, found) in names.iter().zip(&found) {
            let fits = |row: &&Value| row["policy"] == policy.name() && row["name"] == name.as_str();
            let row = rows["results"].as_array().unwrap().iter().find(fits).unwrap_or_else(|| panic!("{name}"));
            let expected: Vec<f64> = row["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            let error = distance(found, &Literal::from_f64(found.ty().clone(), &expected));
            println!("{} {name}: {error:.1e}", policy.name());
            assert!(error <= tolerance, "{}: {name} is off by {error:e}", policy.name());
        }
    }
}

#[test]
fn a_policy_that_narrows_nothing_keeps_every_bit() {
    // It narrows only where there is nothing, so that everything is rewritten all the same.
    let policy = Policy::f32().within("nowhere", Compute::Bf16);
    assert!(!policy.is_identity());
    for model in models() {
        let (module, arguments, names) = module(&model);
        let cpu = Cpu::default().threads(2);
        let expected = on_cpu(&cpu, &module, &arguments).unwrap();
        let found = on_cpu_in(&cpu, &policy, &module, &arguments).unwrap();
        for ((name, found), expected) in names.iter().zip(&found).zip(&expected) {
            assert_eq!(found.bytes(), expected.bytes(), "{}: {name}", model.name);
        }
    }
}

#[test]
fn batches_with_more_elements_than_f16_counts_are_normalised_on_an_f16_engine() {
    let g = Graph::new();
    let shape = [72usize, 1, 32, 32];
    let x = g.input("x", DType::F32, shape);
    let mask = g.input("mask", DType::F32, [72]);
    let [weight, bias, running_mean, running_var] =
        ["weight", "bias", "running_mean", "running_var"].map(|name| g.input(name, DType::F32, [1]));
    let parameters =
        BatchNormParameters { weight: &weight, bias: &bias, running_mean: &running_mean, running_var: &running_var };
    let out = x.batch_norm(parameters, Some(&mask), 0.1, 1e-5);
    let loss = (&out.y * &out.y * &x).sum_all() / 64.0;
    let found = gradients(&loss, &[&x, &weight, &bias]).unwrap();
    let results = found.iter().chain([&out.y, &out.running_mean, &out.running_var]);
    results.enumerate().for_each(|(i, value)| g.result(&format!("y{i}"), value));
    let module = g.finish().unwrap();
    let rows: Vec<f64> = (0..72).map(|row| f64::from(u8::from(row % 9 != 8))).collect();
    let numbers = |values: &[f64]| Literal::from_f64(Type::new(DType::F32, [values.len()]), values);
    let values = Literal::from_f64(x.ty().clone(), &uniform(72 * 1024, -1.0, 3.0, 1));
    let scalars = [1.5, 0.25, 0.5, 2.0].map(|v| numbers(&[v]));
    let arguments = [&[values, numbers(&rows)], &scalars[..]].concat();
    let cpu = Cpu::default().threads(2);
    let expected = on_cpu(&cpu, &module, &arguments).unwrap();
    let found = on_cpu_in(&cpu, &Policy::f16_engine(), &module, &arguments).unwrap();
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let error = distance(found, expected);
        assert!(error < 2e-3, "result {i} is off by {error:e}");
    }
}
