//! The optimizers' updates over the oracle's sequences of steps.

use backfit_grad::{Adafactor, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd, optimizer_step};
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::ops::adafactor_update::{AdafactorUpdate, adafactor_update, state_shapes};
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use backfit_ir::ops::lion_update::{LionUpdate, lion_update};
use backfit_ir::ops::rmsprop_update::{RmspropUpdate, rmsprop_update};
use backfit_ir::ops::sgd_update::{SgdUpdate, sgd_update};
use backfit_ir::{DType, FuncId, Graph, Module, Role, Shape, Tensor, Type};
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
fn slots(config: &Value, rank: usize) -> Vec<&'static str> {
    let momentum = number(config, "momentum") != 0.0;
    let centered = truth(config, "centered");
    match config["rule"].as_str() {
        Some("adam") => vec!["m", "v"],
        Some("lion") => vec!["m"],
        Some("adafactor") if rank > 1 => vec!["row", "column"],
        Some("adafactor") => vec!["v"],
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

/// The shape of the weight, and of the state.
fn shapes(sequence: &Value) -> Vec<Shape> {
    let dims = sequence["shape"]
        .as_array()
        .map_or(vec![4], |dims| dims.iter().map(|d| d.as_u64().expect("an extent") as usize).collect());
    let weight = Shape::from(dims);
    let state = match sequence["config"]["rule"].as_str() {
        Some("adafactor") => state_shapes(&weight),
        _ => vec![weight.clone(); slots(&sequence["config"], weight.rank()).len()],
    };
    [weight].into_iter().chain(state).collect()
}

/// The scalars of a step, counted from 1.
fn scalars(config: &Value, step: f64) -> [f64; 3] {
    let rate = number(config, "lr");
    match config["rule"].as_str() {
        Some("adafactor") => {
            let decay = config["beta2_decay"].as_f64().unwrap_or(-0.8);
            [rate, 1.0 / step.sqrt(), step.powf(decay)]
        }
        _ => {
            let correction = |i: usize| 1.0 - config["betas"][i].as_f64().unwrap_or(0.0).powf(step);
            [rate, correction(0), correction(1)]
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
        Some("lion") => {
            let betas = numbers(&config["betas"]);
            lion_update(&w[0], &w[1], g, &scalars[0], LionUpdate { beta1: betas[0], beta2: betas[1], weight_decay })
        }
        Some("adafactor") => {
            let setting = |value: &Value, default: f64| value.as_f64().unwrap_or(default);
            let epsilon1 = setting(&config["eps"][0], f64::EPSILON);
            let (epsilon2, d) = (setting(&config["eps"][1], 1e-3), setting(&config["d"], 1.0));
            let rule = AdafactorUpdate { epsilon1, epsilon2, d, weight_decay };
            adafactor_update(&w[0], &w[1..], g, scalars.each_ref(), rule)
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

fn module(config: &Value, shapes: &[Shape]) -> Module {
    let g = Graph::new();
    let input = |name: &str, dims: &[usize]| g.parameter(name, Type::new(DType::F64, dims), Role::Input, None);
    let w: Vec<Tensor> = shapes.iter().enumerate().map(|(i, dims)| input(&format!("w{i}"), dims)).collect();
    let gradient = input("gradient", &shapes[0]);
    let scalars = ["s0", "s1", "s2"].map(|name| input(name, &[]));
    let new = update(config, &w, &gradient, &scalars);
    new.iter().enumerate().for_each(|(i, t)| g.result(&format!("new{i}"), t));
    g.finish().unwrap_or_else(|e| panic!("{e}"))
}

fn follow(sequence: &Value) {
    let (config, shapes) = (&sequence["config"], shapes(sequence));
    let module = module(config, &shapes);
    let tensor = |dims: &Shape, v: Vec<f64>| Array::floats(Type::new(DType::F64, dims), v);
    let names = [&["param"], slots(config, shapes[0].rank()).as_slice()].concat();
    let mut state: Vec<Array> = shapes.iter().map(|dims| tensor(dims, vec![0.0; dims.elements()])).collect();
    state[0] = tensor(&shapes[0], numbers(&sequence["start"]));
    let steps = sequence["steps"].as_array().expect("a list").iter();
    for (t, (step, g)) in steps.zip(sequence["grads"].as_array().expect("a list")).enumerate() {
        let mut arguments = state.clone();
        arguments.push(tensor(&shapes[0], numbers(g)));
        let scalars = scalars(config, t as f64 + 1.0);
        arguments.extend(scalars.map(|v| tensor(&Shape::from([0; 0]), vec![v])));
        state = run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, Options::default()).unwrap();
        for (found, name) in state.iter().zip(&names) {
            let expected = numbers(&step[*name]);
            assert_eq!(found.as_floats().len(), expected.len(), "{}, {name}", sequence["name"]);
            for (found, expected) in found.as_floats().iter().zip(expected) {
                let near = (found - expected).abs() <= 1e-13 * expected.abs().max(1.0);
                assert!(near, "{}, step {t}, {name}: {found}, not {expected}", sequence["name"]);
            }
        }
    }
}

/// The optimizer that users have.
fn optimizer(config: &Value) -> Box<dyn Optimizer> {
    let (rate, decay, momentum) = (number(config, "lr"), number(config, "weight_decay"), number(config, "momentum"));
    let beta = |i: usize| config["betas"][i].as_f64().expect("a number");
    match config["rule"].as_str() {
        Some("adam") if truth(config, "decoupled") => {
            let rule = AdamW::new(rate).betas(beta(0), beta(1)).epsilon(number(config, "eps"));
            Box::new(rule.weight_decay(decay))
        }
        Some("adam") => {
            let rule = Adam::new(rate).betas(beta(0), beta(1)).epsilon(number(config, "eps"));
            Box::new(rule.weight_decay(decay))
        }
        Some("lion") => Box::new(Lion::new(rate).betas(beta(0), beta(1)).weight_decay(decay)),
        Some("adafactor") => {
            let rule = Adafactor::new(rate).weight_decay(decay);
            let rule = config["d"].as_f64().into_iter().fold(rule, Adafactor::clip);
            let rule = config["beta2_decay"].as_f64().into_iter().fold(rule, Adafactor::beta2_decay);
            let epsilons =
                config["eps"].as_array().map(|eps| [&eps[0], &eps[1]].map(|e| e.as_f64().expect("a number")));
            Box::new(epsilons.into_iter().fold(rule, |rule, [first, second]| rule.epsilons(first, second)))
        }
        Some("rmsprop") => {
            let rule = RmsProp::new(rate).alpha(number(config, "alpha")).epsilon(number(config, "eps"));
            let rule = rule.momentum(momentum).weight_decay(decay);
            Box::new(if truth(config, "centered") { rule.centered() } else { rule })
        }
        _ => {
            let rule = Sgd::new(rate).momentum(momentum).weight_decay(decay);
            Box::new(if truth(config, "nesterov") { rule.nesterov() } else { rule })
        }
    }
}

/// A step of two equal weights by the optimizer itself, within a graph, over a sequence.
fn follow_with(sequence: &Value, optimizer: &dyn Optimizer) {
    let weight = Type::new(DType::F64, &shapes(sequence)[0][..]);
    let g = Graph::new();
    let input = |name: String, ty: &Type| g.parameter(&name, ty.clone(), Role::Input, None);
    let types: Vec<Type> = optimizer.slots().iter().filter_map(|slot| optimizer.slot_type(slot, &weight)).collect();
    let weights = [0, 1].map(|n| input(format!("weight{n}"), &weight));
    let slots = [0, 1].map(|n| -> Vec<Tensor> {
        types.iter().enumerate().map(|(i, ty)| input(format!("slot{n}.{i}"), ty)).collect()
    });
    let gradients = [0, 1].map(|n| input(format!("gradient{n}"), &weight));
    let scalar = Type::new(DType::F64, []);
    let hypers: Vec<Tensor> = optimizer.hypers().iter().map(|name| input((*name).to_owned(), &scalar)).collect();
    let new = optimizer_step(optimizer, &weights, &slots, &gradients, &hypers);
    for (n, updated) in new.iter().enumerate() {
        g.result(&format!("new weight{n}"), &updated.weight);
        updated.slots.iter().enumerate().for_each(|(i, slot)| g.result(&format!("new slot{n}.{i}"), slot));
    }
    let module = g.finish().unwrap_or_else(|e| panic!("{e}"));
    let tensor = |ty: &Type, v: Vec<f64>| Array::floats(ty.clone(), v);
    let mut weight_now = tensor(&weight, numbers(&sequence["start"]));
    let mut slots_now: Vec<Array> = types.iter().map(|ty| tensor(ty, vec![0.0; ty.shape.elements()])).collect();
    let mut values = vec![0.0; hypers.len()];
    let steps = sequence["steps"].as_array().expect("a list").iter();
    for (t, (step, g)) in steps.zip(sequence["grads"].as_array().expect("a list")).enumerate() {
        optimizer.hyper_values(t as u64 + 1, optimizer.learning_rate(), &mut values);
        let twice = |one: &[Array]| [one, one].concat();
        let mut arguments = twice(std::slice::from_ref(&weight_now));
        arguments.extend(twice(&slots_now));
        arguments.extend(twice(&[tensor(&weight, numbers(g))]));
        arguments.extend(values.iter().map(|v| tensor(&scalar, vec![*v])));
        let found =
            run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, Options::default()).expect("it runs");
        let (first, second) = found.split_at(found.len() / 2);
        assert_eq!(first[0].as_floats(), second[0].as_floats());
        weight_now = first[0].clone();
        slots_now = first[1..].to_vec();
        for (found, expected) in weight_now.as_floats().iter().zip(numbers(&step["param"])) {
            let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            assert!(near, "{}, step {t}: {found}, not {expected}", sequence["name"]);
        }
    }
}

#[test]
fn optimizers_follow_the_sequences_within_any_graph() {
    let file = json("optimizers.json");
    let all = file["sequences"].as_array().expect("a list").iter();
    let known = all.filter(|s| s["config"]["dampening"].is_null());
    known.for_each(|sequence| follow_with(sequence, &*optimizer(&sequence["config"])));
}

#[test]
fn updates_follow_the_sequences() {
    let file = json("optimizers.json");
    let all = file["sequences"].as_array().expect("a list");
    // The update has no dampening.
    let known: Vec<&Value> = all.iter().filter(|s| s["config"]["dampening"].is_null()).collect();
    assert!(known.len() >= 18, "{} sequences", known.len());
    known.into_iter().for_each(follow);
}
