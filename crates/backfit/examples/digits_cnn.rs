//! A convolutional network with batch norm and dropout that reads handwritten digits, with a mask for the last batch,
//! a schedule and early stopping: `cargo run --release -p backfit --example digits_cnn`.

use backfit::prelude::*;

const BATCH: usize = 128;
const EPOCHS: u64 = 3;

fn main() -> backfit::Result<()> {
    let digits = datasets::digits_split()?;
    let (train, test) = (digits.train.to_unit("image")?, digits.test.to_unit("image")?);

    let g = Graph::new();
    let x = g.input("image", F32, [BATCH, 1, 28, 28]);
    let label = g.input("label", I32, [BATCH]);
    let valid = g.input("valid", F32, [BATCH]);
    let block = |name: &str, x: &Tensor, channels: usize| {
        let y = nn::Conv2d::new(&format!("{name}.conv"), channels, [3, 3]).padding([1, 1]).bias(false).apply(&g, x);
        nn::BatchNorm::new(&format!("{name}.bn")).mask(&valid).apply(&g, &y).relu().max_pool2d([2, 2], [2, 2], [0, 0])
    };
    let h = block("block2", &block("block1", &x, 16), 32).flatten(1);
    let logits = nn::linear(&g, "fc", &nn::dropout(&h, 0.25), 10);
    let loss = logits.cross_entropy_with(&label, CrossEntropy { weights: Some(&valid), ..CrossEntropy::default() });

    let model = TrainStep::new(&loss)
        .optimizer(AdamW::new(2e-3))
        .clip(Clip::GlobalNorm(1.0))
        .report("accuracy", &logits.accuracy_with(&label, Some(&valid)))
        .predict(&logits)
        .build()?;
    let batches = train.batches(BATCH);
    let total = EPOCHS * batches.per_epoch();
    let mut trainer = Trainer::new(model.compile(&Cpu::default())?).seed(1)?.schedule(Schedule::WarmupCosine {
        warmup: total / 10,
        total,
        min: 0.0,
    });
    let report = trainer.fit(
        batches,
        FitOptions {
            epochs: EPOCHS,
            validation: Some(test),
            monitor: Monitor { name: "accuracy".into(), maximise: true },
            patience: Some(2),
            on_event: Some(Box::new(print)),
            ..FitOptions::default()
        },
    )?;
    println!("{:?} after {} steps and {:.1} s", report.stopped, report.steps, report.seconds);
    Ok(())
}

fn print(event: &Event) {
    match event {
        Event::Step { output, .. } if output.step() % 20 == 0 => {
            println!("step {}: {:.4}", output.step(), output["loss"])
        }
        Event::Validation { epoch, report, .. } => {
            println!("epoch {}: held back {:.2} % right", epoch + 1, 100.0 * report["accuracy"]);
        }
        _ => {}
    }
}
