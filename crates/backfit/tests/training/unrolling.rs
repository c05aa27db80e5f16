//! Several steps in one run of the program have the bits of single steps, skipped ones among them.

use crate::models::{Scratch, batches_of, filled, noisy, noisy_step, residents, small_digits, trainer};
use backfit::grad::SCALE;
use backfit::precision::{Class, Compute};
use backfit::prelude::*;

/// Dropout, batch norm, averages, a loss scale: every kind of state.
fn rich() -> TrainStep {
    let scale = LossScale::Dynamic { initial: 256.0, growth: 2.0, backoff: 0.5, interval: 2 };
    noisy_step(16, false).loss_scale(scale).ema(0.9).clip(Clip::GlobalNorm(1.0))
}

/// Eleven batches, of which the third and the seventh are bad, and the last is not full.
fn batches() -> Vec<Batch> {
    let mut all = batches_of(&small_digits(11 * 16 - 5), 16);
    all[2] = filled(16, f32::NAN);
    all[6] = filled(16, f32::INFINITY);
    all
}

fn told(out: &backfit::StepOutput) -> (u64, u64, bool, u64, u64, u64) {
    let bits = |name| out[name].to_bits();
    (out.step(), out.learning_rate().to_bits(), out.skipped(), bits("loss"), bits("accuracy"), bits(SCALE))
}

#[test]
fn several_steps_at_once_have_the_bits_of_single_steps() {
    let schedule = Schedule::Cosine { total: 9, min: 1e-4 };
    let mut single = trainer(&rich().build().unwrap(), 2).schedule(schedule);
    let expected: Vec<_> = batches().iter().map(|batch| told(&single.step(batch).unwrap())).collect();
    assert_eq!(expected.iter().filter(|e| e.2).count(), 2);
    for at_once in [1, 4, 11] {
        let model = rich().unroll(at_once).build().unwrap();
        let mut several = trainer(&model, 1).schedule(schedule);
        assert_eq!(several.steps_at_once(), at_once);
        let found: Vec<_> = several.step_all(&batches()).unwrap().iter().map(told).collect();
        assert_eq!(found, expected, "{at_once} at once");
        assert_eq!(residents(&several), residents(&single), "{at_once} at once");
        assert_eq!((several.steps(), several.skipped()), (9, 2));
    }
}

#[test]
fn every_optimizer_has_the_bits_of_single_steps_and_of_unscaled_ones() {
    fn check(optimizer: impl backfit::Optimizer + Clone + 'static) {
        let run = |change: &dyn Fn(TrainStep) -> TrainStep| {
            let step = change(noisy_step(16, false).optimizer(optimizer.clone()));
            let mut trainer = trainer(&step.build().unwrap(), 2).schedule(Schedule::Linear { total: 20, min: 0.0 });
            trainer.step_all(&batches()).unwrap();
            residents(&trainer)
        };
        let single = run(&|step| step);
        assert!(run(&|step| step.unroll(4)) == single, "{optimizer:?}");
        assert!(run(&|step| step.loss_scale(LossScale::Static(512.0))) == single, "{optimizer:?} with a loss scale");
    }
    check(Sgd::new(0.1).momentum(0.9).nesterov());
    check(RmsProp::new(1e-3).centered().momentum(0.9));
    check(Lion::new(1e-3));
    check(Adafactor::new(1e-2));
}

#[test]
fn several_steps_at_once_have_the_bits_of_single_steps_under_every_policy() {
    let updates_on_engine = Policy::f16_engine().with(Class::Update, Compute::F16);
    for policy in [Policy::bf16(), Policy::f16(), Policy::f16_engine(), updates_on_engine] {
        let run = |step: TrainStep| {
            let model = step.build().unwrap();
            let mut trainer = Trainer::new(model.compile_with(&Cpu::default().threads(2), &policy).unwrap());
            trainer.step_all(&batches()).unwrap();
            residents(&trainer)
        };
        assert!(run(rich().unroll(4)) == run(rich()), "{}", policy.name());
    }
}

