//! Checks a user's own operator against central differences, then trains with it.

mod swish;

use backfit::prelude::*;
use swish::swish;

fn main() -> backfit::Result<()> {
    let g = Graph::new();
    let x = g.input("x", F64, [16]);
    let report = backfit::grad_check(&swish(&x, 1.5).sum_all(), &[])?;
    assert!(report.worst() < 1e-7, "the derivative of swish is wrong: {report}");

    let iris = datasets::iris_split()?;
    let g = Graph::new();
    let x = g.input("features", F32, [30, 4]);
    let label = g.input("label", I32, [30]);
    let h = swish(&nn::linear(&g, "fc1", &x, 16), 1.5);
    let logits = nn::linear(&g, "fc2", &h, 3);
    let model = TrainStep::new(&logits.cross_entropy(&label))
        .optimizer(Adam::new(0.02))
        .report("accuracy", &logits.accuracy(&label))
        .build()?;
    let mut trainer = Trainer::new(model.compile(&Cpu::default())?);
    trainer.fit(iris.train.batches(30), FitOptions { epochs: 40, ..FitOptions::default() })?;
    let report = trainer.evaluate(&iris.test)?;
    println!("accuracy {:.3}", report["accuracy"]);
    assert!(report["accuracy"] >= 0.9);
    Ok(())
}
