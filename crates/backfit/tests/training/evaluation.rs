//! Evaluation is exact for any number of samples and uses what was learnt, not the batch.

use crate::models::{noisy, small_digits, trainer};
use backfit::Trainer;
use backfit::prelude::*;

fn trained(batch: usize, masked: bool) -> Trainer {
    let mut trainer = trainer(&noisy(batch, masked).unwrap(), 2);
    for batch in small_digits(320).batches(batch) {
        trainer.step(&batch.unwrap()).unwrap();
    }
    trainer
}

#[test]
fn a_padded_last_batch_evaluates_as_all_samples_at_once() {
    let data = small_digits(43);
    let mut padded = trained(32, true);
    let mut whole = trainer(&noisy(43, true).unwrap(), 1);
    for port in whole.residents().to_vec() {
        whole.set(&port.name, &padded.get(&port.name).unwrap()).unwrap();
    }
    let (padded, whole) = (padded.evaluate(&data).unwrap(), whole.evaluate(&data).unwrap());
    assert_eq!((padded.samples, whole.samples), (43, 43));
    for name in ["loss", "accuracy"] {
        assert!((padded[name] - whole[name]).abs() < 1e-6, "{name}: {padded:?} {whole:?}");
    }
}

#[test]
fn padding_without_a_mask_is_refused_with_what_to_do() {
    let mut trainer = trained(32, false);
    let e = trainer.evaluate(&small_digits(43)).unwrap_err().to_string();
    for part in ["43 samples", "batches of 32", "'loss', 'accuracy'", "\"valid\"", "take(32)"] {
        assert!(e.contains(part), "{part} missing in: {e}");
    }
    assert_eq!(trainer.evaluate(&small_digits(64)).unwrap().samples, 64);
}

#[test]
fn a_report_that_ignores_the_mask_is_named() {
    let g = Graph::new();
    let x = g.input("image", F32, [8, 81]);
    let label = g.input("label", I32, [8]);
    let valid = g.input("valid", F32, [8]);
    let logits = nn::linear(&g, "fc", &x, 10);
    let loss = logits.cross_entropy_with(&label, CrossEntropy { weights: Some(&valid), ..CrossEntropy::default() });
    let step = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).report("accuracy", &logits.accuracy(&label));
    let e = trainer(&step.build().unwrap(), 1).evaluate(&small_digits(9)).unwrap_err().to_string();
    assert!(e.contains("falsify 'accuracy'"), "{e}");
}

#[test]
fn evaluation_uses_running_statistics_and_changes_nothing() {
    let data = small_digits(64);
    let mut trainer = trained(32, false);
    let before = crate::models::residents(&trainer);
    let report = trainer.evaluate(&data).unwrap();
    assert_eq!(crate::models::residents(&trainer), before);
    let (running, batch) = (trainer.get("bn.running_mean").unwrap(), data.batches(32).next().unwrap().unwrap());
    assert!(running.to_f32().iter().any(|m| *m != 0.0));
    // Other running statistics, another result; a step's own result does not depend on them.
    trainer.set("bn.running_mean", &Literal::from_f32([32], &[3.0; 32])).unwrap();
    assert_ne!(trainer.evaluate(&data).unwrap()["loss"], report["loss"]);
    let shifted = trainer.step(&batch).unwrap()["loss"];
    let mut again = trained(32, false);
    assert_eq!(again.step(&batch).unwrap()["loss"], shifted);
}

#[test]
fn predictions_come_for_any_number_of_rows() {
    let data = small_digits(70);
    let mut trainer = trained(32, false);
    let all = trainer.predict(&data).unwrap();
    assert_eq!(all.ty().to_string(), "f32[70,10]");
    let some = trainer.predict(&data.range(40..45)).unwrap();
    assert_eq!(some.bytes(), &all.bytes()[40 * 40..45 * 40]);
    assert!(trainer.predict(&data.take(0)).is_err());
}

#[test]
fn the_last_prediction_that_is_declared_is_the_prediction() {
    let g = Graph::new();
    let x = g.input("x", F32, [2]);
    let w = g.weight("w", Type::new(F32, []), Init::ONES);
    let step = TrainStep::new(&(&x * &w).mean_all()).optimizer(Sgd::new(0.1));
    let program = step.predict(&(&x * 2.0)).predict(&(&x * 3.0)).build().unwrap();
    let data = Dataset::new([("x", Literal::from_f32([2], &[1.0, -2.0]))]).unwrap();
    assert_eq!(trainer(&program, 1).predict(&data).unwrap(), Literal::from_f32([2], &[3.0, -6.0]));
}
