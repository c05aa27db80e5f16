//! Language models of published shapes, made small: losses, logits and gradients against PyTorch's.

use backfit::models::Llama;
use backfit::prelude::Rotary;
use backfit_cpu::Cpu;
use backfit_grad::gradients;
use backfit_ir::{DType, Graph, Literal, Role, Taps, Tensor};
use backfit_suites::compare::{distance, on_cpu};
use backfit_suites::oracle::file::{folder, literal};
use safetensors::SafeTensors;
use std::collections::BTreeMap;

/// The shape of a published model with the oracle's sizes: what else it is stays.
fn stories() -> Llama {
    Llama {
        vocabulary: 13,
        layers: 2,
        width: 16,
        hidden: 24,
        heads: 4,
        kv_heads: 4,
        head_width: 4,
        ..Llama::stories110m()
    }
}

fn qwen3() -> Llama {
    Llama {
        vocabulary: 13,
        layers: 3,
        width: 12,
        hidden: 20,
        heads: 4,
        kv_heads: 2,
        head_width: 6,
        ..Llama::qwen3_0_6b()
    }
}

/// The tensors of a model, numbers as f32.
fn tensors(model: &str) -> BTreeMap<String, Literal> {
    let bytes = std::fs::read(folder().join("language_models.safetensors")).expect("the language models of the oracle");
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let narrow = |value: Literal| match value.ty().dtype.is_float() {
        true => Literal::from_f64(value.ty().with_dtype(DType::F32), &value.to_f64()),
        false => value,
    };
    let own = |key: &str| Some((key.strip_prefix(model)?.strip_prefix('/')?.to_owned(), narrow(literal(&file, key))));
    file.names().into_iter().filter_map(own).collect()
}

/// What the oracle has under `prefix` for a weight; for one of a stack, that of all its layers.
fn of_weight(oracle: &BTreeMap<String, Literal>, prefix: &str, name: &str, layers: usize) -> Literal {
    let Some(rest) = name.strip_prefix("blocks.block.") else { return oracle[&format!("{prefix}/{name}")].clone() };
    let each: Vec<&Literal> = (0..layers).map(|i| &oracle[&format!("{prefix}/block{i}.{rest}")]).collect();
    let dims = [&[layers], each[0].ty().shape.dims()].concat();
    let bytes: Vec<u8> = each.iter().flat_map(|l| l.bytes()).copied().collect();
    Literal::from_bytes(each[0].ty().with_shape(dims), bytes).expect("layers of one shape")
}

fn compare(name: &str, model: &Llama) {
    let oracle = tensors(name);
    let g = Graph::new();
    let [x, y] =
        ["x", "y"].map(|input| g.parameter(input, oracle[&format!("input/{input}")].ty().clone(), Role::Input, None));
    let logits = model.apply(&g, &x);
    let loss = logits.cross_entropy(&y);
    let params = g.inspect(|f| f.params.clone());
    let weights: Vec<(String, Tensor)> =
        params.iter().filter(|p| p.init.is_some()).map(|p| (p.name.clone(), g.tensor(p.value))).collect();
    let found = gradients(&loss, &weights.iter().map(|(_, t)| t).collect::<Vec<_>>()).unwrap();
    g.result("loss", &loss);
    g.result("logits", &logits);
    weights.iter().zip(&found).for_each(|((name, _), gradient)| g.result(&format!("grad/{name}"), gradient));
    let module = g.finish().unwrap_or_else(|e| panic!("{e}"));
    let argument = |name: &str| match name {
        "x" | "y" => oracle[&format!("input/{name}")].clone(),
        weight => of_weight(&oracle, "param", weight, model.layers),
    };
    let arguments: Vec<Literal> = params.iter().map(|p| argument(&p.name)).collect();
    let found = on_cpu(&Cpu::default().threads(1), &module, &arguments).unwrap();
    let mut expected = vec![oracle["loss"].clone(), oracle["logits"].clone()];
    expected.extend(weights.iter().map(|(weight, _)| of_weight(&oracle, "grad", weight, model.layers)));
    let names = ["loss", "logits"].into_iter().chain(weights.iter().map(|(name, _)| name.as_str()));
    for ((found, expected), what) in found.iter().zip(&expected).zip(names) {
        assert_eq!(found.ty(), expected.ty(), "{name}: {what}");
        let off = distance(found, expected);
        assert!(off <= 1e-5, "{name}: {what} is off by {off:e}");
    }
}

#[test]
fn models_shaped_like_stories110m_and_qwen3_compute_what_pytorch_does() {
    assert_eq!(stories().rotary, Rotary { base: 1e4, interleaved: true, offset: 0 });
    assert_eq!(qwen3().rotary, Rotary { base: 1e6, interleaved: false, offset: 0 });
    compare("stories", &stories());
    compare("qwen3", &qwen3());
}

#[test]
fn the_same_models_as_loops_over_layers_compute_what_pytorch_does() {
    for taps in [Taps::All, Taps::Inputs] {
        compare("stories", &Llama { stack: Some(taps.clone()), ..stories() });
        compare("qwen3", &Llama { stack: Some(taps), ..qwen3() });
    }
}
