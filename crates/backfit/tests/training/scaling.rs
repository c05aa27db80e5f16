//! Loss scaling: it changes no bit where nothing over- or underflows, keeps what half precision would lose, and adapts.

use crate::models::{batches_of, filled, noisy_step, residents, small_digits, trainer, vector, without_scale};
use backfit::grad::{GOOD_STEPS, LOSS_SCALE, SCALE};
use backfit::prelude::*;
use backfit::{Optimizer, Updated};

const GROWING: LossScale = LossScale::Dynamic { initial: 1024.0, growth: 2.0, backoff: 0.5, interval: 3 };

/// Residents and losses after ten steps.
fn run(step: TrainStep) -> (Vec<(String, Literal)>, Vec<u64>) {
    let mut trainer = trainer(&step.build().unwrap(), 2);
    let losses =
        batches_of(&small_digits(320), 32).iter().map(|b| trainer.step(b).unwrap()["loss"].to_bits()).collect();
    (without_scale(&trainer), losses)
}

#[test]
fn a_scale_that_is_a_power_of_two_changes_no_bit_for_any_optimizer_clipped_or_not() {
    let plain = || noisy_step(32, false);
    let steps: [&dyn Fn() -> TrainStep; 5] = [
        &plain,
        &|| plain().optimizer(Sgd::new(0.1).momentum(0.9).weight_decay(1e-3)),
        &|| plain().optimizer(Adam::new(1e-2).epsilon(1e-3)),
        &|| plain().optimizer(RmsProp::new(1e-3).centered()),
        &|| plain().clip(Clip::GlobalNorm(0.5)),
    ];
    for (i, step) in steps.into_iter().enumerate() {
        let unscaled = run(step());
        for scale in [LossScale::Static(4096.0), LossScale::Static(1.0), GROWING] {
            assert!(run(step().loss_scale(scale)) == unscaled, "model {i}, {scale:?}");
        }
    }
}

/// Σ x·w in f32 from zero, with steps of size 1: minus the weight is the sum of the gradients.
fn linear(step: impl FnOnce(TrainStep) -> TrainStep) -> Trainer {
    let g = Graph::new();
    let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ZEROS));
    let model = step(TrainStep::new(&(&x * &w).sum_all()).optimizer(Sgd::new(1.0)));
    trainer(&model.build().unwrap(), 1)
}

