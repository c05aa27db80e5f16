//! A perceptron that reads handwritten digits: `cargo run --release -p backfit --example digits_mlp`.

use backfit::prelude::*;

fn main() -> backfit::Result<()> {
    let digits = datasets::digits_split()?;
    let prepare = |set: Dataset| set.to_unit("image")?.reshape("image", &[784]);
    let (train, test) = (prepare(digits.train)?, prepare(digits.test)?);

    let g = Graph::new();
    let x = g.input("image", F32, [100, 784]);
    let label = g.input("label", I32, [100]);
    let h = nn::linear(&g, "fc1", &x, 256).gelu();
    let logits = nn::linear(&g, "fc2", &h, 10);
    let loss = logits.cross_entropy(&label);

    let model = TrainStep::new(&loss)
        .optimizer(Adam::new(1e-3))
        .report("accuracy", &logits.accuracy(&label))
        .predict(&logits)
        .build()?;
    let mut trainer = Trainer::new(model.compile(&Cpu::default())?);
    let mut batches = train.batches(100).epochs(5);
    for _ in 0..5 {
        let epoch = trainer.epoch(&mut batches)?;
        let report = trainer.evaluate(&test)?;
        println!(
            "epoch {}: loss {:.4}, held back: loss {:.4}, accuracy {:.2} %, {:.1} s",
            epoch.epoch + 1,
            epoch["loss"],
            report["loss"],
            100.0 * report["accuracy"],
            epoch.seconds
        );
    }
    Ok(())
}
