//! Runs over epochs: events, early stopping, checkpoints, interruption.

use crate::models::{Scratch, noisy, residents, small_digits, trainer};
use backfit::Checkpoint;
use backfit::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn events_come_in_order_and_are_json() {
    let mut events = Vec::new();
    let options = FitOptions {
        epochs: 2,
        validation: Some(small_digits(64)),
        on_event: Some(Box::new(|event| events.push(event.to_json()))),
        ..FitOptions::default()
    };
    trainer(&noisy(32, false).unwrap(), 1).fit(small_digits(96).batches(32), options).unwrap();
    let kinds: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    let epoch = ["step", "step", "step", "epoch", "validation"];
    assert_eq!(kinds, [&["started"][..], &epoch, &epoch, &["finished"]].concat());
    assert_eq!((&events[7]["epoch"], &events[7]["batch"], &events[7]["step"]), (&1.into(), &1.into(), &5.into()));
    assert!(events[5]["metrics"]["accuracy"].is_number());
    assert_eq!(events[5]["epoch"], 0);
}

#[test]
fn patience_ends_a_run_that_no_longer_improves_and_keeps_the_best() {
    let best = Scratch::new("best");
    let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
    // Labels that cannot be learnt from other images.
    let options = FitOptions {
        epochs: 60,
        validation: Some(small_digits(256).range(160..256)),
        patience: Some(2),
        best: Some(best.0.clone()),
        ..FitOptions::default()
    };
    let report = trainer.fit(small_digits(32).batches(32), options).unwrap();
    assert_eq!(report.stopped, Stopped::Early);
    let last = report.validation.unwrap()["loss"];
    trainer.resume(&best.0).unwrap();
    let kept = trainer.evaluate(&small_digits(256).range(160..256)).unwrap()["loss"];
    assert_eq!(Some(kept), report.best);
    assert!(kept < last, "{kept} {last}");
}

#[test]
fn an_interrupted_fit_goes_on_bit_for_bit() {
    let file = Scratch::new("interrupted");
    let model = noisy(32, false).unwrap();
    let data = small_digits(160);
    let mut straight = trainer(&model, 2);
    straight.fit(data.batches(32).seed(2), FitOptions { epochs: 3, ..FitOptions::default() }).unwrap();

    let stop = AtomicBool::new(false);
    let checkpoints = Checkpoints { path: file.0.clone(), ..Checkpoints::default() };
    let options = FitOptions {
        epochs: 3,
        checkpoints: Some(checkpoints.clone()),
        stop: Some(&stop),
        on_event: Some(Box::new(|event| {
            if let Event::Step { output, .. } = event {
                stop.store(output.step() == 7, Ordering::Relaxed);
            }
        })),
        ..FitOptions::default()
    };
    let mut first = trainer(&model, 2);
    let report = first.fit(data.batches(32).seed(2), options).unwrap();
    assert_eq!((report.stopped, report.steps), (Stopped::Interrupted, 7));

    let mut second = trainer(&model, 1);
    second.resume(&file.0).unwrap();
    let options = FitOptions { epochs: 3, checkpoints: Some(checkpoints), ..FitOptions::default() };
    let report = second.fit(data.batches(32).seed(2), options).unwrap();
    assert_eq!((report.stopped, report.steps), (Stopped::Done, 15));
    assert_eq!(residents(&second), residents(&straight));
}

/// The bits of the numbers by which a fit of two epochs is judged: the means of each, and the best.
fn judged(trainer: &mut Trainer, data: &Dataset) -> Vec<u64> {
    let mut means = Vec::new();
    let options = FitOptions {
        epochs: 2,
        on_event: Some(Box::new(|event| {
            if let Event::Epoch(report) = event {
                means.extend(report.scalars.iter().map(|(_, mean)| mean.to_bits()));
            }
        })),
        ..FitOptions::default()
    };
    let best = trainer.fit(data.batches(32).seed(2), options).unwrap().best;
    means.extend(best.map(f64::to_bits));
    means
}

#[test]
fn an_epoch_resumed_within_is_judged_by_all_of_its_steps() {
    let (file, old) = (Scratch::new("judged"), Scratch::new("judged-old"));
    let (model, data) = (noisy(32, false).unwrap(), small_digits(144));
    // Added up from what the steps return, one after the other; the last of an epoch has half the samples.
    let mut straight = trainer(&model, 1);
    let mut sums = [[0.0; 2]; 2];
    for (number, batch) in data.batches(32).seed(2).epochs(2).enumerate() {
        let batch = batch.unwrap();
        if number == 2 {
            straight.save(&file.0).unwrap();
        }
        let out = straight.step(&batch).unwrap();
        let weigh = |name: &str| out[name] * batch.samples() as f64;
        let sum = &mut sums[number / 5];
        *sum = [sum[0] + weigh("loss"), sum[1] + weigh("accuracy")];
    }
    let means = sums.map(|sum| sum.map(|sum| sum / 144.0));
    let best = means[0][0].min(means[1][0]);
    let expected: Vec<u64> = means.iter().flatten().chain([&best]).map(|number| number.to_bits()).collect();
    assert_eq!(judged(&mut trainer(&model, 1), &data), expected);

    let mut resumed = trainer(&model, 2);
    resumed.resume(&file.0).unwrap();
    assert_eq!(judged(&mut resumed, &data), expected);
    assert_eq!(residents(&resumed), residents(&straight));

    // A checkpoint that does not have the sums yet: the first epoch is judged by its rest, and all else is the same.
    let mut checkpoint = Checkpoint::load(&file.0).unwrap();
    checkpoint.metadata.retain(|key, _| !key.starts_with("epoch."));
    checkpoint.save(&old.0).unwrap();
    let mut resumed = trainer(&model, 1);
    resumed.resume(&old.0).unwrap();
    let found = judged(&mut resumed, &data);
    assert!(found[..2] != expected[..2] && found[2..4] == expected[2..4], "{found:?}");
    assert_eq!(residents(&resumed), residents(&straight));
}

