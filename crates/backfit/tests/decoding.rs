//! Decoding with kept keys and values is the same as computing everything anew for every token.

use backfit::Checkpoint;
use backfit::models::{Decoder, Llama, sample};
use backfit::precision::Masters;
use backfit::prelude::*;

const LENGTH: usize = 12;
const VOCABULARY: usize = 11;

/// A trainer of this model, whose head is sharpened so that no two logits are nearly equal.
fn trainer(model: &Llama) -> Trainer {
    let mut trainer = untrained(model, &Policy::f32());
    let names: Vec<String> = trainer.residents().iter().map(|p| p.name.clone()).collect();
    for name in names.iter().filter(|name| name.ends_with("weight") && !name.contains("norm")) {
        let old = trainer.get(name).unwrap();
        let larger: Vec<f32> = old.to_f32().iter().map(|v| v * 12.0).collect();
        trainer.set(name, &Literal::from_f32(old.ty().shape.clone(), &larger)).unwrap();
    }
    trainer
}

fn untrained(model: &Llama, policy: &Policy) -> Trainer {
    let g = Graph::new();
    let tokens = g.input("x", I32, [1, LENGTH]);
    let logits = model.apply(&g, &tokens);
    let loss = logits.cross_entropy(&g.input("y", I32, [1, LENGTH]));
    let program = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).ema(0.5).predict(&logits).build().unwrap();
    Trainer::new(program.compile_with(&Cpu::default().threads(1), policy).unwrap()).seed(5).unwrap()
}

/// The logits after every token, from a run over the whole text, which is filled up by zeros.
fn recomputed(trainer: &mut Trainer, text: &[i32]) -> Vec<Vec<f32>> {
    let mut tokens = text.to_vec();
    tokens.resize(LENGTH, 0);
    let data = Dataset::new([("x", Literal::from_i32([1, LENGTH], &tokens))]).unwrap();
    let all = trainer.predict(&data).unwrap().to_f32();
    all.chunks(VOCABULARY).take(text.len()).map(<[f32]>::to_vec).collect()
}

fn shapes() -> Vec<Llama> {
    let plain = Llama::new(VOCABULARY, 2, 16, 2);
    let interleaved = Llama { rotary: Rotary { interleaved: true, base: 500.0, offset: 0 }, ..plain.clone() };
    let qwen = Llama { kv_heads: 2, heads: 4, head_width: 6, head_norm: true, tied: false, ..plain.clone() };
    let stacked = Llama { stack: Some(Taps::Inputs), ..qwen.clone() };
    vec![plain, interleaved, qwen, stacked]
}

#[test]
fn greedy_decoding_gives_the_tokens_of_full_recomputation() {
    for model in shapes() {
        let mut trainer = trainer(&model);
        let mut decoder = Decoder::new(&model, LENGTH, &Cpu::default().threads(1)).unwrap();
        decoder.load(&trainer).unwrap();
        let mut text = vec![3];
        while text.len() < LENGTH {
            let logits = recomputed(&mut trainer, &text).pop().unwrap();
            text.push(sample(&logits, 0.0, 0.0));
        }
        let decoded = decoder.continued(&text[..1], LENGTH - 1, |logits| sample(logits, 0.0, 0.0)).unwrap();
        assert_eq!(decoded, text[1..]);
        assert!(decoded.windows(2).any(|pair| pair[0] != pair[1]), "a text of one token tells nothing: {decoded:?}");
    }
}

#[test]
fn logits_of_every_position_are_those_of_full_recomputation() {
    let text = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];
    for model in shapes() {
        let mut trainer = trainer(&model);
        let mut decoder = Decoder::new(&model, LENGTH, &Cpu::default().threads(1)).unwrap();
        decoder.load(&trainer).unwrap();
        // The second text meets the keys and values of the first, of which it must see nothing.
        for text in [text.to_vec(), text.iter().rev().copied().collect()] {
            decoder.restart();
            for (token, expected) in text.iter().zip(recomputed(&mut trainer, &text)) {
                let found = decoder.next(*token).unwrap();
                let scale = expected.iter().fold(1.0_f32, |m, v| m.max(v.abs()));
                let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(far <= 1e-5 * scale, "{far} of {scale}");
            }
        }
    }
}

