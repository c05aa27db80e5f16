//! Low-rank adaptation: what is frozen stays, what is merged is the same.

use backfit::precision::Masters;
use backfit::prelude::*;
use backfit::{Adapters, Checkpoint};
use std::collections::BTreeMap;

const ROWS: usize = 4;

/// Two blocks of attention and a head, with or without adapters.
fn trainer(lora: Option<&Lora>) -> (Trainer, Option<Adapters>) {
    let g = Graph::new();
    let x = g.input("x", F32, [ROWS, 3, 8]);
    let h = nn::transformer_block(&g, "block0", &x, 2, 16);
    let h = nn::transformer_block(&g, "block1", &h, 2, 16);
    let y = nn::linear(&g, "head", &h.mean(&[1]).reshape([ROWS, 8]), 5);
    let loss = y.mse(&g.input("y", F32, [ROWS, 5]));
    let adapters = lora.map(|lora| lora.attach(&g).unwrap_or_else(|error| panic!("{error}")));
    let model = TrainStep::new(&loss).optimizer(Adam::new(0.02)).predict(&y).build().unwrap();
    (Trainer::new(model.compile(&Cpu::default().threads(1)).unwrap()).seed(9).unwrap(), adapters)
}

fn lora() -> Lora {
    Lora::new("block?.attn.?.weight", 2).alpha(6.0)
}

fn data() -> Dataset {
    let numbers =
        |n: usize, scale: f32| (0..n).map(|i| ((i * 37 % 101) as f32 / 50.0 - 1.0) * scale).collect::<Vec<_>>();
    let x = Literal::from_f32([ROWS, 3, 8], &numbers(ROWS * 24, 1.0));
    Dataset::new([("x", x), ("y", Literal::from_f32([ROWS, 5], &numbers(ROWS * 5, 2.0)))]).unwrap()
}

/// Weights of the model without adapters.
fn base(trainer: &Trainer) -> BTreeMap<String, Literal> {
    let names = trainer.residents().iter().map(|p| p.name.clone());
    let names = names.filter(|n| !n.starts_with("optimizer.") && !n.contains("lora_"));
    names.map(|n| (n.clone(), trainer.get(&n).unwrap())).collect()
}

/// The adapted model with the weights of the other.
fn adapted() -> (Trainer, Trainer, Adapters) {
    let (mut plain, _) = trainer(None);
    let (mut tuned, adapters) = trainer(Some(&lora()));
    for (name, value) in base(&plain) {
        tuned.set(&name, &value).unwrap();
    }
    let predicted = [plain.predict(&data()).unwrap(), tuned.predict(&data()).unwrap()];
    assert_eq!(predicted[0], predicted[1], "before training it is the base model");
    (plain, tuned, adapters.unwrap())
}

fn trained() -> (Trainer, Trainer, Adapters, f64) {
    let (plain, mut tuned, adapters) = adapted();
    let mut losses = Vec::new();
    for batch in data().batches(ROWS).epochs(40) {
        losses.push(tuned.step(&batch.unwrap()).unwrap()["loss"]);
    }
    (plain, tuned, adapters, losses[39] / losses[0])
}

#[test]
fn training_moves_the_factors_alone() {
    let (plain, tuned, adapters, fallen) = trained();
    assert!(fallen < 0.8, "the loss fell to {fallen} of what it was");
    // q, k, v and o of two blocks.
    assert_eq!(adapters.weights().len(), 8);
    assert_eq!(base(&tuned), base(&plain), "frozen weights keep every bit");
    let names: Vec<&str> = tuned.residents().iter().map(|p| p.name.as_str()).collect();
    for name in names.iter().filter(|name| name.starts_with("optimizer.")) {
        assert!(name.contains("lora_"), "{name} is of a frozen weight");
    }
    let moved = |name: &str| tuned.get(name).unwrap().to_f32().iter().any(|v| *v != 0.0);
    assert!(names.iter().filter(|n| n.ends_with("lora_b") && !n.starts_with("optimizer.")).all(|n| moved(n)));
}

