//! Training steps of models shaped like Stories110M or Qwen3-0.6B on the words of a text:
//! `cargo run --release -p backfit --example published_shapes -- TEXT [qwen3] [bf16] [compact] [steps=20]`.
//!
//! Weights start at random. A word is the token that its hash names in the model's vocabulary. With `compact`, only tokens
//! that occur are trained; at the end their rows are scattered back into the large table.

use backfit::models::Llama;
use backfit::prelude::*;
use backfit::{Compaction, datasets::text::Windows};

const CONTEXT: usize = 256;

fn main() -> backfit::Result<()> {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    let steps = options.iter().find_map(|o| o.strip_prefix("steps=")?.parse().ok()).unwrap_or(20);
    let Some(text) = options.first().and_then(|path| std::fs::read_to_string(path).ok()) else {
        println!("name a text in UTF-8: published_shapes TEXT [qwen3] [bf16] [compact] [steps=20]");
        return Ok(());
    };
    let whole = if has("qwen3") { Llama::qwen3_0_6b() } else { Llama::stories110m() };
    let tokens = tokens(&text, whole.vocabulary);
    let used = Compaction::of(&tokens, whole.vocabulary)?;
    let vocabulary = if has("compact") { used.len() } else { whole.vocabulary };
    let windows = if has("compact") { used.windows(&tokens, CONTEXT)? } else { Windows::of(tokens, CONTEXT) };
    let model = Llama { vocabulary, stack: Some(Taps::Inputs), ..whole.clone() };
    println!("{} weights, {vocabulary} of {} tokens", model.parameters(), whole.vocabulary);

    let mut trainer = trainer(&model, &if has("bf16") { Policy::bf16() } else { Policy::f32() })?;
    let memory = trainer.executable().memory();
    println!(
        "planned: {:.2} GB, {:.2} of them resident",
        gigabytes(memory.total_bytes),
        gigabytes(memory.resident_bytes)
    );
    println!("a uniform guess has the loss {:.3}", (vocabulary as f64).ln());
    for batch in windows.every(CONTEXT).batches(1).epochs(u64::MAX).take(steps) {
        let out = trainer.step(&batch?)?;
        println!("step {}: loss {:.3}", out.step(), out["loss"]);
    }
    if has("compact") {
        let table = Literal::zeros(Type::new(F32, [whole.vocabulary, whole.width]));
        let table = used.scatter(&trainer.get("tokens.weight")?, &table)?;
        println!("the trained rows are back in the table {}", table.ty());
    }
    Ok(())
}

fn trainer(model: &Llama, precision: &Policy) -> backfit::Result<Trainer> {
    let g = Graph::new();
    let (x, y) = (g.input("x", I32, [1, CONTEXT]), g.input("y", I32, [1, CONTEXT]));
    let loss = model.apply(&g, &x).cross_entropy(&y);
    let step = TrainStep::new(&loss).optimizer(AdamW::new(3e-4).betas(0.9, 0.95)).clip(Clip::GlobalNorm(1.0));
    Ok(Trainer::new(step.build()?.compile_with(&Cpu::default(), precision)?))
}

/// Words, and each other character but blanks, as tokens.
fn tokens(text: &str, vocabulary: usize) -> Vec<i32> {
    let cut = |c: char| !c.is_alphanumeric();
    let pieces = text.split_inclusive(cut).flat_map(|piece| match piece.char_indices().last() {
        Some((at, c)) if cut(c) => [&piece[..at], &piece[at..]],
        _ => [piece, ""],
    });
    let words = pieces.map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| (fnv(word) % vocabulary as u64) as i32).collect()
}

/// The hash FNV-1a.
fn fnv(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn gigabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e9
}
