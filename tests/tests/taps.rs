//! What functions keep for their backward pass: the same bits, fewer bytes, and programs that do not grow with depth.

use backfit::ir::Op;
use backfit::ir::ops::scan::Scan;
use backfit::prelude::*;
use backfit_cpu::Cpu;
use backfit_grad::{TrainModule, gradients};
use backfit_suites::compare::{distance, on_cpu};
use backfit_suites::training::Training;
use std::collections::{BTreeMap, HashSet};

const WIDTH: usize = 32;
const LENGTH: usize = 16;
const BATCH: usize = 4;

/// A network of equal blocks; each keeps what the policy says.
fn network(layers: usize, taps: Taps, rate: f64) -> TrainStep {
    let g = Graph::new();
    let tokens = g.input("tokens", I32, [BATCH, LENGTH]);
    let next = g.input("next", I32, [BATCH, LENGTH]);
    let x = nn::embedding(&g, "tokens", &tokens, 17, WIDTH);
    let x = nn::Stack::new("layers", layers).taps(taps).apply(&g, &x, |g, x, _| {
        let block = nn::TransformerBlock::new("block", 4, 48).causal(true).gated().kv_heads(2);
        block.rotary(Rotary::default()).dropout(rate).apply(g, x)
    });
    let logits = nn::linear(&g, "head", &nn::rms_norm(&g, "norm", &x), 17);
    TrainStep::new(&logits.cross_entropy(&next)).optimizer(AdamW::new(1e-2)).clip(Clip::GlobalNorm(1.0))
}