#[test]
fn a_dynamic_scale_goes_the_way_of_pytorch() {
    // torch.amp.GradScaler("cpu", init_scale=1024, growth_factor=2, backoff_factor=0.5, growth_interval=3) of PyTorch 2.
    let bad = [0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(|b| b == 1);
    let torch =
        [1024, 1024, 1024, 2048, 1024, 1024, 1024, 512, 512, 512, 1024, 1024, 512, 256, 256, 256].map(f64::from);
    let mut trainer = linear(|step| step.loss_scale(GROWING));
    for (bad, expected) in bad.into_iter().zip(torch) {
        let out = trainer.step(&vector(&[1.0, if bad { f32::INFINITY } else { 2.0 }])).unwrap();
        assert_eq!((out[SCALE], out.skipped()), (expected, bad));
    }
    assert_eq!(trainer.get(LOSS_SCALE).unwrap().to_f64(), [512.0]);
    assert_eq!((trainer.steps(), trainer.skipped()), (12, 4));
    assert_eq!(trainer.get("w").unwrap().to_f64(), [-12.0, -24.0]);
}

#[test]
fn a_bad_step_changes_the_scale_and_its_counter_and_nothing_else() {
    let mut trainer = trainer(&noisy_step(32, false).loss_scale(GROWING).ema(0.9).build().unwrap(), 2);
    trainer.step(&batches_of(&small_digits(32), 32)[0]).unwrap();
    let before = without_scale(&trainer);
    for (row, number) in [f32::NAN, f32::INFINITY, 3e38].into_iter().enumerate() {
        let out = trainer.step(&filled(32, number)).unwrap();
        assert!(out.skipped() && out.skipped_in_a_row() == row as u64 + 1, "{number}");
        assert_eq!(without_scale(&trainer), before, "{number}");
    }
    assert_eq!(trainer.get(LOSS_SCALE).unwrap().to_f64(), [128.0]);
    assert_eq!(trainer.get(GOOD_STEPS).unwrap().to_i64(), [0]);
    assert_eq!((trainer.steps(), trainer.skipped(), trainer.skipped_in_a_row()), (1, 3, 3));
}

#[test]
fn the_scale_stays_between_1_and_2_to_the_100() {
    let quick = |initial| LossScale::Dynamic { initial, growth: 1024.0, backoff: 1e-3, interval: 1 };
    let mut low = linear(|step| step.loss_scale(quick(4.0)));
    low.step(&vector(&[f32::NAN, 0.0])).unwrap();
    assert_eq!(low.get(LOSS_SCALE).unwrap().to_f64(), [1.0]);
    let mut high = linear(|step| step.loss_scale(quick(2f64.powi(95))));
    (0..3).for_each(|_| assert!(!high.step(&vector(&[1.0, 1.0])).unwrap().skipped()));
    assert_eq!(high.get(LOSS_SCALE).unwrap().to_f64(), [2f64.powi(100)]);
    assert_eq!(high.get("w").unwrap().to_f64(), [-3.0, -3.0]);
}

#[test]
fn gradients_that_f16_would_lose_arrive_with_a_scale() {
    // The gradient is 2⁻¹³ · 2⁻¹³, less than the least number above zero in f16, 2⁻²⁴.
    let small = 2f64.powi(-13);
    let moved = |scale: Option<LossScale>| {
        let g = Graph::new();
        let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ZEROS));
        let loss = ((x.cast(F16) * w.cast(F16)) * small).sum_all();
        let step = TrainStep::new(&loss).optimizer(Sgd::new(1.0));
        let step = scale.into_iter().fold(step, TrainStep::loss_scale);
        let mut trainer = trainer(&step.build().unwrap(), 1);
        trainer.step(&vector(&[small as f32, 2.0 * small as f32])).unwrap();
        trainer.get("w").unwrap().to_f64()
    };
    assert_eq!(moved(None), [0.0, 0.0]);
    for scale in [LossScale::Static(1024.0), GROWING] {
        assert_eq!(moved(Some(scale)), [-small * small, -2.0 * small * small], "{scale:?}");
    }
}

#[test]
fn a_scale_keeps_what_a_policy_of_f16_would_lose() {
    let small = 2f64.powi(-13);
    let moved = |scale: Option<LossScale>| {
        let g = Graph::new();
        let (x, w) = (g.input("x", F32, [2]), g.weight("w", Type::new(F32, [2]), Init::ZEROS));
        let step = TrainStep::new(&(&x * &w * small).sum_all()).optimizer(Sgd::new(1.0)).clip(Clip::Value(1.0));
        let model = scale.into_iter().fold(step, TrainStep::loss_scale).build().unwrap();
        let mut trainer = Trainer::new(model.compile_with(&Cpu::default().threads(1), &Policy::f16()).unwrap());
        trainer.step(&vector(&[small as f32, 2.0 * small as f32])).unwrap();
        trainer.get("w").unwrap().to_f64()
    };
    assert_eq!(moved(None), [0.0, 0.0]);
    assert_eq!(moved(Some(LossScale::Static(1024.0))), [-small * small, -2.0 * small * small]);
}

/// Adam as it is done wrong: its ratio has cancelled the scale of the gradients, and then the step is divided by it.
#[derive(Debug)]
struct DoublyUnscaled(Adam, f64);

impl Optimizer for DoublyUnscaled {
    fn slots(&self) -> Vec<&'static str> {
        self.0.slots()
    }

    fn hypers(&self) -> Vec<&'static str> {
        self.0.hypers()
    }

    fn hyper_values(&self, step: u64, learning_rate: f64, values: &mut [f64]) {
        self.0.hyper_values(step, learning_rate, values);
    }

    fn learning_rate(&self) -> f64 {
        self.0.learning_rate()
    }

    fn update(&self, weight: &Tensor, slots: &[Tensor], gradient: &Tensor, hypers: &[Tensor]) -> Updated {
        let scaled = gradient * self.1;
        let new = self.0.update(weight, slots, &scaled, hypers);
        Updated { weight: weight + (new.weight - weight) / self.1, slots: new.slots }
    }
}

