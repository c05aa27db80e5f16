//! Whole training steps of small networks on the bundled digits, beside the CPU's.

use backfit::prelude::*;
use backfit_compile::target::Program;
use backfit_ir::{Literal, Type};
use backfit_onnx::{Model, export};
use backfit_suites::compare::distance;
use backfit_suites::onnxruntime::{Job, run};
use backfit_suites::training::Training;
use std::collections::BTreeMap;

const ROWS: usize = 50;

/// Images in, logits out.
type Network = fn(&Graph, &Tensor) -> Tensor;

fn perceptron(g: &Graph, x: &Tensor) -> Tensor {
    let h = nn::linear(g, "fc1", &x.flatten(1), 64).gelu();
    nn::linear(g, "fc2", &h, 10)
}

fn convolutional(g: &Graph, x: &Tensor) -> Tensor {
    let block = |name: &str, x: &Tensor, channels: usize| {
        let y = nn::Conv2d::new(&format!("{name}.conv"), channels, [3, 3]).padding([1, 1]).bias(false).apply(g, x);
        nn::BatchNorm::new(&format!("{name}.bn")).apply(g, &y).relu().max_pool2d([2, 2], [2, 2], [0, 0])
    };
    nn::linear(g, "fc", &block("block2", &block("block1", x, 4), 8).flatten(1), 10)
}

/// The rows of an image are a text of 28 words. Root mean square norms, rotary positions, SwiGLU, two query heads for each
/// of keys and values, causal.
fn llama(g: &Graph, x: &Tensor) -> Tensor {
    let h = nn::linear(g, "embed", &x.reshape([ROWS, 28, 28]), 32);
    let block = nn::TransformerBlock::new("block", 4, 64).causal(true).gated().kv_heads(2).rotary(Rotary::default());
    let h = block.apply(g, &h).narrow(1, 27, 1).flatten(1);
    nn::linear(g, "head", &h, 10)
}

/// Three such blocks as one loop, forward and backward.
fn stacked(g: &Graph, x: &Tensor) -> Tensor {
    let h = nn::linear(g, "embed", &x.reshape([ROWS, 28, 28]), 16);
    let h = nn::Stack::new("layers", 3).taps(Taps::Inputs).apply(g, &h, |g, x, _| {
        nn::TransformerBlock::new("block", 2, 24).causal(true).gated().rotary(Rotary::default()).apply(g, x)
    });
    nn::linear(g, "head", &h.mean(&[1]), 10)
}

struct Case {
    training: Training,
    init: Model,
    step: Model,
    eval: Model,
}

fn case(network: Network, policy: &Policy) -> Case {
    let g = Graph::new();
    let x = g.input("image", F32, [ROWS, 1, 28, 28]);
    let label = g.input("label", I32, [ROWS]);
    let logits = network(&g, &x);
    let step = TrainStep::new(&logits.cross_entropy(&label)).optimizer(Adam::new(2e-3));
    let module = step.report("accuracy", &logits.accuracy(&label)).build().expect("a training program");
    let functions = [("init", module.init), ("step", module.step), ("eval", module.eval)];
    let functions = functions.map(|(name, id)| (name.to_owned(), id)).to_vec();
    let models =
        export(&Program::new(module.module.clone(), functions).precision(policy.clone())).expect("it is exported");
    let [init, step, eval] = models.try_into().expect("three models");
    let training = Training::with_policy(module, &Cpu::default().threads(2), policy).expect("it compiles");
    Case { training, init, step, eval }
}

