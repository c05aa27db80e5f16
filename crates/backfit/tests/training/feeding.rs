//! What a step is fed is checked, and a step that cannot be taken changes nothing.

use crate::models::{noisy, residents, small_digits, trainer};
use backfit::prelude::*;

fn first(data: &Dataset, size: usize) -> Batch {
    data.batches(size).in_order().next().unwrap().unwrap()
}

#[test]
fn every_wrong_column_is_told_with_what_the_model_takes_and_the_batch_has() {
    let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
    let raw = datasets::digits().unwrap().take(64);
    let unlabelled = Dataset::new([("image", raw.column("image").unwrap().clone())]).unwrap();
    let e = trainer.step(&first(&unlabelled, 32)).unwrap_err().to_string();
    for part in
        ["image: f32[32,81]", "image: u8[32,1,28,28]", "to_unit(\"image\")", "'label: i32[32]'", "valid: f32[32]"]
    {
        assert!(e.contains(part), "{part} missing in: {e}");
    }
    let data = small_digits(64);
    let e = trainer.step(&first(&data, 16)).unwrap_err().to_string();
    assert!(e.contains("make batches of 32 rows"), "{e}");
    let e = trainer.step(&first(&data.reshape("image", &[9, 9]).unwrap(), 32)).unwrap_err().to_string();
    assert!(e.contains("reshape(\"image\", &[81])"), "{e}");
    let wide = Literal::from_i64(Type::new(I64, [64]), &[1; 64]);
    let e = trainer.step(&first(&data.with_column("label", wide).unwrap(), 32)).unwrap_err().to_string();
    assert!(e.contains("to_i32(\"label\")"), "{e}");
    assert_eq!(trainer.steps(), 0);
}

#[test]
fn a_batch_that_is_not_full_trains_as_its_samples_repeated() {
    let data = small_digits(16);
    let twice: Vec<usize> = (0..16).chain(0..16).collect();
    let run = |batch: Batch| {
        let mut trainer = trainer(&noisy(32, false).unwrap(), 1);
        let loss = trainer.step(&batch).unwrap()["loss"];
        (loss, residents(&trainer))
    };
    assert_eq!(run(first(&data, 32)), run(first(&data.select(&twice).unwrap(), 32)));
}

#[test]
fn a_step_with_gradients_that_are_not_finite_is_skipped_whole() {
    let data = small_digits(64);
    let mut trainer = trainer(&noisy(32, false).unwrap(), 2);
    trainer.step(&first(&data, 32)).unwrap();
    let before = residents(&trainer);
    let nan = data.with_column("image", Literal::from_f32([64, 81], &[f32::NAN; 64 * 81])).unwrap();
    for row in 1..=3 {
        let out = trainer.step(&first(&nan, 32)).unwrap();
        assert!(out.skipped() && out.step() == 1);
        assert_eq!(trainer.skipped_in_a_row(), row);
    }
    assert_eq!(residents(&trainer), before);
    let out = trainer.step(&first(&small_digits(64), 32)).unwrap();
    assert!(!out.skipped());
    assert_eq!((trainer.steps(), trainer.skipped_in_a_row()), (2, 0));
}

#[test]
fn hyper_parameters_of_the_model_are_set_by_name() {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 2]);
    let weight = g.hyper("weight", F32);
    let y = nn::linear(&g, "fc", &x, 1);
    let loss = &y.square().mean_all() * &weight;
    let model = TrainStep::new(&loss).optimizer(Sgd::new(0.0)).report("y", &y).build().unwrap();
    let mut trainer = trainer(&model, 1);
    let data = Dataset::new([("x", Literal::from_f32([4, 2], &[1.0; 8]))]).unwrap();
    let e = trainer.step(&first(&data, 4)).unwrap_err().to_string();
    assert!(e.contains("set_hyper(\"weight\""), "{e}");
    assert!(trainer.set_hyper("weigth", 1.0).unwrap_err().to_string().contains("declares: weight"));
    trainer.set_hyper("weight", 1.0).unwrap();
    let one = trainer.step(&first(&data, 4)).unwrap()["loss"];
    trainer.set_hyper("weight", 4.0).unwrap();
    let four = trainer.step(&first(&data, 4)).unwrap()["loss"];
    assert_eq!(four, 4.0 * one);
    // A report of any shape is read after the step.
    let y = trainer.reported("y").unwrap();
    assert_eq!(y.ty().to_string(), "f32[4,1]");
    assert!(trainer.reported("z").unwrap_err().to_string().contains("loss"));
}

#[test]
fn the_schedule_sets_the_learning_rate_of_every_step() {
    let g = Graph::new();
    let x = g.input("x", F32, [2, 1]);
    let w = g.weight("w", Type::new(F32, [1, 1]), Init::ZEROS);
    let loss = x.linear(&w, None).sum_all();
    let model = TrainStep::new(&loss).optimizer(Sgd::new(1.0)).build().unwrap();
    let mut trainer = trainer(&model, 1).schedule(Schedule::Step { every: 1, gamma: 0.5 });
    let data = Dataset::new([("x", Literal::from_f32([2, 1], &[0.5; 2]))]).unwrap();
    let rates: Vec<f64> = (0..3).map(|_| trainer.step(&first(&data, 2)).unwrap().learning_rate()).collect();
    assert_eq!(rates, [1.0, 0.5, 0.25]);
    assert_eq!(trainer.get("w").unwrap().to_f32(), [-1.75]);
}

#[test]
fn a_trainer_moves_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    assert_send(&trainer(&noisy(32, false).unwrap(), 1));
}

#[test]
fn layers_that_do_not_fit_are_problems_with_the_line_of_the_call() {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 6]);
    let (scalar, odd) = (g.input::<usize, 0>("scalar", F32, []), nn::multi_head_attention(&g, "attn", &x, 4));
    nn::linear(&g, "fc", &scalar, 3);
    let problems = g.problems();
    assert_eq!((problems.len(), odd.value()), (2, None));
    for problem in problems {
        assert!(problem.to_string().contains("feeding.rs"), "{problem}");
    }
}