#[test]
fn adam_that_is_unscaled_twice_goes_astray_by_the_scale() {
    let moved = |step: &dyn Fn(TrainStep) -> TrainStep| {
        let mut trainer = linear(step);
        for _ in 0..4 {
            trainer.step(&vector(&[0.25, -3.0])).unwrap();
        }
        trainer.get("w").unwrap().to_f64()
    };
    let scale = LossScale::Static(256.0);
    let right = moved(&|step| step.optimizer(Adam::new(0.01)));
    assert_eq!(moved(&|step| step.optimizer(Adam::new(0.01)).loss_scale(scale)), right);
    let wrong = moved(&|step| step.optimizer(DoublyUnscaled(Adam::new(0.01), 256.0)));
    for (wrong, right) in wrong.iter().zip(&right) {
        assert!((wrong * 256.0 / right - 1.0).abs() < 1e-3, "{wrong} {right}");
    }
}

#[test]
fn the_first_and_every_hundredth_step_skipped_in_a_row_is_told() {
    let mut told = Vec::new();
    let options = FitOptions {
        max_skipped_in_a_row: 1000,
        on_event: Some(Box::new(|event| {
            if let Event::Skipped { output, trace, .. } = event {
                assert!(trace.is_none() && event.to_json()["event"] == "skipped");
                told.push((output.skipped_in_a_row(), event.to_json()["loss_scale"].as_f64().unwrap()));
            }
        })),
        ..FitOptions::default()
    };
    let data = Dataset::new([("x", Literal::from_f32([500], &[f32::NAN; 500]))]).unwrap();
    let mut trainer = linear(|step| step.loss_scale(GROWING));
    trainer.fit(data.batches(2).in_order(), options).unwrap();
    assert_eq!(told, [(1, 1024.0), (100, 1.0), (200, 1.0)]);
    assert_eq!((trainer.skipped(), trainer.steps()), (250, 0));
}

#[test]
fn scales_that_cannot_be_are_refused() {
    let dynamic = |initial, growth, backoff, interval| LossScale::Dynamic { initial, growth, backoff, interval };
    let cases = [
        (LossScale::Static(0.5), "a loss scale of 0.5"),
        (LossScale::Static(f64::NAN), "a loss scale of NaN"),
        (dynamic(f64::INFINITY, 2.0, 0.5, 1), "initial loss scale of inf"),
        (dynamic(2.0, 2.0, 0.5, u32::MAX), "after 4294967295 good steps"),
        (dynamic(8.0, 1.0, 0.5, 1), "grows by the factor 1"),
        (dynamic(8.0, 2.0, 1.0, 1), "backs off by the factor 1"),
        (dynamic(8.0, 2.0, 0.5, 0), "after 0 good steps"),
    ];
    for (scale, words) in cases {
        let e = noisy_step(8, false).loss_scale(scale).build().map(|_| ()).unwrap_err().to_string();
        assert!(e.contains(words) && e.contains("help: "), "{e}");
    }
    let e = noisy_step(8, false).loss_scale(GROWING).unguarded().build().map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("needs the guard"), "{e}");
}

#[test]
fn a_static_scale_needs_no_state_and_a_dynamic_one_two_numbers() {
    let names = |step: TrainStep| {
        let trainer = trainer(&step.build().unwrap(), 1);
        residents(&trainer).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let plain = names(noisy_step(8, false));
    assert_eq!(names(noisy_step(8, false).loss_scale(LossScale::Static(8.0))), plain);
    let mut more = names(noisy_step(8, false).loss_scale(LossScale::dynamic()));
    more.retain(|name| !plain.contains(name));
    assert_eq!(more, [LOSS_SCALE, GOOD_STEPS]);
}