/// The inputs of steps, and of evaluations.
type Inputs = Vec<Vec<(&'static str, Literal)>>;

fn data(steps: usize) -> (Inputs, Inputs) {
    let split = datasets::digits_split().expect("they are inside");
    let columns = |set: Dataset, order: bool| -> Inputs {
        let set = set.to_unit("image").expect("bytes");
        let batches = set.batches(ROWS).drop_last();
        let batches = if order { batches.in_order().epochs(1) } else { batches.epochs(10) };
        let pick =
            |batch: &Batch| ["image", "label"].map(|name| (name, batch.literal(name).expect("a column"))).to_vec();
        batches.map(|batch| pick(&batch.expect("a batch"))).take(if order { usize::MAX } else { steps }).collect()
    };
    (columns(split.train, false), columns(split.test, true))
}

fn outputs(model: &Model) -> Vec<String> {
    model.proto.graph.iter().flat_map(|g| &g.output).map(|o| o.name.clone()).collect()
}

fn inputs(model: &Model) -> Vec<String> {
    model.proto.graph.iter().flat_map(|g| &g.input).map(|i| i.name.clone()).collect()
}

/// All that the step is fed and reads, and all that it returns and leaves.
fn observed(case: &mut Case, batch: &[(&str, Literal)]) -> (Vec<(String, Literal)>, BTreeMap<String, Literal>) {
    let read = inputs(&case.step);
    let before = case.training.residents().into_iter().filter(|(name, _)| read.contains(name));
    let fed = case.training.fed(batch).into_iter().chain(before).collect();
    let mut returned = case.training.step(batch);
    returned.extend(case.training.residents().into_iter().map(|(name, value)| (format!("{name}.new"), value)));
    (fed, returned)
}

fn follow(network: Network, policy: &Policy, tolerance: f64) {
    let mut case = case(network, policy);
    let names = outputs(&case.step);
    let (batches, _) = data(20);
    let (runs, expected): (Vec<_>, Vec<_>) = batches.iter().map(|batch| observed(&mut case, batch)).unzip();
    let types: Vec<Type> = names.iter().map(|name| expected[0][name].ty().clone()).collect();
    let job = Job { name: "step".to_owned(), model: &case.step, runs, outputs: types, only_last: false };
    let Some(mut answers) = run(&[job]) else { return };
    let found = answers.remove(0).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(found.len(), 20);
    let mut worst: BTreeMap<&str, f64> = BTreeMap::new();
    for (found, expected) in found.iter().zip(&expected) {
        for (name, found) in names.iter().zip(found) {
            let away = distance(found, &expected[name]);
            assert!(!away.is_nan(), "{name} is not a number");
            let most = worst.entry(name).or_default();
            *most = most.max(away);
        }
    }
    let far: Vec<_> = worst.iter().filter(|(_, away)| **away > tolerance).collect();
    assert!(far.is_empty(), "after a step from the same state: {far:?}");
    println!("{} outputs, the worst off by {:.1e}", names.len(), worst.values().copied().fold(0.0, f64::max));
}

#[test]
fn each_of_20_steps_of_a_perceptron_is_the_cpus() {
    follow(perceptron, &Policy::f32(), 1e-5);
}

#[test]
fn each_of_20_steps_of_a_convolutional_network_with_batch_norm_is_the_cpus() {
    follow(convolutional, &Policy::f32(), 1e-5);
}

#[test]
fn each_of_20_steps_of_a_llama_block_is_the_cpus() {
    follow(llama, &Policy::f32(), 1e-5);
}

#[test]
fn each_of_20_steps_of_a_loop_over_layers_is_the_cpus() {
    let loops = case(stacked, &Policy::f32()).step.proto.graph.into_iter().flat_map(|graph| graph.node);
    assert_eq!(loops.filter(|node| node.op_type == "Scan").count(), 2);
    follow(stacked, &Policy::f32(), 1e-5);
}

/// A half-precision number may round to its other neighbour where a sum before it was added in another order.
#[test]
fn each_of_20_steps_in_half_precision_is_the_cpus_but_for_roundings() {
    for name in ["bf16", "f16-engine"] {
        follow(perceptron, &Policy::named(name).expect("a policy"), 1e-3);
    }
}

#[test]
fn the_state_starts_as_the_cpus() {
    let case = case(llama, &Policy::f32());
    let key = Literal::from_i64(Type::new(U32, [4]), &[0; 4]);
    let expected: Vec<Literal> = {
        let store = case.training.residents();
        outputs(&case.init).iter().map(|name| store[name.strip_suffix(".new").expect("an update")].clone()).collect()
    };
    let outputs = expected.iter().map(|l| l.ty().clone()).collect();
    let runs = vec![vec![("key".to_owned(), key)]];
    let job = Job { name: "init".to_owned(), model: &case.init, runs, outputs, only_last: false };
    let Some(mut answers) = run(&[job]) else { return };
    let found = answers.remove(0).unwrap_or_else(|why| panic!("{why}")).remove(0);
    assert_eq!(found.len(), case.training.residents().len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(distance(found, expected) <= 1e-6);
    }
}

fn mean(accuracies: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = accuracies.collect();
    100.0 * all.iter().sum::<f64>() / all.len() as f64
}

/// Trains both from one state on the same batches, and compares what they have learnt.
fn learn(network: Network) {
    let mut case = case(network, &Policy::f32());
    let (batches, held_back) = data(300);
    assert_eq!(batches.len(), 300);
    let read = inputs(&case.step);
    let start = case.training.residents().into_iter().filter(|(name, _)| read.contains(name));
    let mut runs: Vec<Vec<(String, Literal)>> = Vec::new();
    let start: Vec<_> = start.collect();
    let mut returned = BTreeMap::new();
    for batch in &batches {
        runs.push(case.training.fed(batch));
        returned = case.training.step(batch);
    }
    runs[0].extend(start);
    returned.extend(case.training.residents().into_iter().map(|(name, value)| (format!("{name}.new"), value)));
    let names = outputs(&case.step);
    let types: Vec<Type> = names.iter().map(|name| returned[name].ty().clone()).collect();
    let job = Job { name: "steps".to_owned(), model: &case.step, runs, outputs: types, only_last: true };
    let Some(mut answers) = run(&[job]) else { return };
    let trained = answers.remove(0).unwrap_or_else(|why| panic!("{why}")).remove(0);

    let read = inputs(&case.eval);
    let weights = names.iter().zip(trained).filter_map(|(name, value)| Some((name.strip_suffix(".new")?, value)));
    let weights = weights.filter(|(name, _)| read.iter().any(|n| n == name)).map(|(name, v)| (name.to_owned(), v));
    let mut runs: Vec<Vec<(String, Literal)>> = held_back
        .iter()
        .map(|batch| batch.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        .collect();
    runs[0].extend(weights);
    let ours: Vec<BTreeMap<String, Literal>> = held_back.iter().map(|batch| case.training.eval(batch)).collect();
    let names = outputs(&case.eval);
    let types = names.iter().map(|name| ours[0][name].ty().clone()).collect();
    let job = Job { name: "eval".to_owned(), model: &case.eval, runs, outputs: types, only_last: false };
    let theirs = run(&[job]).expect("as before").remove(0).unwrap_or_else(|why| panic!("{why}"));
    let at = names.iter().position(|name| name == "accuracy").expect("it is reported");
    let theirs = mean(theirs.iter().map(|results| results[at].to_f64()[0]));
    let ours = mean(ours.iter().map(|results| results["accuracy"].to_f64()[0]));
    println!("{ours:.2} % on the CPU, {theirs:.2} % in onnxruntime");
    assert!(ours > 75.0, "it has not learnt: {ours} %");
    assert!((ours - theirs).abs() <= 0.5, "{ours} % on the CPU, {theirs} % in onnxruntime");
}

#[test]
fn after_300_steps_a_perceptron_knows_as_much_as_the_cpus() {
    learn(perceptron);
}

#[test]
fn after_300_steps_a_convolutional_network_knows_as_much_as_the_cpus() {
    learn(convolutional);
}

#[test]
fn after_300_steps_a_llama_block_knows_as_much_as_the_cpus() {
    learn(llama);
}
