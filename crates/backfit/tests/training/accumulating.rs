//! Gradients over several micro-batches: the step of one large batch.

use crate::models::{batches_of, small_digits, trainer, vector};
use backfit::prelude::*;

/// A network in f64 with a mask, on batches of this many rows.
fn network(batch: usize, optimizer: Adam) -> (TrainStep, Tensor) {
    let g = Graph::new();
    let (x, label) = (g.input("image", F32, [batch, 81]).cast(F64), g.input("label", I32, [batch]));
    let valid = g.input("valid", F32, [batch]);
    let weight =
        |name: &str, dims: [usize; 2]| g.weight(name, Type::new(F64, dims), Init::Uniform { low: -0.2, high: 0.2 });
    let logits = x.linear(&weight("w1", [16, 81]), None).tanh().linear(&weight("w2", [10, 16]), None);
    let loss = logits.cross_entropy_with(&label, CrossEntropy { weights: Some(&valid), ..CrossEntropy::default() });
    let step = TrainStep::new(&loss).optimizer(optimizer);
    (step.report("accuracy", &logits.accuracy_with(&label, Some(&valid))), valid)
}

#[test]
fn micro_batches_make_the_step_of_one_large_batch_full_or_not() {
    // A large ε keeps Adam from blowing up what differs in the last bits.
    let adam = Adam::new(0.05).epsilon(1e-2);
    let data = small_digits(32 * 3 + 13);
    let mut large = trainer(&network(32, adam).0.build().unwrap(), 2);
    for micro in [1, 4, 32] {
        let (step, valid) = network(32 / micro, adam);
        let model = step.accumulate(micro, Some(&valid)).clip(Clip::GlobalNorm(1e9)).build().unwrap();
        let mut small = trainer(&model, 1);
        assert_eq!(small.batch_size(), Some(32));
        large = large.seed(0).unwrap();
        for batch in batches_of(&data, 32) {
            let (a, b) = (large.step(&batch).unwrap(), small.step(&batch).unwrap());
            for name in ["loss", "accuracy"] {
                assert!((a[name] - b[name]).abs() <= 1e-6, "{name}: {} {}", a[name], b[name]);
            }
            for name in ["w1", "w2"] {
                let pairs = large.get(name).unwrap().to_f64().into_iter().zip(small.get(name).unwrap().to_f64());
                let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst <= 1e-12, "{micro} micro-batches, {name}: {worst:e}");
            }
        }
    }
}

#[test]
fn gradients_are_added_in_order_and_multiplied_once() {
    let step = || {
        let g = Graph::new();
        let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ZEROS));
        TrainStep::new(&(&x * &w).sum_all()).optimizer(Sgd::new(1.0))
    };
    let x: Vec<f32> = (0..6).map(|i| (1.0 + i as f32).sqrt()).collect();
    let mut trainer = trainer(&step().accumulate(3, None).build().unwrap(), 1);
    trainer.step(&vector(&x)).unwrap();
    let expected = [0, 1].map(|i| -(((0.0 + x[i]) + x[i + 2]) + x[i + 4]) * (1.0_f64 / 3.0) as f32);
    assert_eq!(trainer.get("w").unwrap().to_f32(), expected);
}

#[test]
fn one_micro_batch_is_a_plain_step_bit_for_bit() {
    use crate::models::{noisy_step, residents};
    let run = |step: TrainStep| {
        let mut trainer = trainer(&step.build().unwrap(), 2);
        batches_of(&small_digits(96), 16).iter().for_each(|batch| drop(trainer.step(batch).unwrap()));
        residents(&trainer)
    };
    assert_eq!(run(noisy_step(16, false).accumulate(1, None)), run(noisy_step(16, false)));
}

#[test]
fn state_and_key_go_from_one_micro_batch_to_the_next() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
    let seen = g.state("seen", Type::new(F32, []), Init::ZEROS);
    g.update(&seen, &(&seen * 2.0 + x.sum_all()));
    let step = TrainStep::new(&(&x * &w).dropout(0.5).sum_all()).optimizer(Sgd::new(0.1)).report("x", &x);
    let mut trainer = trainer(&step.accumulate(3, None).build().unwrap(), 1);
    let key = |trainer: &Trainer| trainer.get(backfit::ir::RNG_KEY).unwrap().to_i64()[2];
    let before = key(&trainer);
    trainer.step(&vector(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0])).unwrap();
    assert_eq!(trainer.get("seen").unwrap().to_f64(), [7.0]);
    assert_eq!(key(&trainer), before + 3);
    assert_eq!(trainer.reported("x").unwrap().ty().to_string(), "f32[3,2]");
    // A micro-batch that is not finite takes the whole step with it.
    assert!(trainer.step(&vector(&[1.0, 0.0, f32::NAN, 0.0, 1.0, 0.0])).unwrap().skipped());
    assert_eq!((trainer.get("seen").unwrap().to_f64()[0], key(&trainer)), (7.0, before + 3));
}

#[test]
fn inputs_without_rows_are_refused() {
    let g = Graph::new();
    let (x, w) = (g.input::<usize, 0>("x", F32, []), g.weight("w", Type::new(F32, []), Init::ONES));
    let step = TrainStep::new(&(&x * &w)).optimizer(Sgd::new(0.1));
    let e = step.clone().accumulate(2, None).build().map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("'x: f32[]' has no rows") && e.contains("accumulating.rs"), "{e}");
    let e = step.accumulate(0, None).build().map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("0 micro-batches"), "{e}");
}

#[test]
fn weights_that_are_all_zero_skip_the_step() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
    let step = TrainStep::new(&(&x * &w).sum_all()).optimizer(Sgd::new(0.1)).accumulate(2, Some(&x));
    let mut trainer = trainer(&step.build().unwrap(), 1);
    assert!(trainer.step(&vector(&[0.0; 4])).unwrap().skipped());
    assert_eq!(trainer.get("w").unwrap().to_f64(), [1.0, 1.0]);
    assert!(!trainer.step(&vector(&[0.0, 0.0, 1.0, 3.0])).unwrap().skipped());
    assert_eq!(trainer.get("w").unwrap().to_f32(), [1.0 - 0.1, 1.0 - 0.1 * 3.0]);
}
