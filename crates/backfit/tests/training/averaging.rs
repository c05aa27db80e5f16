//! Averages of the weights: the recurrence, and evaluation and prediction with them.

use crate::models::{Scratch, batches_of, noisy_step, residents, small_digits, trainer, vector};
use backfit::prelude::*;

#[test]
fn averages_follow_the_recurrence_from_the_initial_weights() {
    let g = Graph::new();
    let x = g.input("x", F32, [2]);
    let w = g.weight("w", Type::new(F32, [2]), Init::Normal { mean: 1.0, std: 0.5 });
    let step = TrainStep::new(&(&x * &w).sum_all()).optimizer(Sgd::new(0.25)).ema(0.9);
    let mut trainer = trainer(&step.build().unwrap(), 1);
    let read = |trainer: &Trainer, name| trainer.get(name).unwrap().to_f32();
    let mut average = read(&trainer, "w");
    assert_eq!(read(&trainer, "optimizer.ema.w"), average);
    for i in 0..6 {
        trainer.step(&vector(&[0.3, i as f32])).unwrap();
        for (average, w) in average.iter_mut().zip(read(&trainer, "w")) {
            *average += (w - *average) * (1.0 - 0.9_f64) as f32;
        }
        assert_eq!(read(&trainer, "optimizer.ema.w"), average);
    }
}

#[test]
fn evaluation_and_prediction_use_the_averages_when_asked() {
    let data = small_digits(64);
    let mut trainer = trainer(&noisy_step(16, false).ema(0.8).build().unwrap(), 2);
    batches_of(&small_digits(160), 16).iter().for_each(|batch| drop(trainer.step(batch).unwrap()));
    let plain = (trainer.evaluate(&data).unwrap(), trainer.predict(&data).unwrap());
    trainer.use_averages(true).unwrap();
    let averaged = (trainer.evaluate(&data).unwrap(), trainer.predict(&data).unwrap());
    trainer.use_averages(false).unwrap();
    assert_eq!((trainer.evaluate(&data).unwrap(), trainer.predict(&data).unwrap()), plain);

    // A model that has the averages as its weights says the same.
    let mut other = crate::models::trainer(&noisy_step(16, false).build().unwrap(), 1);
    for (name, value) in residents(&trainer).into_iter().filter(|(name, _)| !name.starts_with("optimizer.")) {
        let average = trainer.get(&format!("optimizer.ema.{name}")).unwrap_or(value);
        other.set(&name, &average).unwrap();
    }
    assert_eq!((other.evaluate(&data).unwrap(), other.predict(&data).unwrap()), averaged);
    assert_ne!(averaged, plain);
    assert!(other.use_averages(true).unwrap_err().to_string().contains(".ema("));
}

#[test]
fn averages_start_anew_from_weights_that_are_taken_over() {
    let file = Scratch::new("averages");
    let source = trainer(&noisy_step(16, false).build().unwrap(), 1).seed(5).unwrap();
    source.save(&file.0).unwrap();
    let mut target = trainer(&noisy_step(16, false).ema(0.8).build().unwrap(), 1);
    target.load_weights(&file.0).unwrap();
    assert_eq!(target.get("optimizer.ema.fc1.weight").unwrap(), source.get("fc1.weight").unwrap());
}

#[test]
fn decays_that_cannot_be_are_refused() {
    for decay in [1.0, -0.1, f64::NAN] {
        let e = noisy_step(8, false).ema(decay).build().map(|_| ()).unwrap_err().to_string();
        assert!(e.contains("decay of the average"), "{e}");
    }
}