#[test]
fn merged_weights_are_w_plus_s_b_a_and_predict_the_same_without_adapters() {
    let (mut plain, mut tuned, adapters, _) = trained();
    let file = std::env::temp_dir().join(format!("backfit-lora-{}.safetensors", std::process::id()));
    adapters.merged(&tuned).unwrap().save(&file).unwrap();
    let saved = Checkpoint::load(&file).unwrap();
    let values = |name: &str| tuned.get(name).unwrap().to_f64();
    for name in adapters.weights() {
        let stem = name.strip_suffix("weight").unwrap();
        let (w, a, b) = (values(name), values(&format!("{stem}lora_a")), values(&format!("{stem}lora_b")));
        for (i, found) in saved.tensors[name].to_f32().into_iter().enumerate() {
            let (row, column) = (i / 8, i % 8);
            let exact = w[i] + 3.0 * (b[row * 2] * a[column] + b[row * 2 + 1] * a[8 + column]);
            assert_eq!(found, exact as f32, "{name} {i}");
        }
    }
    let report = plain.load_weights(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(report.missing.is_empty() && report.unexpected.is_empty(), "{report:?}");
    let (found, expected) = (plain.predict(&data()).unwrap().to_f32(), tuned.predict(&data()).unwrap().to_f32());
    let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-5, "{far}");
    assert_ne!(found, trainer(None).0.predict(&data()).unwrap().to_f32());
}

