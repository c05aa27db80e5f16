//! The models that the tests train.

use backfit::prelude::*;
use backfit::{Result, TrainModule};

/// 256 digits of 8 × 8 pixels' worth of columns: every third pixel of every third row.
pub fn small_digits(samples: usize) -> Dataset {
    let digits = datasets::digits().unwrap().take(samples).to_unit("image").unwrap();
    let image = digits.column("image").unwrap().to_f32();
    let pixels = image.chunks(784).flat_map(|one| (0..81).map(|i| one[i / 9 * 3 * 28 + i % 9 * 3]));
    let small = Literal::from_f32([samples, 81], &pixels.collect::<Vec<_>>());
    digits.with_column("image", small).unwrap()
}

/// A network with batch norm and dropout, which weighs by the mask where it is asked to.
pub fn noisy(batch: usize, masked: bool) -> Result<TrainModule> {
    noisy_step(batch, masked).build()
}

/// The step of [`noisy`].
pub fn noisy_step(batch: usize, masked: bool) -> TrainStep {
    let g = Graph::new();
    let x = g.input("image", F32, [batch, 81]);
    let label = g.input("label", I32, [batch]);
    let valid = if masked { Some(g.input("valid", F32, [batch])) } else { None };
    let norm = valid.as_ref().map_or(nn::BatchNorm::new("bn"), |valid| nn::BatchNorm::new("bn").mask(valid));
    let h = norm.apply(&g, &nn::linear(&g, "fc1", &x, 32)).relu();
    let logits = nn::linear(&g, "fc2", &nn::dropout(&h, 0.25), 10);
    let options = CrossEntropy { weights: valid.as_ref(), ..CrossEntropy::default() };
    let loss = logits.cross_entropy_with(&label, options);
    TrainStep::new(&loss)
        .optimizer(AdamW::new(1e-2))
        .report("accuracy", &logits.accuracy_with(&label, valid.as_ref()))
        .predict(&logits)
}

/// Batches of digits, the samples in their order.
pub fn batches_of(data: &Dataset, size: usize) -> Vec<Batch> {
    data.batches(size).in_order().map(|batch| batch.unwrap()).collect()
}

/// A batch of digits whose images have this number everywhere.
pub fn filled(batch: usize, number: f32) -> Batch {
    let image = Literal::from_f32([batch, 81], &vec![number; batch * 81]);
    batches_of(&small_digits(batch).with_column("image", image).unwrap(), batch).remove(0)
}

/// What is fed to a model whose only input is the vector `x`.
pub fn vector(values: &[f32]) -> Batch {
    let data = Dataset::new([("x", Literal::from_f32([values.len()], values))]).unwrap();
    batches_of(&data, values.len()).remove(0)
}

/// The residents but for the loss scale and its counter.
pub fn without_scale(trainer: &Trainer) -> Vec<(String, Literal)> {
    let scaler = [backfit::grad::LOSS_SCALE, backfit::grad::GOOD_STEPS];
    residents(trainer).into_iter().filter(|(name, _)| !scaler.contains(&name.as_str())).collect()
}

/// A trainer on this many threads.
pub fn trainer(model: &TrainModule, threads: usize) -> Trainer {
    Trainer::new(model.compile(&Cpu::default().threads(threads)).unwrap())
}

/// The bytes of everything in the resident store.
pub fn residents(trainer: &Trainer) -> Vec<(String, Literal)> {
    let names = trainer.residents().iter().map(|p| p.name.clone());
    names.map(|name| (name.clone(), trainer.get(&name).unwrap())).collect()
}

/// A file that is removed at the end.
pub struct Scratch(pub std::path::PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("backfit-{test}-{}.safetensors", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}
