//! A small causal transformer that learns to write like a text, character by character:
//! `cargo run --release -p backfit --example transformer`.

use backfit::prelude::*;

const BATCH: usize = 16;
const LENGTH: usize = 32;
const CHARACTERS: usize = 128;

const TEXT: &str = "Backfit turns a model into a training step: forward, backward and update, written only in \
    operators that inference engines already have. It plans the step ahead of time as one program, and runs or \
    emits that program for whatever target is at hand. Hardware that was built only to infer can then train. ";

fn main() -> backfit::Result<()> {
    let g = Graph::new();
    let tokens = g.input("tokens", I32, [BATCH, LENGTH]);
    let next = g.input("next", I32, [BATCH, LENGTH]);
    let mut x = nn::embedding(&g, "tokens", &tokens, CHARACTERS, 64);
    for layer in 0..2 {
        let block = nn::TransformerBlock::new(&format!("block{layer}"), 4, 192);
        x = block.causal(true).gated().kv_heads(2).rotary(Rotary::default()).apply(&g, &x);
    }
    let logits = nn::linear(&g, "head", &nn::rms_norm(&g, "norm", &x), CHARACTERS);
    let loss = logits.cross_entropy(&next);
    let model = TrainStep::new(&loss)
        .optimizer(AdamW::new(3e-3))
        .clip(Clip::GlobalNorm(1.0))
        .report("accuracy", &logits.accuracy(&next))
        .predict(&logits)
        .build()?;

    let mut trainer = Trainer::new(model.compile(&Cpu::default())?);
    for batch in windows()?.batches(BATCH).epochs(8).drop_last() {
        let out = trainer.step(&batch?)?;
        if out.step() % 20 == 0 {
            println!("step {}: loss {:.3}, {:.0} % right", out.step(), out["loss"], 100.0 * out["accuracy"]);
        }
    }
    println!("{}", continued(&mut trainer, "Backfit turns a model into a tr", 60)?);
    Ok(())
}

/// Every stretch of the text and the one after it by a character.
fn windows() -> backfit::Result<Dataset> {
    let ids: Vec<i32> = TEXT.bytes().map(i32::from).collect();
    let count = ids.len() - LENGTH;
    let column = |offset: usize| {
        let all: Vec<i32> = (0..count).flat_map(|i| ids[i + offset..][..LENGTH].iter().copied()).collect();
        Literal::from_i32([count, LENGTH], &all)
    };
    Dataset::new([("tokens", column(0)), ("next", column(1))])
}

/// The text with the likeliest characters after it.
fn continued(trainer: &mut Trainer, start: &str, characters: usize) -> backfit::Result<String> {
    let mut text: Vec<u8> = start.bytes().collect();
    for _ in 0..characters {
        let seen = &text[text.len().saturating_sub(LENGTH)..];
        let mut ids: Vec<i32> = seen.iter().copied().map(i32::from).collect();
        ids.resize(LENGTH, 0);
        let logits = trainer.predict(&Dataset::new([("tokens", Literal::from_i32([1, LENGTH], &ids))])?)?.to_f32();
        let last = &logits[(seen.len() - 1) * CHARACTERS..][..CHARACTERS];
        let best = (0..CHARACTERS).max_by(|&a, &b| last[a].total_cmp(&last[b])).unwrap_or_default();
        text.push(best as u8);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
