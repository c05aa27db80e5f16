//! Weights that are stored as bf16.

use crate::models::residents;
use backfit::precision::Masters;
use backfit::prelude::*;

fn trainer() -> Trainer {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 32]);
    let loss = nn::linear(&g, "fc", &x, 8).square().mean_all();
    let model = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).build().unwrap();
    let policy = Policy::f32().masters(Masters::Stochastic);
    Trainer::new(model.compile_with(&Cpu::default().threads(1), &policy).unwrap())
}

#[test]
fn a_seed_starts_anew_with_the_same_rounded_weights_whatever_was_before() {
    let fresh = trainer().seed(3).unwrap();
    let again = trainer().seed(5).unwrap().seed(3).unwrap();
    assert!(residents(&fresh) == residents(&again));
    assert_ne!(fresh.get("fc.weight").unwrap(), trainer().seed(5).unwrap().get("fc.weight").unwrap());
}
