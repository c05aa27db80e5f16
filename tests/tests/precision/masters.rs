//! Weights that are stored as bf16.

use backfit_compile::precision::{Masters, Policy};
use backfit_compile::target::{Executable, Program};
use backfit_cpu::{Cpu, CpuExecutable};
use backfit_grad::{Sgd, TrainModule, TrainStep};
use backfit_ir::{DType, Graph, Init, Literal, Type};

const WEIGHTS: usize = 4096;

/// A step that subtracts `rate · x` from every weight, which starts at 1.
fn program() -> TrainModule {
    let g = Graph::new();
    let w = g.weight("w", Type::new(DType::F32, [WEIGHTS]), Init::Constant(1.0));
    let x = g.input("x", DType::F32, [WEIGHTS]);
    TrainStep::new(&(&w * &x).sum_all()).optimizer(Sgd::new(1.0)).build().unwrap()
}

fn compiled(masters: Masters) -> CpuExecutable {
    compiled_in(Policy::f32(), masters)
}

fn compiled_in(policy: Policy, masters: Masters) -> CpuExecutable {
    let model = program();
    let functions = vec![("init".to_owned(), model.init), ("step".to_owned(), model.step)];
    let program = Program::new(model.module, functions).precision(policy.masters(masters));
    let mut executable = Cpu::default().threads(2).build(&program).unwrap();
    let words = [7u32, 0, 0, 0];
    executable.input(0, 0).chunks_exact_mut(4).zip(words).for_each(|(b, w)| b.copy_from_slice(&w.to_le_bytes()));
    executable.run(0).unwrap();
    executable
}

fn step(executable: &mut CpuExecutable, gradient: f32) {
    let inputs = executable.signatures()[1].inputs.clone();
    for (i, port) in inputs.iter().enumerate() {
        let value = if port.name == "x" { gradient } else { 1.0 };
        executable.input(1, i).chunks_exact_mut(4).for_each(|b| b.copy_from_slice(&value.to_le_bytes()));
    }
    executable.run(1).unwrap();
}

fn residents(executable: &CpuExecutable) -> Vec<(String, Literal)> {
    executable.residents().iter().map(|p| (p.name.clone(), executable.read(&p.name).unwrap())).collect()
}

/// A sixteenth of the distance from 1 to the next smaller bf16.
const SMALL: f32 = 1.0 / 256.0 / 16.0;

#[test]
fn updates_below_the_last_bit_are_not_lost_whatever_is_computed_in() {
    for policy in [Policy::f32(), Policy::bf16(), Policy::f16(), Policy::f16_engine()] {
        updates_below_the_last_bit_are_not_lost(&policy);
    }
}

fn updates_below_the_last_bit_are_not_lost(policy: &Policy) {
    let mean = |literal: &Literal| literal.to_f64().iter().sum::<f64>() / WEIGHTS as f64;
    // To the nearest, every weight would stay at 1.
    let mut stochastic = compiled_in(policy.clone(), Masters::Stochastic);
    let mut compensated = compiled_in(policy.clone(), Masters::Compensated);
    for _ in 0..64 {
        step(&mut stochastic, SMALL);
        step(&mut compensated, SMALL);
    }
    let expected = 1.0 - 64.0 * f64::from(SMALL);
    let found = stochastic.read("w").unwrap();
    assert_eq!(found.ty().dtype, DType::BF16);
    // The standard deviation of the mean is about 64 steps' √(p (1 − p) · 64) / √4096 of a bf16 step.
    let deviation = 1.0 / 256.0 * (64.0f64 / 16.0 * 15.0 / 16.0).sqrt() / 64.0;
    assert!(
        (mean(&found) - expected).abs() < 5.0 * deviation,
        "{} instead of {expected} in {}",
        mean(&found),
        policy.name()
    );
    let (stored, rest) = (compensated.read("w").unwrap(), compensated.read("optimizer.compensation.w").unwrap());
    assert_eq!((stored.ty().dtype, rest.ty().dtype), (DType::BF16, DType::BF16));
    let sum: Vec<f64> = stored.to_f64().iter().zip(rest.to_f64()).map(|(a, b)| a + b).collect();
    assert!(sum.iter().all(|w| (w - expected).abs() < 1e-4), "{} instead of {expected} in {}", sum[0], policy.name());
}

#[test]
fn random_rounding_is_that_of_the_seed_and_differs_from_step_to_step() {
    let run = |steps: usize| {
        let mut executable = compiled(Masters::Stochastic);
        (0..steps).for_each(|_| step(&mut executable, SMALL));
        executable.read("w").unwrap()
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one, run(1));
    let moved = |from: &[f64], to: &[f64]| from.iter().zip(to).map(|(a, b)| a != b).collect::<Vec<_>>();
    let first = moved(&[1.0; WEIGHTS], &one.to_f64());
    let second = moved(&one.to_f64(), &two.to_f64());
    assert!(first.iter().any(|m| *m) && first != second);
}

#[test]
fn a_skipped_step_keeps_every_bit() {
    for masters in [Masters::Stochastic, Masters::Compensated] {
        let mut executable = compiled(masters);
        step(&mut executable, SMALL * 3.3);
        let before = residents(&executable);
        step(&mut executable, f32::INFINITY);
        assert_eq!(residents(&executable), before, "{masters:?}");
        step(&mut executable, SMALL);
        assert_ne!(residents(&executable), before, "{masters:?}");
    }
}
