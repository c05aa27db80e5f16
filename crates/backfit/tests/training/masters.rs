//! Weights that are stored as bf16.

use crate::models::{Scratch, residents};
use backfit::Checkpoint;
use backfit::precision::Masters;
use backfit::prelude::*;

fn trainer(masters: Masters) -> Trainer {
    trainer_of(masters, |step| step)
}

fn trainer_of(masters: Masters, and: fn(TrainStep) -> TrainStep) -> Trainer {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 32]);
    let loss = nn::linear(&g, "fc", &x, 8).square().mean_all();
    let model = and(TrainStep::new(&loss).optimizer(Sgd::new(0.1))).build().unwrap();
    let policy = Policy::f32().masters(masters);
    Trainer::new(model.compile_with(&Cpu::default().threads(1), &policy).unwrap())
}

#[test]
fn a_seed_starts_anew_with_the_same_rounded_weights_whatever_was_before() {
    let fresh = trainer(Masters::Stochastic).seed(3).unwrap();
    let again = trainer(Masters::Stochastic).seed(5).unwrap().seed(3).unwrap();
    assert!(residents(&fresh) == residents(&again));
    assert_ne!(
        fresh.get("fc.weight").unwrap(),
        trainer(Masters::Stochastic).seed(5).unwrap().get("fc.weight").unwrap()
    );
}

#[test]
fn weights_in_f32_are_taken_over_as_exactly_as_they_can_be_stored() {
    let file = Scratch::new("masters");
    let plain = trainer(Masters::F32).seed(8).unwrap();
    plain.save(&file.0).unwrap();
    let wanted = plain.get("fc.weight").unwrap().to_f64();
    for (masters, bits) in [(Masters::Stochastic, 8), (Masters::Compensated, 16)] {
        let mut trainer = trainer(masters).seed(1).unwrap();
        trainer.load_weights(&file.0).unwrap();
        let found = trainer.weight("fc.weight").unwrap().to_f64();
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() <= wanted.abs() * 0.5_f64.powi(bits), "{masters:?}: {found} for {wanted}");
        }
    }
}

/// The sum of the two bf16 numbers of every weight.
fn stored(trainer: &Trainer, name: &str) -> Vec<f64> {
    let [high, low] = [name, &format!("optimizer.compensation.{name}")].map(|name| trainer.get(name).unwrap().to_f64());
    high.iter().zip(low).map(|(high, low)| high + low).collect()
}

#[test]
fn weights_in_bf16_are_taken_over_with_what_is_kept_beside_them_and_begin_the_averages() {
    let file = Scratch::new("masters-narrow");
    let mut source = trainer(Masters::Compensated).seed(8).unwrap();
    let x: Vec<f32> = (0..128).map(|i| (i % 13) as f32 / 7.0 - 0.8).collect();
    let data = Dataset::new([("x", Literal::from_f32([4, 32], &x))]).unwrap();
    data.batches(4).epochs(5).for_each(|batch| drop(source.step(&batch.unwrap()).unwrap()));
    source.save(&file.0).unwrap();
    let names = ["fc.weight", "fc.bias"];
    for name in names {
        assert_ne!(stored(&source, name), source.get(name).unwrap().to_f64(), "what is beside {name} counts");
    }
    for and in [|step| step, |step: TrainStep| step.ema(0.9)] as [fn(TrainStep) -> TrainStep; 2] {
        let mut target = trainer_of(Masters::Compensated, and).seed(1).unwrap();
        let report = target.load_weights(&file.0).unwrap();
        assert_eq!((report.loaded.len(), report.unexpected.len()), (2, 0), "{report}");
        for name in names.iter().flat_map(|name| [(*name).to_owned(), format!("optimizer.compensation.{name}")]) {
            assert_eq!(target.get(&name).unwrap(), source.get(&name).unwrap(), "{name}");
        }
        if target.use_averages(true).is_ok() {
            names.iter().for_each(|name| assert_eq!(target.weight(name).unwrap().to_f64(), stored(&source, name)));
        }
    }
    let mut target = trainer_of(Masters::Stochastic, |step| step.ema(0.9)).seed(1).unwrap();
    target.load_weights(&file.0).unwrap();
    for name in names {
        assert_eq!(target.get(name).unwrap(), source.get(name).unwrap());
        assert_eq!(target.get(&format!("optimizer.ema.{name}")).unwrap().to_f64(), stored(&source, name));
    }
}

#[test]
fn nothing_is_taken_over_where_something_beside_a_weight_is_wrong() {
    let file = Scratch::new("masters-wrong");
    trainer(Masters::Compensated).seed(8).unwrap().save(&file.0).unwrap();
    let mut checkpoint = Checkpoint::load(&file.0).unwrap();
    let wrong = Literal::zeros(Type::new(BF16, [9]));
    checkpoint.tensors.insert("optimizer.compensation.fc.bias".into(), wrong);
    checkpoint.save(&file.0).unwrap();
    let mut target = trainer_of(Masters::Compensated, |step| step.ema(0.9)).seed(1).unwrap();
    let before = residents(&target);
    let error = target.load_weights(&file.0).unwrap_err().to_string();
    assert!(error.contains("fc.bias") && error.contains("bf16[9]") && error.contains("bf16[8]"), "{error}");
    assert!(residents(&target) == before);
    let long = Literal::from_f32([9], &[1.0; 9]);
    let error = target.set("fc.bias", &long).unwrap_err().to_string();
    assert!(error.contains("bf16[8]") && error.contains("f32[9]"), "{error}");
    assert!(residents(&target) == before);
}
