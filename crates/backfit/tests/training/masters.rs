//! Weights that are stored as bf16.

use crate::models::{Scratch, residents};
use backfit::precision::Masters;
use backfit::prelude::*;

fn trainer(masters: Masters) -> Trainer {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 32]);
    let loss = nn::linear(&g, "fc", &x, 8).square().mean_all();
    let model = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).build().unwrap();
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
