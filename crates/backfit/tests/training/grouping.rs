//! Groups of weights: their rate, their decay, and frozen ones.

use crate::models::{trainer, vector};
use backfit::prelude::*;

/// Σ x·a + Σ x·b + Σ x·c, three independent weights.
fn weights(optimizer: impl backfit::Optimizer + 'static) -> TrainStep {
    let g = Graph::new();
    let x = g.input("x", F32, [2]);
    let weight = |name: &str| &x * &g.weight(name, Type::new(F32, [2]), Init::Constant(0.75));
    let loss = (weight("a.weight") + weight("a.bias") + weight("b.bias")).sum_all();
    TrainStep::new(&loss).optimizer(optimizer)
}

/// The weights after five steps.
fn trained(step: TrainStep) -> [Vec<f32>; 3] {
    let mut trainer = trainer(&step.build().unwrap(), 1);
    for i in 0..5 {
        trainer.step(&vector(&[1.0 + i as f32, -0.3])).unwrap();
    }
    ["a.weight", "a.bias", "b.bias"].map(|name| trainer.get(name).unwrap().to_f32())
}

#[test]
fn the_decay_of_a_group_is_a_factor_of_the_optimizers() {
    let adamw = AdamW::new(0.01).weight_decay(0.5);
    let [whole, half, none] =
        [0.5, 0.25, 0.0].map(|decay| trained(weights(AdamW::new(0.01).weight_decay(decay)))[0].clone());
    let bias = |decay| Group { decay, ..Group::default() };
    assert_eq!(trained(weights(adamw).group("*.bias", bias(0.0))), [whole.clone(), none.clone(), none.clone()]);
    // The last pattern that fits is the one that counts.
    let found = trained(weights(adamw).group("*.bias", bias(0.0)).group("a.*", bias(0.5)));
    assert_eq!(found, [half.clone(), half, none]);
    let sgd = trained(weights(Sgd::new(0.1).momentum(0.9).weight_decay(0.5)).group("b.bias", bias(0.0)));
    assert_eq!(sgd[2], trained(weights(Sgd::new(0.1).momentum(0.9)))[0]);
    let rms = trained(weights(RmsProp::new(0.1).weight_decay(0.5)).group("b.bias", bias(0.0)));
    assert_eq!(rms[2], trained(weights(RmsProp::new(0.1)))[0]);
}

#[test]
fn the_rate_of_a_group_is_a_factor_of_the_learning_rate() {
    let [whole, half] = [0.5, 0.25].map(|rate| trained(weights(Adam::new(rate)))[0].clone());
    let found = trained(weights(Adam::new(0.5)).group("a.????", Group { rate: 0.5, ..Group::default() }));
    assert_eq!(found, [whole.clone(), half, whole]);
}

#[test]
fn frozen_weights_stay_and_have_neither_gradient_nor_state() {
    let frozen = Group { frozen: true, ..Group::default() };
    let step = || weights(Adam::new(0.1)).group("*.bias", frozen);
    let found = trained(step());
    assert_eq!(found[1..], [vec![0.75; 2], vec![0.75; 2]]);
    assert_eq!(found[0], trained(weights(Adam::new(0.1)))[0]);
    let trainer = trainer(&step().build().unwrap(), 1);
    let names: Vec<&str> = trainer.residents().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a.weight", "a.bias", "b.bias", "optimizer.m.a.weight", "optimizer.v.a.weight"]);
}

/// An optimizer of the user's own, without weight decay.
#[derive(Debug)]
struct Sign;

impl backfit::Optimizer for Sign {
    fn slots(&self) -> Vec<&'static str> {
        vec![]
    }

    fn learning_rate(&self) -> f64 {
        0.1
    }

    fn update(&self, w: &Tensor, _: &[Tensor], g: &Tensor, hypers: &[Tensor]) -> backfit::Updated {
        backfit::Updated { weight: w - g.sign() * &hypers[0], slots: vec![] }
    }
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let refused = |step: TrainStep| step.build().map(|_| ()).unwrap_err().to_string();
    let group = |rate, decay| Group { rate, decay, frozen: false };
    let e = refused(weights(Adam::new(0.1)).group("*.wieght", group(1.0, 1.0)).group("c*", group(-1.0, 1.0)));
    for words in [
        "'*.wieght' has no trainable weight\n  at crates/backfit/tests/training/grouping.rs:",
        "a.weight, a.bias, b.bias",
        "'c*' has the rate -1",
    ] {
        assert!(e.contains(words), "{words} missing in: {e}");
    }
    let e = refused(weights(Adam::new(0.1)).group("*", group(1.0, f64::NAN)));
    assert!(e.contains("the decay NaN"), "{e}");
    let e = refused(weights(Adam::new(0.1)).group("*", Group { frozen: true, ..Group::default() }));
    assert!(e.contains("there is no trainable weight"), "{e}");
    assert!(weights(Sign).group("*", group(0.5, 1.0)).build().is_ok());
    let e = refused(weights(Sign).group("*", group(1.0, 0.5)));
    assert!(e.contains("weight decay, of which Sign has none"), "{e}");
}
