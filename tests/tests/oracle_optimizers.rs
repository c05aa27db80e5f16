//! The optimizers' updates over the oracle's sequences of steps.

use backfit_ir::interp::{Array, Options, run};
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use backfit_ir::ops::rmsprop_update::{RmspropUpdate, rmsprop_update};
use backfit_ir::ops::sgd_update::{SgdUpdate, sgd_update};
use backfit_ir::{DType, FuncId, Graph, Module, Role, Tensor, Type};
use backfit_suites::oracle::file::json;
use serde_json::Value;

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|v| v.as_f64().expect("a number")).collect()
}

fn number(config: &Value, name: &str) -> f64 {
    config[name].as_f64().unwrap_or(0.0)
}

fn truth(config: &Value, name: &str) -> bool {
    config[name].as_bool().unwrap_or(false)
}

/// The state in the order of the update's results, under the oracle's names.
fn slots(config: &Value) -> Vec<&'static str> {
    let momentum = number(config, "momentum") != 0.0;
    let centered = truth(config, "centered");
    match config["rule"].as_str() {
        Some("adam") => vec!["m", "v"],
        Some("rmsprop") => {
            [("v", true), ("mean", centered), ("momentum", momentum)].into_iter().filter(|s| s.1).map(|s| s.0).collect()
        }
        _ => {
            if momentum {
                vec!["momentum"]
            } else {
                vec![]
            }
        }
    }
}

/// The new weight and state, from the old ones, the gradient and the scalars.
fn update(config: &Value, w: &[Tensor], g: &Tensor, scalars: &[Tensor; 3]) -> Vec<Tensor> {
    let weight_decay = number(config, "weight_decay");
    let (momentum, centered) = (number(config, "momentum"), truth(config, "centered"));
    match config["rule"].as_str() {
        Some("adam") => {
            let betas = numbers(&config["betas"]);
            let (beta1, beta2, epsilon) = (betas[0], betas[1], number(config, "eps"));
            let rule = AdamUpdate { beta1, beta2, epsilon, weight_decay, decoupled: truth(config, "decoupled") };
            adam_update(&w[0], &w[1], &w[2], g, scalars.each_ref(), rule)
        }
        Some("rmsprop") => {
            let (alpha, epsilon) = (number(config, "alpha"), number(config, "eps"));
            let mut optional = w[2..].iter();
            let grad_avg = if centered { optional.next() } else { None };
            let rule = RmspropUpdate { alpha, epsilon, centered, momentum, weight_decay };
            rmsprop_update(&w[0], &w[1], grad_avg, optional.next(), g, &scalars[0], rule)
        }
        _ => {
            let rule = SgdUpdate { momentum, nesterov: truth(config, "nesterov"), weight_decay };
            sgd_update(&w[0], g, w.get(1), &scalars[0], rule)
        }
    }
}

fn module(config: &Value) -> Module {
    let g = Graph::new();
    let input = |name: &str, dims: &[usize]| g.parameter(name, Type::new(DType::F64, dims), Role::Input, None);
    let mut w = vec![input("param", &[4])];
    w.extend(slots(config).iter().map(|name| input(name, &[4])));
    let gradient = input("gradient", &[4]);
    let scalars = ["lr", "bias_correction1", "bias_correction2"].map(|name| input(name, &[]));
    let new = update(config, &w, &gradient, &scalars);
    new.iter().enumerate().for_each(|(i, t)| g.result(&format!("new{i}"), t));
    g.finish().unwrap_or_else(|e| panic!("{e}"))
}

fn follow(sequence: &Value) {
    let config = &sequence["config"];
    let module = module(config);
    let vector = |v: Vec<f64>| Array::floats(Type::new(DType::F64, [v.len()]), v);
    let scalar = |v: f64| Array::floats(Type::new(DType::F64, []), vec![v]);
    let names = [&["param"], slots(config).as_slice()].concat();
    let mut state = vec![vector(numbers(&sequence["start"]))];
    state.resize(names.len(), vector(vec![0.0; 4]));
    let steps = sequence["steps"].as_array().expect("a list").iter();
    for (t, (step, g)) in steps.zip(sequence["grads"].as_array().expect("a list")).enumerate() {
        let mut arguments = state.clone();
        arguments.push(vector(numbers(g)));
        arguments.push(scalar(number(config, "lr")));
        for i in 0..2 {
            let beta = config["betas"][i].as_f64().unwrap_or(0.0);
            arguments.push(scalar(1.0 - beta.powi(t as i32 + 1)));
        }
        state = run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, Options::default()).unwrap();
        for (found, name) in state.iter().zip(&names) {
            for (found, expected) in found.as_floats().iter().zip(numbers(&step[*name])) {
                let near = (found - expected).abs() <= 1e-13 * expected.abs().max(1.0);
                assert!(near, "{}, step {t}, {name}: {found}, not {expected}", sequence["name"]);
            }
        }
    }
}

#[test]
fn updates_follow_the_sequences() {
    let file = json("optimizers.json");
    let all = file["sequences"].as_array().expect("a list");
    // The update has no dampening.
    let known: Vec<&Value> = all.iter().filter(|s| s["config"]["dampening"].is_null()).collect();
    assert!(known.len() >= 13, "{} sequences", known.len());
    known.into_iter().for_each(follow);
}
