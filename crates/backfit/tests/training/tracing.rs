//! Why a step was skipped: the input, or the operator and the user's line.

use crate::models::{batches_of, filled, noisy_step, residents, small_digits, trainer, vector};
use backfit::ir::interp::Worst;
use backfit::prelude::*;

/// A network whose first layer stands at the line that is returned.
fn network(batch: usize) -> (TrainStep, u32) {
    let g = Graph::new();
    let (x, label) = (g.input("image", F32, [batch, 81]), g.input("label", I32, [batch]));
    let line = line!() + 1;
    let h = nn::linear(&g, "fc1", &x, 16).relu();
    let logits = nn::linear(&g, "fc2", &h, 10);
    let step = TrainStep::new(&logits.cross_entropy(&label)).optimizer(Adam::new(1e-2));
    (step.report("accuracy", &logits.accuracy(&label)), line)
}

#[test]
fn a_batch_with_nan_is_named_by_its_input() {
    let mut trainer = trainer(&network(8).0.build().unwrap(), 2);
    let before = residents(&trainer);
    let bad = filled(8, f32::NAN);
    assert!(trainer.step(&bad).unwrap().skipped());
    let trace = trainer.trace(&bad).unwrap();
    assert_eq!((trace.found[0].operator.as_deref(), trace.found[0].result.name.as_str()), (None, "image"));
    assert!(trace.to_string().starts_with("'image: f32[8,81]' has NaN as it comes in\n  at "), "{trace}");
    assert_eq!(residents(&trainer), before);
}

#[test]
fn finite_inputs_that_overflow_are_named_by_operator_line_and_operands() {
    let (step, line) = network(8);
    let mut trainer = trainer(&step.build().unwrap(), 2);
    trainer.set("fc1.weight", &Literal::from_f32([16, 81], &[0.5; 16 * 81])).unwrap();
    let before = residents(&trainer);
    let bad = filled(8, 3e38);
    assert!(trainer.step(&bad).unwrap().skipped());
    let trace = trainer.trace(&bad).unwrap();
    let first = &trace.found[0];
    assert_eq!(first.operator.as_deref(), Some("dot_general in linear"));
    assert_eq!((&*first.loc.file, first.loc.line), (file!(), line));
    assert!(first.operands.iter().all(|operand| operand.worst == Worst::Finite));
    assert_eq!(first.operands.iter().map(|o| o.largest as f32).fold(0.0, f32::max), 3e38);
    assert!(trace.to_string().contains(&format!("tracing.rs:{line}")), "{trace}");
    assert_eq!(residents(&trainer), before);
    // A step that is good has nothing to trace.
    let good = &batches_of(&small_digits(8), 8)[0];
    assert!(!trainer.step(good).unwrap().skipped());
    assert!(trainer.trace(good).unwrap().found.is_empty());
}

#[test]
fn an_overflow_that_the_loss_scale_made_is_found_with_the_scale_of_that_step() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
    let scale = LossScale::Dynamic { initial: 16.0, growth: 2.0, backoff: 0.5, interval: 100 };
    let line = line!() + 1;
    let loss = (&x * &w).sum_all();
    let model = TrainStep::new(&loss).optimizer(Sgd::new(0.0)).loss_scale(scale).build().unwrap();
    let mut trainer = trainer(&model, 1);
    // 16 · 3e37 is beyond f32, 8 · 3e37 is not.
    let batch = vector(&[3e37, 1.0]);
    assert!(trainer.step(&batch).unwrap().skipped());
    let trace = trainer.trace(&batch).unwrap();
    assert_eq!((trace.found[0].operator.as_deref(), trace.found[0].loc.line), (Some("mul"), line), "{trace}");
    assert!(!trainer.step(&batch).unwrap().skipped());
}

#[test]
fn overflows_within_loops_and_micro_batches_are_found_where_they_arise() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ONES));
    let line = line!() + 1;
    let loss = (&x * &w).exp().sum_all();
    let step = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).accumulate(3, None);
    let mut trainer = trainer(&step.build().unwrap(), 1);
    let batch = vector(&[1.0, 2.0, 3.0, 4.0, 5.0, 600.0]);
    assert!(trainer.step(&batch).unwrap().skipped());
    let found = trainer.trace(&batch).unwrap().found;
    assert_eq!((found[0].operator.as_deref(), found[0].loc.line), (Some("exp"), line));
}

#[test]
fn an_overflow_of_the_policys_dtype_is_found_in_that_dtype() {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::Constant(300.0)));
    let line = line!() + 1;
    let loss = (&x * &w).sum_all();
    let model = TrainStep::new(&loss).optimizer(Sgd::new(0.0)).build().unwrap();
    let cpu = Cpu::default().threads(1);
    let batch = vector(&[300.0, 1.0]);
    let mut wide = Trainer::new(model.compile(&cpu).unwrap());
    assert!(!wide.step(&batch).unwrap().skipped());
    let mut half = Trainer::new(model.compile_with(&cpu, &Policy::f16_engine()).unwrap());
    let out = half.step(&batch).unwrap();
    let trace = half.trace(&batch).unwrap();
    assert!(out["loss"].is_infinite(), "{out:?}");
    assert_eq!((trace.found[0].operator.as_deref(), trace.found[0].loc.line), (Some("mul"), line), "{trace}");
}

#[test]
fn a_run_with_bad_batches_tells_where_and_ends_with_the_bits_of_a_run_without_them() {
    let data = small_digits(256);
    let (step, line) = network(32);
    let model = step.unroll(2).build().unwrap();
    let mut clean = trainer(&model, 2);
    clean.fit(data.batches(32).in_order(), FitOptions::default()).unwrap();

    // The same samples, between them a batch of NaN and one that overflows.
    let order: Vec<usize> = (0..64).chain(0..32).chain(64..160).chain(0..32).chain(160..256).collect();
    let mut images = data.select(&order).unwrap().column("image").unwrap().to_f32();
    images[64 * 81..96 * 81].fill(f32::NAN);
    images[192 * 81..224 * 81].fill(f32::MIN);
    let poisoned = data.select(&order).unwrap();
    let poisoned = poisoned.with_column("image", Literal::from_f32([320, 81], &images)).unwrap();
    for nan_trace in [false, true] {
        let mut told = Vec::new();
        let options = FitOptions {
            nan_trace,
            on_event: Some(Box::new(|event| {
                if let Event::Skipped { batch, trace, .. } = event {
                    told.push((*batch, trace.as_ref().map(ToString::to_string)));
                }
            })),
            ..FitOptions::default()
        };
        let mut bad = trainer(&model, 2);
        bad.fit(poisoned.batches(32).in_order(), options).unwrap();
        assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), [2, 6]);
        assert_eq!(told.iter().filter(|t| t.1.is_some()).count(), if nan_trace { 2 } else { 0 });
        if let [(_, Some(nan)), (_, Some(overflow))] = &told[..] {
            assert!(nan.starts_with("'image: f32[32,81]' has NaN"), "{nan}");
            assert!(overflow.contains(&format!("tracing.rs:{line}")), "{overflow}");
        }
        assert_eq!((bad.steps(), bad.skipped()), (8, 2));
        assert_eq!(residents(&bad), residents(&clean));
    }
    let e = noisy_step(8, false).unroll(0).build().map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("0 steps in one program"), "{e}");
}
