//! Steps as compiled programs: the guard, the key, clipping.

use super::{input, vector, weight};
use backfit_cpu::Cpu;
use backfit_grad::{Adam, Clip, FINITE, Sgd, TrainStep};
use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::{DType, Graph, Init, Literal, RNG_KEY, Type};
use backfit_suites::training::Training;

fn start(step: TrainStep) -> Training {
    Training::new(step.build().unwrap(), &Cpu::default().threads(2)).unwrap()
}

/// A network with dropout, batch norm and a counter, so that there is every kind of state.
fn noisy() -> TrainStep {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [8, 3]);
    let of = |dims: &[usize]| Type::new(DType::F32, dims);
    let w1 = g.weight("w1", of(&[4, 3]), Init::Uniform { low: -1.0, high: 1.0 });
    let (gain, shift) = (g.weight("gain", of(&[4]), Init::ONES), g.weight("shift", of(&[4]), Init::ZEROS));
    let w2 = g.weight("w2", of(&[1, 4]), Init::Uniform { low: -1.0, high: 1.0 });
    let (mean, var) = (g.state("mean", of(&[4]), Init::ZEROS), g.state("var", of(&[4]), Init::ONES));
    let steps = g.state("steps", Type::new(DType::I32, []), Init::ZEROS);
    let parameters = BatchNormParameters { weight: &gain, bias: &shift, running_mean: &mean, running_var: &var };
    let h = x.linear(&w1, None).batch_norm(parameters, None, 0.1, 1e-5);
    g.update(&mean, &h.running_mean);
    g.update(&var, &h.running_var);
    g.update(&steps, &(&steps + 1.0));
    let loss = h.y.relu().dropout(0.5).linear(&w2, None).square().mean_all();
    TrainStep::new(&loss).optimizer(Adam::new(1e-2))
}

/// A batch whose last number is this one.
fn batch(last: f32) -> [(&'static str, Literal); 1] {
    let mut values: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
    values[23] = last;
    [("x", Literal::from_f32([8, 3], &values))]
}

fn finite(results: &std::collections::BTreeMap<String, Literal>) -> bool {
    results[FINITE].to_i64()[0] != 0
}

#[test]
fn a_batch_that_is_not_finite_leaves_every_resident_bit_unchanged() {
    let mut training = start(noisy());
    assert!(finite(&training.step(&batch(0.5))));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let before = training.residents();
        let results = training.step(&batch(bad));
        assert!(!finite(&results), "{bad}");
        assert_eq!(training.residents(), before, "{bad}");
    }
    let before = training.residents();
    assert!(finite(&training.step(&batch(0.5))));
    for (name, old) in before {
        assert_ne!(training.read(&name), old, "a good step leaves '{name}' as it is");
    }
}

#[test]
fn statistics_that_would_become_infinite_leave_every_resident_bit_unchanged_though_all_gradients_are_finite() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [2]);
    let w = g.weight("w", Type::new(DType::F32, [2]), Init::ONES);
    let largest = g.state("largest", Type::new(DType::F32, [2]), Init::ZEROS);
    g.update(&largest, &largest.maximum(&x.square()));
    let mut training = start(TrainStep::new(&(x.tanh() * &w).sum_all()).optimizer(Sgd::new(0.1)));
    assert!(finite(&training.step(&[("x", Literal::from_f32([2], &[2.0, 3.0]))])));
    let before = training.residents();
    assert!(!finite(&training.step(&[("x", Literal::from_f32([2], &[f32::MAX, 1.0]))])));
    assert_eq!(training.residents(), before);
}

#[test]
fn the_key_counts_only_good_steps() {
    let mut training = start(noisy());
    let key = |training: &Training| training.read(RNG_KEY).to_i64();
    let first = key(&training);
    training.step(&batch(0.5));
    training.step(&batch(f32::NAN));
    training.step(&batch(0.5));
    assert_eq!(key(&training), [first[0], first[1], first[2] + 2, first[3]]);
    assert_eq!(training.read("steps").to_i64(), [2]);
}

#[test]
fn without_the_guard_steps_are_applied_all_the_same() {
    let mut training = start(noisy().unguarded());
    let results = training.step(&batch(f32::NAN));
    assert!(!results.contains_key(FINITE));
    assert!(training.read("w1").to_f64().iter().all(|v| v.is_nan()));
    assert_eq!(training.read("steps").to_i64(), [1]);
}

/// A step of size 1 on Σ a·u + Σ b·v, whose gradients are a and b.
fn linear(clip: Option<Clip>, a: &[f64], b: &[f64]) -> [Vec<f64>; 2] {
    let g = Graph::new();
    let (u, v) = (weight(&g, "u", &[2], &[0.0; 2]), weight(&g, "v", &[1], &[0.0]));
    let loss = (input(&g, "a", &[2]) * &u).sum_all() + (input(&g, "b", &[1]) * &v).sum_all();
    let step = TrainStep::new(&loss).optimizer(Sgd::new(1.0));
    let mut training = start(match clip {
        Some(clip) => step.clip(clip),
        None => step,
    });
    training.step(&[("a", vector(a)), ("b", vector(b))]);
    ["u", "v"].map(|name| training.read(name).to_f64().iter().map(|w| -w).collect())
}

#[test]
fn gradients_are_clipped_by_value() {
    assert_eq!(linear(None, &[3.0, -0.5], &[-4.0]), [vec![3.0, -0.5], vec![-4.0]]);
    assert_eq!(linear(Some(Clip::Value(1.0)), &[3.0, -0.5], &[-4.0]), [vec![1.0, -0.5], vec![-1.0]]);
}

#[test]
fn gradients_are_clipped_by_their_common_norm() {
    // As in PyTorch, 1e-6 is added to the norm, here 5 = √(3² + 0² + 4²).
    let scale = 2.0 / (5.0 + 1e-6);
    let found = linear(Some(Clip::GlobalNorm(2.0)), &[3.0, 0.0], &[-4.0]).concat();
    for (found, expected) in found.iter().zip([3.0 * scale, 0.0, -4.0 * scale]) {
        assert!((found - expected).abs() <= 1e-14, "{found}, not {expected}");
    }
    assert_eq!(linear(Some(Clip::GlobalNorm(5.5)), &[3.0, 0.0], &[-4.0]), [vec![3.0, 0.0], vec![-4.0]]);
}

#[test]
fn a_clipped_gradient_that_is_not_finite_is_still_refused() {
    for clip in [Clip::Value(1.0), Clip::GlobalNorm(1.0)] {
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(linear(Some(clip), &[bad, 1.0], &[1.0]), [vec![0.0, 0.0], vec![0.0]], "{clip:?}, {bad}");
        }
    }
}

#[test]
fn frozen_weights_stay() {
    let g = Graph::new();
    let frozen = g.parameter(
        "frozen",
        Type::new(DType::F64, [2]),
        backfit_ir::Role::Weight { trainable: false },
        Some(Init::Constant(3.0)),
    );
    let w = weight(&g, "w", &[2], &[1.0, 2.0]);
    let mut training = start(TrainStep::new(&(&frozen * &w).sum_all()).optimizer(Sgd::new(0.5)));
    training.step(&[]);
    assert_eq!(training.read("frozen").to_f64(), [3.0, 3.0]);
    assert_eq!(training.read("w").to_f64(), [-0.5, 0.5]);
}