#[test]
fn the_program_has_as_many_instructions_for_any_number_of_steps() {
    let instructions = |steps| {
        let trainer = trainer(&rich().unroll(steps).build().unwrap(), 1);
        let functions = trainer.executable().functions();
        functions.iter().map(|f| (f.name.clone(), f.instructions.len())).collect::<Vec<_>>()
    };
    let two = instructions(2);
    assert!(two.iter().any(|(name, _)| name == "steps"));
    assert_eq!(two, instructions(32));
}

#[test]
fn loops_of_layers_within_micro_batches_within_several_steps_have_the_bits_of_single_steps() {
    let stacked = || {
        let g = Graph::new();
        let (x, label) = (g.input("image", F32, [8, 81]), g.input("label", I32, [8]));
        let h = nn::linear(&g, "in", &x, 12);
        let h = nn::Stack::new("layers", 3)
            .taps(Taps::Inputs)
            .apply(&g, &h, |g, x, _| x + nn::linear(g, "fc", x, 12).tanh().dropout(0.1));
        let loss = nn::linear(&g, "out", &h, 10).cross_entropy(&label);
        TrainStep::new(&loss).optimizer(AdamW::new(1e-2)).accumulate(2, None)
    };
    let batches = batches_of(&small_digits(16 * 6), 16);
    let run = |step: TrainStep| {
        let mut trainer = trainer(&step.build().unwrap(), 2);
        trainer.step_all(&batches).unwrap();
        residents(&trainer)
    };
    assert_eq!(run(stacked().unroll(3)), run(stacked()));
}

#[test]
fn reports_of_any_shape_are_those_of_the_last_step() {
    let g = Graph::new();
    let x = g.input("x", F32, [2]);
    let w = g.weight("w", Type::new(F32, [2]), Init::ZEROS);
    let scale = g.hyper("scale", F32);
    let y = &x * &w * &scale;
    let step = TrainStep::new(&y.sum_all()).optimizer(Sgd::new(1.0)).report("y", &y).unroll(2);
    let mut trainer = trainer(&step.build().unwrap(), 1);
    trainer.set_hyper("scale", 2.0).unwrap();
    let data = Dataset::new([("x", Literal::from_f32([4], &[1.0, 2.0, 3.0, 4.0]))]).unwrap();
    trainer.step_all(&batches_of(&data, 2)).unwrap();
    let e = trainer.trace(&batches_of(&data, 2)[0]).unwrap_err().to_string();
    assert!(e.contains("several steps") && e.contains("`step`"), "{e}");
    // After the first step w is −2·[1, 2].
    assert_eq!(trainer.reported("y").unwrap(), Literal::from_f32([2], &[-12.0, -32.0]));
    assert_eq!(trainer.get("w").unwrap().to_f64(), [-8.0, -12.0]);
}

#[test]
fn a_fit_of_several_steps_at_once_is_saved_resumed_and_ends_as_one_of_single_steps() {
    let data = small_digits(200);
    let file = Scratch::new("unrolled");
    let mut single = trainer(&noisy(16, false).unwrap(), 2);
    single.fit(data.batches(16).seed(3), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();

    let model = noisy_step(16, false).unroll(5).build().unwrap();
    let mut first = trainer(&model, 2);
    let mut saved = Vec::new();
    let checkpoints = Checkpoints { path: file.0.clone(), every: 4, ..Checkpoints::default() };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let options = FitOptions {
        epochs: 2,
        checkpoints: Some(checkpoints),
        stop: Some(&stop),
        on_event: Some(Box::new(|event| {
            if let Event::Saved { step, .. } = event {
                saved.push(*step);
                stop.store(*step == 18, std::sync::atomic::Ordering::Relaxed);
            }
        })),
        ..FitOptions::default()
    };
    first.fit(data.batches(16).seed(3), options).unwrap();
    // Thirteen steps an epoch, in runs of 5, 5 and 3; the end of an epoch is saved in any case.
    assert_eq!(saved, [5, 10, 13, 18, 18]);
    let mut second = trainer(&model, 1);
    second.resume(&file.0).unwrap();
    second.fit(data.batches(16).seed(3), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();
    assert_eq!(residents(&second), residents(&single));
    assert_eq!(second.steps(), 26);
}
