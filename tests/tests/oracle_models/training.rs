//! Ten steps of training under each optimizer, as compiled programs.

use backfit_cpu::Cpu;
use backfit_grad::{Adam, AdamW, RmsProp, Sgd, TrainStep};
use backfit_ir::{DType, Role};
use backfit_suites::compare::distance;
use backfit_suites::oracle::models::{Model, models};
use backfit_suites::training::Training;

fn start(model: &Model, optimizer: &str, dtype: DType) -> Training {
    let step = TrainStep::new(&model.build(dtype).loss);
    let step = match optimizer {
        "sgd" => step.optimizer(Sgd::new(0.1)),
        "nesterov" => step.optimizer(Sgd::new(0.1).momentum(0.9).nesterov()),
        "adam" => step.optimizer(Adam::new(1e-3)),
        "adamw" => step.optimizer(AdamW::new(1e-3).weight_decay(0.01)),
        "rmsprop" => step.optimizer(RmsProp::new(1e-3)),
        other => panic!("there is no optimizer '{other}'"),
    };
    let module = step.build().unwrap_or_else(|e| panic!("{}: {e}", model.name));
    Training::new(module, &Cpu::default().threads(2)).unwrap_or_else(|e| panic!("{}: {e}", model.name))
}

/// Follows ten steps of the trained models; final parameters too, but for those whose gradient is only rounding.
fn follow(optimizers: &[&str], dtype: DType, tolerance: f64) {
    for model in models().iter().filter(|m| m.name != "llama") {
        for &optimizer in optimizers {
            let mut training = start(model, optimizer, dtype);
            let inputs = ["x", "target"].map(|name| (name, model.input(name, dtype)));
            let losses: Vec<f64> = (0..10).map(|_| training.step(&inputs)["loss"].to_f64()[0]).collect();
            let expected = model.expected(dtype, &format!("{optimizer}/losses")).to_f64();
            let mut worst = losses.iter().zip(&expected).map(|(a, b)| (a - b).abs() / b.abs()).fold(0.0, f64::max);
            for resident in training.module.residents.iter().filter(|r| r.role == Role::Weight { trainable: true }) {
                if !model.zero_gradient.contains(&resident.name) {
                    let found = training.read(&resident.name);
                    let what = format!("{optimizer}/final/{}", resident.name);
                    worst = worst.max(distance(&found, model.expected(dtype, &what)));
                }
            }
            println!("{} with {optimizer}: off by {worst:.1e}", model.name);
            assert!(worst <= tolerance, "{} with {optimizer} is off by {worst:e}: {losses:?}", model.name);
        }
    }
}

#[test]
fn ten_steps_of_sgd_in_f32_follow_jax() {
    follow(&["sgd", "nesterov"], DType::F32, 1e-4);
}

#[test]
fn ten_steps_of_every_optimizer_in_f64_follow_jax() {
    follow(&["sgd", "nesterov", "adam", "adamw", "rmsprop"], DType::F64, 1e-9);
}
