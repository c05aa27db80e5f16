//! Every source location in a training program lies in the user's file: of parameters, inlined composites, gradients,
//! optimizer and guard, in the modules that stages leave and in the report of the CPU target.

use backfit::prelude::*;
use backfit::{Executable, Program, TrainModule};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{FuncId, Literal, Loc, Module, Role};
use std::collections::BTreeSet;

/// Where a module names other files than this one.
fn leaks(module: &Module) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut look = |loc: &Loc, what: String| {
        if &*loc.file != file!() {
            found.insert(format!("{loc}: {what}"));
        }
    };
    for f in &module.functions {
        f.params.iter().for_each(|p| look(&p.loc, format!("parameter '{}' of '{}'", p.name, f.name)));
        f.nodes
            .iter()
            .for_each(|n| look(&n.loc, format!("{} {} of '{}' in '{}'", n.op.name(), n.results[0], f.name, n.scope)));
    }
    found
}

fn check(model: &TrainModule) {
    let found = leaks(&model.module);
    assert!(found.is_empty(), "the program names\n{}", found.into_iter().collect::<Vec<_>>().join("\n"));
    let functions = [
        ("init", Some(model.init)),
        ("step", Some(model.step)),
        ("eval", Some(model.eval)),
        ("predict", model.predict),
    ];
    let functions: Vec<(String, FuncId)> =
        functions.into_iter().filter_map(|(n, id)| Some((n.to_owned(), id?))).collect();
    let built = Cpu::default().threads(1).build(&Program::new(model.module.clone(), functions));
    let executable = built.unwrap_or_else(|error| panic!("{error}"));
    for stage in executable.stages() {
        let found = leaks(&stage.module);
        assert!(found.is_empty(), "{} leaves\n{}", stage.name, found.into_iter().collect::<Vec<_>>().join("\n"));
    }
    for function in executable.functions() {
        for instruction in &function.instructions {
            let own = |place: &String| place.starts_with(concat!(file!(), ":"));
            assert!(instruction.locations.iter().all(own), "{}: {instruction:?}", function.name);
        }
    }
}

#[test]
fn a_perceptron_names_only_lines_of_its_user() {
    let g = Graph::new();
    let (x, label) = (g.input("image", F32, [10, 30]), g.input("label", I32, [10]));
    let h = nn::linear(&g, "fc1", &x, 16).gelu();
    let logits = nn::linear(&g, "fc2", &h, 10);
    let step = TrainStep::new(&logits.cross_entropy(&label)).optimizer(Adam::new(1e-3));
    check(&step.report("accuracy", &logits.accuracy(&label)).predict(&logits).build().unwrap());
}

#[test]
fn a_convolutional_network_names_only_lines_of_its_user() {
    let g = Graph::new();
    let (x, label) = (g.input("image", F32, [4, 1, 8, 8]), g.input("label", I32, [4]));
    let valid = g.input("valid", F32, [4]);
    let conv = nn::Conv2d::new("conv", 4, [3, 3]).padding([1, 1]).bias(false).apply(&g, &x);
    let norm = nn::BatchNorm::new("bn").mask(&valid).apply(&g, &conv);
    let h = nn::dropout(&norm.relu().max_pool2d([2, 2], [2, 2], [0, 0]).flatten(1), 0.25);
    let logits = nn::linear(&g, "fc", &h, 10);
    let loss = logits.cross_entropy_with(&label, CrossEntropy { weights: Some(&valid), ..CrossEntropy::default() });
    let step = TrainStep::new(&loss).optimizer(AdamW::new(2e-3)).clip(Clip::GlobalNorm(1.0));
    check(&step.predict(&logits).build().unwrap());
}

#[test]
fn a_transformer_names_only_lines_of_its_user() {
    let g = Graph::new();
    let (tokens, next) = (g.input("tokens", I32, [2, 6]), g.input("next", I32, [2, 6]));
    let x = nn::embedding(&g, "tokens", &tokens, 20, 16);
    let block = nn::TransformerBlock::new("block", 4, 24).causal(true).gated().kv_heads(2).rotary(Rotary::default());
    let x = block.apply(&g, &x);
    let logits = nn::linear(&g, "head", &nn::rms_norm(&g, "norm", &x), 20);
    let step = TrainStep::new(&logits.cross_entropy(&next)).optimizer(RmsProp::new(3e-3).centered());
    check(&step.clip(Clip::Value(1.0)).predict(&logits).build().unwrap());
}

/// h ← tanh(x·v + h·w), with h used more than once, and a function of the user's own within the loop.
fn recurrent(g: &Graph) -> (Tensor, Tensor) {
    let ty = Type::new(F32, [4, 4]);
    let twice = g.function("twice");
    let x = twice.input("x", F32, [2, 4]);
    twice.result("y", &(&x * &x + &x));
    let twice = g.define(twice).unwrap();
    let body = g.function("cell");
    let h = body.input("h", F32, [2, 4]);
    let w = body.parameter("w", ty.clone(), Role::Input, None);
    let x = body.input("x", F32, [2, 4]);
    let mixed = (&x + &h.matmul(&w)).tanh();
    let next = &body.call(twice, &[&mixed])[0] * &h + &mixed.gelu();
    body.result("h", &next);
    body.result("y", &next.softmax(-1));
    let body = g.define(body).unwrap();
    let w = g.weight("w", ty, Init::xavier_uniform(4, 4));
    let start = g.weight("start", Type::new(F32, [2, 4]), Init::Literal(Literal::zeros(Type::new(F32, [2, 4]))));
    let x = g.input("x", F32, [3, 2, 4]);
    let scan = Scan { body, carries: 1, constants: 1, trip_count: 3, reverse: false };
    let found = g.scan(scan, &[&start], &[&w], &[&x]);
    (found[0].clone(), found[1].clone())
}

#[test]
fn a_loop_over_a_function_names_only_lines_of_its_user() {
    let g = Graph::new();
    let (last, all) = recurrent(&g);
    let count = g.state("count", Type::new(I32, []), Init::ZEROS);
    g.update(&count, &(&count + 1.0));
    let loss = last.square().mean(&[0, 1]) + all.sum_all();
    let step = TrainStep::new(&loss).optimizer(Sgd::new(0.1).momentum(0.9).nesterov());
    check(&step.report("last", &last).predict(&all).build().unwrap());
}

#[test]
fn an_optimizer_step_within_a_graph_names_only_lines_of_its_user() {
    let g = Graph::new();
    let [w, row, column, gradient] =
        [("w", vec![2, 3]), ("row", vec![2, 1]), ("column", vec![1, 3]), ("g", vec![2, 3])]
            .map(|(name, dims)| g.parameter(name, Type::new(F64, dims), Role::State, Some(Init::ZEROS)));
    let hypers = ["learning_rate", "inverse_root", "share"].map(|name| g.hyper(name, F32));
    let new = backfit_grad::adafactor_step(&Adafactor::new(0.1), &[w], &[vec![row, column]], &[gradient], &hypers);
    g.result("w", &new[0].weight);
    let found = leaks(&g.finish().unwrap_or_else(|error| panic!("{error}")));
    assert!(found.is_empty(), "{found:?}");
}
