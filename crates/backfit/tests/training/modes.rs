//! What holds in every mode of training: exact resumption, and prediction beside it on one store.

use crate::models::{Scratch, batches_of, filled, noisy_step, residents, small_digits, trainer};
use backfit::TrainModule;
use backfit::precision::Masters;
use backfit::prelude::*;

/// A model for each mode, and whether it runs in shuttle mode. All take 16 rows.
fn modes() -> Vec<(&'static str, TrainModule, bool)> {
    let plain = || noisy_step(16, false);
    let scale = LossScale::Dynamic { initial: 64.0, growth: 2.0, backoff: 0.5, interval: 2 };
    let freeze = Group { frozen: true, ..Group::default() };
    let slow = Group { rate: 0.1, decay: 0.0, frozen: false };
    [
        ("several at once", plain().unroll(3), false),
        ("micro-batches", noisy_step(4, false).accumulate(4, None), false),
        ("micro-batches, several at once", noisy_step(4, false).accumulate(4, None).unroll(2), false),
        ("a dynamic loss scale and averages", plain().loss_scale(scale).ema(0.9), false),
        ("groups", plain().group("fc1.*", freeze).group("*.bias", slow), false),
        ("an optimizer on the host", plain().optimizer_on_host(), false),
        ("shuttle", plain().loss_scale(scale).unroll(2), true),
    ]
    .map(|(name, step, shuttle)| (name, step.build().unwrap(), shuttle))
    .into()
}

fn start(model: &TrainModule, shuttle: bool) -> Trainer {
    let cpu = Cpu::default().threads(2);
    if shuttle { Trainer::new(model.compile(&Shuttle::new(&cpu)).unwrap()) } else { trainer(model, 2) }
}

#[test]
fn a_resumed_run_goes_on_bit_for_bit_in_every_mode() {
    let mut batches = batches_of(&small_digits(160), 16);
    batches[3] = filled(16, f32::NAN);
    for (name, model, shuttle) in modes() {
        let file = Scratch::new("modes");
        let mut straight = start(&model, shuttle);
        straight.step_all(&batches).unwrap();
        let mut first = start(&model, shuttle);
        first.step_all(&batches[..4]).unwrap();
        first.save(&file.0).unwrap();
        let mut second = start(&model, shuttle).seed(9).unwrap();
        second.resume(&file.0).unwrap();
        assert_eq!((second.steps(), second.skipped(), second.skipped_in_a_row()), (3, 1, 1), "{name}");
        second.step_all(&batches[4..]).unwrap();
        assert!(residents(&second) == residents(&straight), "{name}");
        assert_eq!((second.steps(), second.skipped(), second.skipped_in_a_row()), (9, 1, 0), "{name}");
    }
}

#[test]
fn prediction_beside_training_sees_the_weights_at_once_and_disturbs_nothing() {
    let data = small_digits(48);
    for (name, model, shuttle) in modes() {
        let mut alone = start(&model, shuttle);
        let mut beside = start(&model, shuttle);
        let mut last = beside.predict(&data).unwrap();
        for batch in batches_of(&small_digits(64), 16) {
            alone.step(&batch).unwrap();
            beside.step(&batch).unwrap();
            let predicted = beside.predict(&data).unwrap();
            beside.evaluate(&data).unwrap();
            assert_ne!(predicted, last, "{name}");
            last = predicted;
        }
        assert!(residents(&alone) == residents(&beside), "{name}");
        assert!(alone.predict(&data).unwrap() == last, "{name}");
    }
}

/// Borders of convolutions, shares of pooled maxima, norm weights, causal masks: constants that derivatives bring along.
fn constant_rich() -> TrainStep {
    let g = Graph::new();
    let (x, label) = (g.input("image", F32, [8, 81]), g.input("label", I32, [8]));
    let h = nn::Conv2d::new("conv", 4, [3, 3]).padding([1, 1]).apply(&g, &x.reshape([8, 1, 9, 9]));
    let h = nn::group_norm(&g, "gn", &h, 2).relu().max_pool2d([3, 3], [3, 3], [0, 0]);
    let h = nn::TransformerBlock::new("block", 2, 8).causal(true).apply(&g, &h.reshape([8, 9, 4]));
    let logits = nn::linear(&g, "out", &h.flatten(1), 10);
    TrainStep::new(&logits.cross_entropy(&label)).optimizer(AdamW::new(1e-2))
}

#[test]
fn constants_that_derivatives_bring_along_are_right_in_every_mode() {
    let batches = batches_of(&small_digits(48), 8);
    let run = |step: TrainStep, shuttle: bool| {
        let mut trainer = start(&step.build().unwrap(), shuttle);
        trainer.step_all(&batches).unwrap();
        residents(&trainer)
    };
    let plain = run(constant_rich(), false);
    assert!(run(constant_rich().unroll(3), false) == plain, "several at once");
    assert!(run(constant_rich(), true) == plain, "shuttle");
    assert!(run(constant_rich().accumulate(1, None).unroll(2), true) == plain, "micro-batches in shuttle mode");
    assert!(run(constant_rich().optimizer_on_host(), false) == plain, "an optimizer on the host");
}

#[test]
fn shuttle_mode_keeps_weights_as_the_policy_stores_them_and_modes_that_cannot_refuse() {
    let cpu = Cpu::default().threads(2);
    let batches = batches_of(&small_digits(64), 16);
    for policy in
        [Policy::bf16(), Policy::bf16().masters(Masters::Stochastic), Policy::f32().masters(Masters::Compensated)]
    {
        let run = |target: &dyn Target| {
            let model = noisy_step(16, false).build().unwrap();
            let mut trainer = Trainer::new(model.compile_with(target, &policy).unwrap());
            trainer.step_all(&batches).unwrap();
            (residents(&trainer), trainer.predict(&small_digits(16)).unwrap())
        };
        assert!(run(&cpu) == run(&Shuttle::new(&cpu)), "{policy}");
        let refused = |step: TrainStep| step.build().unwrap().compile_with(&cpu, &policy).err().map(|e| e.to_string());
        let [unrolled, host] =
            [noisy_step(16, false).unroll(2), noisy_step(16, false).optimizer_on_host()].map(refused);
        if policy.stores() != Masters::F32 {
            assert!(unrolled.unwrap().contains("several steps") && host.unwrap().contains("on the host"), "{policy}");
        }
    }
}