#[test]
fn a_run_whose_gradients_are_never_finite_gives_up_with_advice() {
    let data = small_digits(64).with_column("image", Literal::from_f32([64, 81], &[f32::INFINITY; 64 * 81])).unwrap();
    let options = FitOptions { epochs: 9, max_skipped_in_a_row: 3, ..FitOptions::default() };
    let e = trainer(&noisy(32, false).unwrap(), 1).fit(data.batches(32), options).unwrap_err().to_string();
    assert!(e.contains("4 steps in a row") && e.contains("learning rate"), "{e}");
}

#[test]
fn a_run_that_gives_up_is_saved_first_and_goes_on_bit_for_bit() {
    let (file, model) = (Scratch::new("given-up"), noisy(32, false).unwrap());
    let mut image = small_digits(160).column("image").unwrap().to_f32();
    image[100 * 81] = f32::INFINITY;
    let data = small_digits(160).with_column("image", Literal::from_f32([160, 81], &image)).unwrap();
    let batches = || data.batches(32).seed(2);
    let mut straight = trainer(&model, 1);
    straight.fit(batches(), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();
    assert_eq!((straight.steps(), straight.skipped()), (8, 2));

    let mut saved = Vec::new();
    let options = FitOptions {
        epochs: 2,
        max_skipped_in_a_row: 0,
        checkpoints: Some(Checkpoints { path: file.0.clone(), ..Checkpoints::default() }),
        on_event: Some(Box::new(|event| saved.extend(matches!(event, Event::Saved { .. }).then(|| event.to_json())))),
        ..FitOptions::default()
    };
    let mut first = trainer(&model, 1);
    assert!(first.fit(batches(), options).unwrap_err().to_string().contains("1 steps in a row"));
    let applied = first.steps();
    assert!(applied > 0 && applied < 5, "{applied}");
    assert_eq!(saved.iter().map(|event| event["step"].as_u64()).collect::<Vec<_>>(), [Some(applied)]);

    let mut second = trainer(&model, 1);
    second.resume(&file.0).unwrap();
    assert_eq!((second.steps(), second.skipped()), (applied, 1));
    second.fit(batches(), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();
    assert_eq!(residents(&second), residents(&straight));
}

#[test]
fn an_unknown_monitor_is_told_before_the_first_step() {
    let monitor = Monitor { name: "f1".into(), maximise: true };
    let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
    let e = trainer.fit(small_digits(32).batches(32), FitOptions { monitor, ..FitOptions::default() });
    assert!(e.unwrap_err().to_string().contains("loss, accuracy"));
}

#[test]
fn samples_that_cannot_be_validated_with_are_told_before_the_first_step() {
    let renamed = Dataset::new([("picture", small_digits(32).column("image").unwrap().clone())]).unwrap();
    let pixels = small_digits(32).with_column("image", Literal::zeros(Type::new(F32, [32, 80]))).unwrap();
    for (validation, words) in [
        (small_digits(40), "40 samples do not divide into batches of 32"),
        (renamed, "the batch has no column of this name"),
        (pixels, "image: f32[32,80]"),
        (small_digits(32).take(0), "there are no samples"),
    ] {
        let mut events = 0;
        let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
        let options = FitOptions {
            validation: Some(validation),
            on_event: Some(Box::new(|_| events += 1)),
            ..FitOptions::default()
        };
        let e = trainer.fit(small_digits(64).batches(32), options).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
        assert_eq!((trainer.steps(), events), (0, 0), "{words}");
    }
}

#[test]
fn an_epoch_whose_end_fails_is_saved_first_and_goes_on_bit_for_bit() {
    let (file, model) = (Scratch::new("failed-end"), noisy(32, false).unwrap());
    let batches = || small_digits(96).batches(32).seed(2);
    let mut straight = trainer(&model, 1);
    straight.fit(batches(), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();

    let options = FitOptions {
        epochs: 2,
        validation: Some(small_digits(64)),
        best: Some(file.0.join("below a file that is not there")),
        checkpoints: Some(Checkpoints { path: file.0.clone(), ..Checkpoints::default() }),
        ..FitOptions::default()
    };
    let mut first = trainer(&model, 1);
    assert!(first.fit(batches(), options).is_err());
    assert_eq!(first.steps(), 3);
    let mut second = trainer(&model, 1);
    second.resume(&file.0).unwrap();
    assert_eq!(second.steps(), 3);
    second.fit(batches(), FitOptions { epochs: 2, ..FitOptions::default() }).unwrap();
    assert_eq!(residents(&second), residents(&straight));
}

#[test]
fn an_epoch_tells_its_means_and_ends_where_it_ends() {
    let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
    let mut batches = small_digits(96).batches(32).epochs(2);
    let report = trainer.epoch(&mut batches).unwrap();
    assert_eq!((report.epoch, report.steps, report.samples), (0, 3, 96));
    assert!(report["loss"].is_finite());
    assert_eq!(trainer.epoch(&mut batches).unwrap().epoch, 1);
    assert_eq!(trainer.epoch(&mut batches).unwrap().steps, 0);
}