#[test]
fn adapters_that_cannot_be_are_refused_with_a_reason() {
    let g = Graph::new();
    let table = nn::Embedding::new("tokens", 7, 4).table(&g);
    let h = table.embedding(&g.input("x", I32, [2]));
    let _ = nn::linear(&g, "fc", &h, 4).linear(&table, None);
    let cases = [
        (Lora::new("fc.weight", 0), "rank 0"),
        (Lora::new("fc.weight", 1).alpha(f64::NAN), "finite alpha"),
        (Lora::new("fd.weight", 1), "fc.weight, tokens.weight"),
        (Lora::new("tokens*", 1), "read by more"),
    ];
    for (lora, words) in cases {
        let error = lora.attach(&g).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(Lora::new("fc.*", 1).attach(&g).unwrap().weights(), ["fc.weight"]);
}

/// Three layers as a stack, equal or not, and a head; adapters of the layers' first weight, and of the head's.
fn stacked(lora: bool, mixed: bool, policy: &Policy) -> (Trainer, Vec<Adapters>) {
    let g = Graph::new();
    let mut adapters = Vec::new();
    let x = g.input("x", F32, [ROWS, 3, 8]);
    let h = nn::Stack::new("layers", 3).apply(&g, &x, |g, x, layer| {
        let h = nn::linear(g, "fc1", x, 16);
        let h = if mixed && layer == 1 { h.relu() } else { h.tanh() };
        let y = x + &nn::linear(g, "fc2", &h, 8);
        if lora {
            adapters = vec![Lora::new("fc1.*", 2).alpha(6.0).attach(g).unwrap()];
        }
        y
    });
    let y = nn::linear(&g, "head", &h.mean(&[1]).reshape([ROWS, 8]), 5);
    if lora {
        adapters.push(Lora::new("head.*", 1).attach(&g).unwrap());
    }
    let loss = y.mse(&g.input("y", F32, [ROWS, 5]));
    let model = TrainStep::new(&loss).optimizer(Adam::new(0.02)).predict(&y).build().unwrap();
    let compiled = model.compile_with(&Cpu::default().threads(1), policy).unwrap();
    (Trainer::new(compiled).seed(9).unwrap(), adapters)
}

#[test]
fn merged_adapters_of_stacks_predict_the_same_without_adapters_however_weights_are_stored() {
    let file = std::env::temp_dir().join(format!("backfit-lora-stack-{}.safetensors", std::process::id()));
    for (mixed, masters) in [(false, Masters::F32), (true, Masters::F32), (false, Masters::Compensated)] {
        let policy = Policy::f32().masters(masters);
        let (mut tuned, adapters) = stacked(true, mixed, &policy);
        let before = tuned.predict(&data()).unwrap().to_f32();
        for batch in data().batches(ROWS).epochs(20) {
            tuned.step(&batch.unwrap()).unwrap();
        }
        let expected = tuned.predict(&data()).unwrap().to_f32();
        assert_ne!(before, expected);
        // The adapters of the layers; those of the head are still there, and go on.
        let mut layers = adapters[0].merged(&tuned).unwrap();
        assert!(
            layers.tensors.keys().all(|name| !name.contains("fc1.lora")) && layers.tensors.contains_key("head.lora_a")
        );
        let head = adapters[1].merged(&tuned).unwrap();
        assert!(head.tensors.keys().any(|name| name.contains("fc1.lora")));
        layers.tensors.retain(|name, _| !name.contains("lora"));
        layers.tensors.insert("head.weight".to_owned(), head.tensors["head.weight"].clone());
        layers.save(&file).unwrap();
        let (mut plain, _) = stacked(false, mixed, &Policy::f32());
        let report = plain.load_weights(&file).unwrap();
        assert!(report.missing.is_empty() && report.unexpected.is_empty(), "{report:?}");
        let found = plain.predict(&data()).unwrap().to_f32();
        let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-5, "{far} {mixed} {masters:?}");
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn adapters_of_a_stack_are_attached_to_its_layer() {
    let g = Graph::new();
    let x = g.input("x", F32, [ROWS, 3, 8]);
    let y = nn::Stack::new("layers", 3).apply(&g, &x, |g, x, _| {
        let y = nn::transformer_block(g, "block", x, 2, 16);
        Lora::new("*.attn.q.weight", 2).attach(g).unwrap();
        y
    });
    let model = TrainStep::new(&y.mean_all()).optimizer(Sgd::new(0.1)).build().unwrap();
    let trainer = Trainer::new(model.compile(&Cpu::default().threads(1)).unwrap());
    assert_eq!(trainer.get("layers.block.attn.q.lora_b").unwrap().ty().to_string(), "f32[3,8,2]");
}

/// Three layers in a scope, of which one is adapted; all weights but its own are trained, too, and averaged.
fn averaged(lora: bool) -> (Trainer, Option<Adapters>) {
    let g = Graph::new();
    let mut adapters = None;
    let x = g.input("x", F32, [ROWS, 3, 8]);
    let h = g.scope("encoder", || {
        nn::Stack::new("main", 3).apply(&g, &x, |g, x, layer| {
            let h = nn::linear(g, "fc", x, 8);
            let y = x + &(if layer == 1 { h.silu() } else { h.tanh() });
            if lora && layer == 1 {
                adapters = Some(Lora::new("fc.*", 2).alpha(3.0).attach(g).unwrap());
            }
            y
        })
    });
    let y = nn::linear(&g, "head", &h.mean(&[1]).reshape([ROWS, 8]), 5);
    let loss = y.mse(&g.input("y", F32, [ROWS, 5]));
    let model = TrainStep::new(&loss).optimizer(Adam::new(0.02)).ema(0.7).predict(&y).build().unwrap();
    (Trainer::new(model.compile(&Cpu::default().threads(1)).unwrap()).seed(9).unwrap(), adapters)
}

#[test]
fn merged_weights_are_averages_where_prediction_uses_them_and_those_of_one_layer_where_one_is_adapted() {
    let (mut tuned, adapters) = averaged(true);
    for batch in data().batches(ROWS).epochs(20) {
        tuned.step(&batch.unwrap()).unwrap();
    }
    let read = |name: &str| tuned.get(name).unwrap().to_f64();
    let [w, a, b] = [
        "encoder.main.1.fc.weight",
        "optimizer.ema.encoder.main.1.fc.lora_a",
        "optimizer.ema.encoder.main.1.fc.lora_b",
    ]
    .map(read);
    let head = tuned.get("optimizer.ema.head.weight").unwrap();
    assert_ne!(head, tuned.get("head.weight").unwrap());
    tuned.use_averages(true).unwrap();
    let expected = tuned.predict(&data()).unwrap().to_f32();
    let merged = adapters.unwrap().merged(&tuned).unwrap();
    for (i, found) in merged.tensors["encoder.main.1.fc.weight"].to_f32().into_iter().enumerate() {
        let (row, column) = (i / 8, i % 8);
        let exact = w[i] + 1.5 * (b[row * 2] * a[column] + b[row * 2 + 1] * a[8 + column]);
        assert_eq!(found, exact as f32, "{i}");
    }
    assert_eq!(merged.tensors["head.weight"], head);
    let (mut plain, _) = averaged(false);
    for (name, value) in &merged.tensors {
        plain.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let found = plain.predict(&data()).unwrap().to_f32();
    let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-5, "{far}");
}

#[test]
fn adapters_are_not_merged_with_a_trainer_that_lacks_their_weights_or_factors() {
    let (_, layers) = stacked(true, false, &Policy::f32());
    let others = [trainer(None).0, stacked(false, false, &Policy::f32()).0, averaged(true).0];
    for other in others {
        for adapters in &layers {
            let error = adapters.merged(&other).unwrap_err().to_string();
            assert!(error.contains(&format!("'{}'", adapters.weights()[0])), "{error}");
        }
    }
}
