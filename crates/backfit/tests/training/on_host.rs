//! The optimizer on the host has the bits of the optimizer in the program.

use crate::models::{batches_of, noisy_step, residents, small_digits, trainer, vector};
use backfit::Optimizer;
use backfit::prelude::*;

fn run(step: TrainStep) -> Vec<(String, Literal)> {
    let mut trainer = trainer(&step.build().unwrap(), 2).schedule(Schedule::Linear { total: 20, min: 0.0 });
    let mut batches = batches_of(&small_digits(192), 16);
    batches[3] = crate::models::filled(16, f32::NAN);
    let skipped = batches.iter().filter(|batch| trainer.step(batch).unwrap().skipped()).count();
    assert_eq!(skipped, 1);
    residents(&trainer)
}

fn assert_equal(optimizer: impl Optimizer + Clone + 'static) {
    let step = || noisy_step(16, false).optimizer(optimizer.clone());
    let group = Group { rate: 0.3, decay: 0.5, frozen: false };
    let more = || step().clip(Clip::GlobalNorm(0.5)).group("fc?.bias", group).loss_scale(LossScale::Static(64.0));
    assert!(run(step().optimizer_on_host()) == run(step()), "{optimizer:?}");
    assert!(run(more().optimizer_on_host()) == run(more()), "{optimizer:?} with clipping and groups");
}

#[test]
fn every_rule_has_the_same_bits() {
    assert_equal(Sgd::new(0.1));
    assert_equal(Sgd::new(0.1).momentum(0.9).weight_decay(1e-2));
    assert_equal(Sgd::new(0.1).momentum(0.9).nesterov());
    assert_equal(Adam::new(1e-2));
    assert_equal(Adam::new(1e-2).weight_decay(1e-2));
    assert_equal(AdamW::new(1e-2).betas(0.8, 0.95));
    assert_equal(Lion::new(1e-3).weight_decay(1e-2));
    assert_equal(RmsProp::new(1e-3).weight_decay(1e-2));
    assert_equal(RmsProp::new(1e-3).centered().momentum(0.9));
}

#[test]
fn moments_that_decay_into_subnormal_numbers_have_the_same_bits_whether_the_target_flushes_them_or_not() {
    for cpu in [Cpu::default().threads(1), Cpu::default().threads(1).keep_subnormals()] {
        let run = |host: bool| {
            let g = Graph::new();
            let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
            let step = TrainStep::new(&(&x * &w).sum_all()).optimizer(Adam::new(1e-3).betas(0.5, 0.6));
            let model = if host { step.optimizer_on_host() } else { step }.build().unwrap();
            let mut trainer = Trainer::new(model.compile(&cpu).unwrap());
            trainer.step(&vector(&[1e-3, 1.0])).unwrap();
            (0..150).for_each(|_| drop(trainer.step(&vector(&[0.0, 0.0])).unwrap()));
            residents(&trainer)
        };
        assert_eq!(run(true), run(false), "{cpu:?}");
    }
}

#[test]
fn gradients_whose_squares_overflow_have_the_same_bits() {
    let run = |host: bool| {
        let g = Graph::new();
        let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
        let step = TrainStep::new(&(&x * &w).sum_all()).optimizer(RmsProp::new(1e-3).centered()).unguarded();
        let model = if host { step.optimizer_on_host() } else { step }.build().unwrap();
        let mut trainer = Trainer::new(model.compile(&Cpu::default().threads(1)).unwrap());
        (0..3).for_each(|_| drop(trainer.step(&vector(&[1e25, 1.0])).unwrap()));
        // NaN has no one bit pattern.
        let bits = |v: f32| if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() };
        let all = residents(&trainer).into_iter();
        all.map(|(name, v)| (name, v.to_f32().into_iter().map(bits).collect::<Vec<_>>())).collect::<Vec<_>>()
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn what_the_host_cannot_do_is_refused() {
    let refused = |step: TrainStep| step.optimizer_on_host().build().map(|_| ()).unwrap_err().to_string();
    assert!(refused(noisy_step(8, false).ema(0.9)).contains("keeps no average"));
    assert!(refused(noisy_step(8, false).unroll(2)).contains("cannot wait"));
    assert!(refused(noisy_step(8, false).optimizer(Adafactor::new(1e-2))).contains("cannot update on the host"));
    let g = Graph::new();
    let w = g.weight("w", Type::new(F64, [2]), Init::ONES);
    let e = refused(TrainStep::new(&w.square().sum_all()).optimizer(Adam::new(0.1)));
    assert!(e.contains("'w' is f64"), "{e}");
}