fn batch(step: i32) -> [(&'static str, Literal); 2] {
    let ids =
        |offset: i32| (0..(BATCH * LENGTH) as i32).map(|i| ((i * i + offset + step) % 17).abs()).collect::<Vec<_>>();
    [("tokens", Literal::from_i32([BATCH, LENGTH], &ids(0))), ("next", Literal::from_i32([BATCH, LENGTH], &ids(1)))]
}

fn trained(model: TrainModule) -> BTreeMap<String, Literal> {
    let mut training = Training::new(model, &Cpu::default().threads(2)).unwrap();
    let losses: Vec<f64> = (0..4).map(|step| training.step(&batch(step))["loss"].to_f64()[0]).collect();
    assert!(losses[3] < losses[0], "{losses:?}");
    training.residents().into_iter().collect()
}

fn arena(model: &TrainModule) -> (usize, usize) {
    let training = Training::new(model.clone(), &Cpu::default().threads(1)).unwrap();
    let step = training.report();
    (step.plan.arena_bytes, step.instructions.len())
}

#[test]
fn every_policy_trains_to_the_same_bits() {
    let all = network(3, Taps::All, 0.1).build().unwrap();
    let kept = all.taps.iter().find(|t| t.function == "layers").unwrap().bytes();
    let expected = trained(all);
    let named = Taps::Named(vec!["attn".to_owned(), "norm2".to_owned()]);
    let budgets = [2, 3, 6].map(|part| Taps::Budget(3 * kept / part));
    for taps in [Taps::Inputs, named].into_iter().chain(budgets) {
        let model = network(3, taps.clone(), 0.1).build().unwrap();
        let report = model.taps.iter().find(|t| t.function == "layers").unwrap();
        assert!(report.bytes() < kept && !report.recomputed.is_empty(), "{taps:?} keeps {} of {kept}", report.bytes());
        if let Taps::Budget(bytes) = taps {
            assert!(report.bytes() <= bytes / 3, "{taps:?} keeps {}", report.bytes());
        }
        assert!(trained(model) == expected, "{taps:?}");
    }
}

#[test]
fn taps_packed_into_one_tensor_train_to_the_same_bits() {
    for taps in [Taps::All, Taps::Named(vec!["attn".to_owned()])] {
        let model = network(3, taps, 0.0).build().unwrap();
        let expected = trained(model.clone());
        let cpu = Cpu::default().threads(2).without_loops().with_packed_results();
        let mut training = Training::new(model, &cpu).unwrap();
        let decomposed = training.stages().iter().find(|stage| stage.name == "decompose").unwrap();
        let functions = &decomposed.module.functions;
        let mut called = 0;
        for node in functions.iter().flat_map(|f| &f.nodes) {
            if let Op::Call(callee) = node.op {
                // One for floats, and one for the bools of the causal mask.
                let callee = &functions[callee.index()];
                let dtypes: HashSet<DType> = callee.results.iter().map(|r| callee.ty(r.value).dtype).collect();
                assert_eq!(dtypes.len(), callee.results.len());
                called += 1;
            }
        }
        assert!(called > 9, "{called}");
        assert!(decomposed.notes.iter().any(|note| note.contains("y at 0, stacked residual 0 at 2048")));
        (0..4).for_each(|step| _ = training.step(&batch(step)));
        let found: BTreeMap<String, Literal> = training.residents().into_iter().collect();
        assert!(found == expected);
    }
}

#[test]
fn less_is_kept_with_a_smaller_budget_and_an_impossible_one_is_refused_with_the_least() {
    let layers =
        |taps| network(3, taps, 0.0).build().map(|m| m.taps.into_iter().find(|t| t.function == "layers").unwrap());
    let all = layers(Taps::All).unwrap();
    let inputs = layers(Taps::Inputs).unwrap();
    assert_eq!(inputs.bytes(), (BATCH * LENGTH * WIDTH * 4) as u64);
    assert_eq!(all.extra_flops, 0);
    let mut flops = u64::MAX;
    for bytes in [inputs.bytes(), 2 * inputs.bytes(), 4 * inputs.bytes(), all.bytes()] {
        let found = layers(Taps::Budget(3 * bytes)).unwrap();
        assert!(found.bytes() <= bytes && found.extra_flops <= flops);
        flops = found.extra_flops;
    }
    assert_eq!(flops, 0);
    let error = layers(Taps::Budget(3 * (inputs.bytes() - 1))).unwrap_err().to_string();
    assert!(error.contains(&format!("at least {} bytes", inputs.bytes())), "{error}");
}

#[test]
fn programs_do_not_grow_with_depth_and_memory_by_one_layer_input_a_layer() {
    let depths = [4, 16, 64];
    let found = depths.map(|layers| {
        let model = network(layers, Taps::Inputs, 0.0).build().unwrap();
        let gradients: usize = model
            .residents
            .iter()
            .filter(|r| r.name.starts_with("layers.") && matches!(r.role, backfit::ir::Role::Weight { .. }))
            .map(|r| r.ty.bytes())
            .sum();
        let (arena, instructions) = arena(&model);
        (arena - gradients, instructions)
    });
    assert!(found.iter().all(|(_, instructions)| *instructions == found[0].1), "{found:?}");
    let input = BATCH * LENGTH * WIDTH * 4;
    for pair in [0, 1] {
        let grown = found[pair + 1].0 - found[pair].0;
        assert_eq!(grown, (depths[pair + 1] - depths[pair]) * input, "{found:?}");
    }
}

#[test]
fn layers_that_differ_are_functions_that_are_called_and_train_as_layers_written_out() {
    let model = |stacked: bool| {
        let g = Graph::new();
        let x = g.input("tokens", I32, [BATCH, LENGTH]);
        let next = g.input("next", I32, [BATCH, LENGTH]);
        let h = nn::embedding(&g, "tokens", &x, 17, WIDTH);
        let ones = |g: &Graph, x: &Tensor, layer: usize| {
            let h = nn::Linear::new("fc", WIDTH).init(Init::Constant(0.01)).apply(g, x);
            if layer.is_multiple_of(2) { x + &h.tanh() } else { x + &h.sigmoid() }
        };
        let h = if stacked {
            nn::Stack::new("layers", 4).apply(&g, &h, ones)
        } else {
            (0..4).fold(h, |h, layer| g.scope(&format!("layers.{layer}"), || ones(&g, &h, layer)))
        };
        let loss = nn::linear(&g, "head", &h, 17).cross_entropy(&next);
        TrainStep::new(&loss).optimizer(Sgd::new(0.5)).build().unwrap()
    };
    let (stacked, written) = (model(true), model(false));
    let functions =
        |m: &TrainModule| m.module.functions.iter().filter(|f| f.name == "layers" || f.name == "layers.1").count();
    assert_eq!((functions(&stacked), functions(&written)), (2, 0));
    assert!(trained(stacked) == trained(written));
}

#[test]
fn a_stack_builds_every_layer_once_and_updates_what_each_layer_keeps() {
    for rate in [0.0, 0.2] {
        let g = Graph::new();
        let x = g.input("x", F32, [BATCH, WIDTH]);
        let mut built = Vec::new();
        let h = nn::Stack::new("layers", 3).apply(&g, &x, |g, x, layer| {
            built.push(layer);
            let h = nn::BatchNorm::new("bn").apply(g, &nn::linear(g, "fc", x, WIDTH));
            nn::dropout(&h, rate).tanh()
        });
        assert_eq!(built, [0, 1, 2]);
        let model = TrainStep::new(&(&h * &h).mean_all()).optimizer(Sgd::new(0.1)).build().unwrap();
        let scan = model.module.functions.iter().find(|f| f.name == "layers").unwrap();
        assert_eq!(scan.params.iter().any(|p| p.name == backfit::ir::RNG_KEY), rate > 0.0);
        let mut training = Training::new(model, &Cpu::default().threads(1)).unwrap();
        let before: BTreeMap<String, Literal> = training.residents().into_iter().collect();
        let values: Vec<f32> = (0..BATCH * WIDTH).map(|i| (i * i % 23) as f32 - 11.0).collect();
        training.step(&[("x", Literal::from_f32([BATCH, WIDTH], &values))]);
        let after: BTreeMap<String, Literal> = training.residents().into_iter().collect();
        for name in ["layers.bn.running_mean", "layers.bn.running_var", "layers.fc.weight", "layers.bn.weight"] {
            let layers = |all: &BTreeMap<String, Literal>| all[name].to_f64();
            let (old, new) = (layers(&before), layers(&after));
            let moved = old.chunks(old.len() / 3).zip(new.chunks(old.len() / 3)).all(|(old, new)| old != new);
            assert!(moved, "{name} of some layer stayed");
        }
    }
}

#[test]
fn an_unknown_scope_is_refused_with_those_that_there_are() {
    let error = network(2, Taps::Named(vec!["atn".to_owned()]), 0.0).build().err().unwrap().to_string();
    assert!(error.contains("no such scope") && error.contains("attn"), "{error}");
}

/// The gradient, and the gradient of its square, of a loop over a function that itself has a loop and calls.
fn nested(taps: [Taps; 3]) -> Vec<Literal> {
    let g = Graph::new();
    let [inner, middle, outer] = taps;
    let body = |name: &str, taps: Taps, build: &dyn Fn(&Graph, &Tensor, &Tensor) -> Tensor| {
        let f = g.function(name);
        f.taps(taps);
        let (x, w) = (f.input("x", F64, [3, 3]), f.input("w", F64, [3, 3]));
        f.result("y", &build(&f, &x, &w));
        g.define(f).unwrap()
    };
    let looped = |body, reverse| Scan { body, carries: 1, constants: 1, trip_count: 2, reverse };
    let step = body("inner", inner, &|_, x, w| x + &x.matmul(w).tanh().softmax(1));
    let call = body("middle", middle, &|f, x, w| f.scan(looped(step, true), &[x], &[w], &[]).remove(0).sigmoid());
    let all = body("outer", outer, &|f, x, w| f.call(call, &[&f.call(call, &[x, w])[0].exp(), w])[0].clone());
    let x = g.input("x", F64, [3, 3]);
    let w = g.input("w", F64, [3, 3]);
    let loss = g.scan(looped(all, false), &[&x], &[&w], &[]).remove(0).square().sum_all();
    let first = gradients(&loss, &[&x, &w]).unwrap();
    let second = gradients(&(first[0].square().sum_all() + first[1].square().sum_all()), &[&x, &w]).unwrap();
    first.iter().chain(&second).enumerate().for_each(|(i, t)| g.result(&format!("y{i}"), t));
    let values = |seed: usize| (0..9).map(|i| ((i * 7 + seed) as f64 * 0.37).sin() * 0.5).collect::<Vec<_>>();
    let inputs = [1, 2].map(|seed| Literal::from_f64(Type::new(F64, [3, 3]), &values(seed)));
    let module = g.finish().unwrap();
    on_cpu(&Cpu::default().threads(1).keep_subnormals(), &module, &inputs).unwrap()
}

#[test]
fn derivatives_through_nested_functions_and_loops_have_the_same_bits_and_second_ones_agree() {
    let kept = nested([Taps::All, Taps::All, Taps::All]);
    assert!(kept.iter().all(|l| l.to_f64().iter().all(|v| v.is_finite() && *v != 0.0)));
    for taps in [
        [Taps::Inputs, Taps::All, Taps::All],
        [Taps::All, Taps::Inputs, Taps::All],
        [Taps::All, Taps::All, Taps::Inputs],
        [Taps::Inputs, Taps::Inputs, Taps::Inputs],
        [Taps::Budget(220), Taps::Inputs, Taps::Budget(300)],
    ] {
        let found = nested(taps.clone());
        assert!(found[..2] == kept[..2], "{taps:?}");
        // A second derivative adds what reaches a value through kept and recomputed values, in an order of its own.
        for (second, expected) in found[2..].iter().zip(&kept[2..]) {
            assert!(distance(second, expected) < 1e-13, "{taps:?}");
        }
    }
}