#[test]
fn a_text_longer_than_the_context_goes_on_with_its_last_half() {
    let model = Llama::new(VOCABULARY, 1, 16, 2);
    let trainer = trainer(&model);
    let mut decoder = Decoder::new(&model, 6, &Cpu::default().threads(1)).unwrap();
    decoder.load(&trainer).unwrap();
    let text = decoder.continued(&[1, 2], 9, |logits| sample(logits, 0.0, 0.0)).unwrap();
    assert_eq!(text.len(), 9);
    // Six tokens are read: the two given ones and four that were written; the fifth is written after the sixth.
    let all = [[1, 2].as_slice(), &text].concat();
    decoder.restart();
    let mut last = 0;
    for token in &all[4..7] {
        last = sample(decoder.next(*token).unwrap(), 0.0, 0.0);
    }
    assert_eq!(last, all[7]);
}

#[test]
fn tokens_outside_the_vocabulary_and_texts_that_are_too_long_are_refused() {
    let model = Llama::new(VOCABULARY, 1, 16, 2);
    let mut decoder = Decoder::new(&model, 2, &Cpu::default().threads(1)).unwrap();
    for token in [-1, VOCABULARY as i32] {
        assert!(decoder.next(token).unwrap_err().to_string().contains("0..11"));
    }
    decoder.next(1).unwrap();
    decoder.next(1).unwrap();
    assert!(decoder.next(1).unwrap_err().to_string().contains("restart"));
    assert!(decoder.continued(&[], 3, |_| 0).is_err());
    assert!(Decoder::new(&model, 0, &Cpu::default()).is_err());
}

#[test]
fn a_decoder_takes_averages_and_weights_that_are_stored_as_bf16_as_prediction_does() {
    let model = Llama::new(VOCABULARY, 2, 16, 2);
    let text = Dataset::new(
        ["x", "y"].map(|name| (name, Literal::from_i32([1, LENGTH], &[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]))),
    );
    let batch = text.unwrap().batches(1).next().unwrap().unwrap();
    for masters in [Masters::F32, Masters::Stochastic, Masters::Compensated] {
        let mut trainer = untrained(&model, &Policy::f32().masters(masters));
        (0..3).for_each(|_| drop(trainer.step(&batch).unwrap()));
        for averaged in [false, true] {
            trainer.use_averages(averaged).unwrap();
            let expected = recomputed(&mut trainer, &[3, 1]);
            let mut decoder = Decoder::new(&model, LENGTH, &Cpu::default().threads(1)).unwrap();
            decoder.load(&trainer).unwrap();
            decoder.next(3).unwrap();
            let found = decoder.next(1).unwrap();
            let off = found.iter().zip(&expected[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-5, "{masters:?}, averaged {averaged}: off by {off}");
        }
    }
}

#[test]
fn a_decoder_takes_merged_adapters_and_refuses_those_that_are_not_merged() {
    let model = Llama::new(VOCABULARY, 2, 16, 2);
    let target = Cpu::default().threads(1);
    let g = Graph::new();
    let logits = model.apply(&g, &g.input("x", I32, [1, LENGTH]));
    let loss = logits.cross_entropy(&g.input("y", I32, [1, LENGTH]));
    let adapters = Lora::new("block?.attn.?.weight", 2).alpha(8.0).attach(&g).unwrap();
    let step = TrainStep::new(&loss).optimizer(Adam::new(0.05)).ema(0.5).predict(&logits).build().unwrap();
    let policy = Policy::f32().masters(Masters::Compensated);
    let mut trainer = Trainer::new(step.compile_with(&target, &policy).unwrap()).seed(5).unwrap();
    let text = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];
    let data = Dataset::new(["x", "y"].map(|name| (name, Literal::from_i32([1, LENGTH], &text)))).unwrap();
    data.batches(1).epochs(8).for_each(|batch| drop(trainer.step(&batch.unwrap()).unwrap()));
    let mut decoder = Decoder::new(&model, LENGTH, &target).unwrap();
    let before: Vec<f32> = decoder.next(3).unwrap().to_vec();
    let refused = decoder.load(&trainer).unwrap_err().to_string();
    assert!(refused.contains("lora_") && refused.contains("merge"), "{refused}");
    for averaged in [false, true] {
        trainer.use_averages(averaged).unwrap();
        decoder.load_weights(&adapters.merged(&trainer).unwrap()).unwrap();
        for (token, expected) in text.iter().zip(recomputed(&mut trainer, &text)) {
            let found = decoder.next(*token).unwrap();
            let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-5, "averaged {averaged}: off by {off}");
        }
    }
    // What is missing or unmerged changes nothing.
    decoder.restart();
    let kept: Vec<f32> = decoder.next(3).unwrap().to_vec();
    assert_ne!(kept, before);
    let mut checkpoint = adapters.merged(&trainer).unwrap();
    checkpoint.tensors.insert("block0.attn.q.lora_a".to_owned(), Literal::from_f32([2, 16], &[0.0; 32]));
    assert!(decoder.load_weights(&checkpoint).unwrap_err().to_string().contains("block0.attn.q.lora_a"));
    checkpoint.tensors.remove("block0.attn.q.lora_a");
    checkpoint.tensors.values_mut().for_each(|value| *value = Literal::zeros(value.ty().clone()));
    let last = checkpoint.tensors.keys().next_back().unwrap().clone();
    checkpoint.tensors.insert(last.clone(), Literal::from_f32([3], &[0.0; 3]));
    assert!(decoder.load_weights(&checkpoint).unwrap_err().to_string().contains(&last));
    checkpoint.tensors.remove(&last);
    assert!(decoder.load_weights(&checkpoint).unwrap_err().to_string().contains(&last));
    decoder.restart();
    assert_eq!(decoder.next(3).unwrap(), kept);
}

#[test]
fn a_decoder_takes_weights_from_a_saved_run_with_what_is_kept_beside_them() {
    let model = Llama::new(VOCABULARY, 1, 16, 2);
    let file = std::env::temp_dir().join(format!("backfit-decoder-{}.safetensors", std::process::id()));
    let mut trainer = untrained(&model, &Policy::f32().masters(Masters::Compensated));
    trainer.save(&file).unwrap();
    let mut decoder = Decoder::new(&model, LENGTH, &Cpu::default().threads(1)).unwrap();
    decoder.load_weights(&Checkpoint::load(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let expected = recomputed(&mut trainer, &[3]);
    let found = decoder.next(3).unwrap();
    let off = found.iter().zip(&expected[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-6, "off by {off}");
}

#[test]
fn layers_that_cannot_decode_token_by_token_are_told_with_the_line() {
    for (causal, masked, what) in [(true, false, ""), (false, false, "`.causal(true)`"), (true, true, "`.mask(…)`")] {
        let g = Graph::new();
        let x = g.input("x", F32, [1, 1, 8]);
        let mask = g.input("mask", F32, [1, 4]);
        let past = nn::Past { position: &g.input("position", I32, [0_usize; 0]), length: 4 };
        let layer = nn::MultiHeadAttention::new("attn", 2).causal(causal);
        let layer = if masked { layer.mask(&mask) } else { layer };
        let (decoded, line) = (layer.decode(&g, &x, past), line!());
        g.result("y", &decoded);
        match g.finish() {
            Ok(_) => assert_eq!(what, ""),
            Err(e) => {
                let (e, place) = (e.to_string(), format!("decoding.rs:{line}"));
                assert!(!what.is_empty() && e.contains(what) && e.contains(&place), "{e}");
            }
        }
    }
}
