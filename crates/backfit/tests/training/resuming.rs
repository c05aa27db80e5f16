//! A resumed run goes on bit for bit; a checkpoint of another model changes nothing.

use crate::models::{Scratch, noisy, residents, small_digits, trainer};
use backfit::prelude::*;
use backfit::{Checkpoint, Result};

fn losses(trainer: &mut Trainer, batches: impl Iterator<Item = Result<Batch>>) -> Vec<u64> {
    batches.map(|batch| trainer.step(&batch.unwrap()).unwrap()["loss"].to_bits()).collect()
}

#[test]
fn a_run_resumed_within_an_epoch_goes_on_bit_for_bit() {
    let file = Scratch::new("resume");
    let data = small_digits(200);
    let model = noisy(32, false).unwrap();
    for stop_after in [3, 7, 9] {
        // Seven batches an epoch: within the first, at its end, within the second.
        let batches = || data.batches(32).epochs(3).seed(5);
        let mut straight = trainer(&model, 2).seed(11).unwrap();
        let all = straight.continued(batches()).unwrap();
        let expected = losses(&mut straight, all);

        let mut stopped = trainer(&model, 2).seed(11).unwrap();
        let some = stopped.continued(batches()).unwrap();
        let mut found = losses(&mut stopped, some.take(stop_after));
        stopped.save(&file.0).unwrap();

        let mut resumed = trainer(&model, 1);
        resumed.resume(&file.0).unwrap();
        assert_eq!(resumed.steps(), stop_after as u64);
        let rest = resumed.continued(batches()).unwrap();
        found.extend(losses(&mut resumed, rest));
        assert_eq!(found, expected, "stopped after {stop_after}");
        assert_eq!(residents(&resumed), residents(&straight));
    }
}

#[test]
fn other_data_is_refused_after_a_resume() {
    let file = Scratch::new("data");
    let model = noisy(32, false).unwrap();
    let mut first = trainer(&model, 1);
    first.continued(small_digits(64).batches(32).seed(1)).unwrap();
    first.save(&file.0).unwrap();
    let mut resumed = trainer(&model, 1);
    resumed.resume(&file.0).unwrap();
    let e = resumed.continued(small_digits(64).batches(32).seed(2)).unwrap_err().to_string();
    assert!(e.contains("seed=1") && e.contains("seed=2"), "{e}");
    assert!(resumed.continued(small_digits(64).batches(32).seed(1)).is_ok());
}

fn wide(features: usize, name: &str, activation: fn(&Tensor) -> Tensor) -> Trainer {
    let g = Graph::new();
    let x = g.input("image", F32, [4, 81]);
    let loss = activation(&nn::linear(&g, name, &x, features)).square().mean_all();
    trainer(&TrainStep::new(&loss).optimizer(Adam::new(1e-3)).build().unwrap(), 1)
}

#[test]
fn a_checkpoint_of_another_model_is_refused_with_all_differences_and_nothing_changes() {
    let file = Scratch::new("other");
    wide(3, "fc", Tensor::relu).save(&file.0).unwrap();
    let mut other = wide(5, "fc", Tensor::relu).seed(9).unwrap();
    let before = residents(&other);
    let e = other.resume(&file.0).unwrap_err().to_string();
    for part in ["fc.weight", "fc.bias", "optimizer.m.fc.weight", "f32[3,81]", "f32[5,81]"] {
        assert!(e.contains(part), "{part} missing in: {e}");
    }
    let e = wide(3, "head", Tensor::relu).resume(&file.0).unwrap_err().to_string();
    assert!(e.contains("'head.weight: f32[3,81]' is missing") && e.contains("'fc.weight: f32[3,81]' is not expected"));
    // The same shapes and another computation.
    let e = wide(3, "fc", Tensor::silu).resume(&file.0).unwrap_err().to_string();
    assert!(e.contains("computes something else"), "{e}");
    assert!(other.resume("/no/such/file").is_err());
    assert_eq!((residents(&other), other.steps()), (before, 0));
}

#[test]
fn weights_are_taken_over_by_name() {
    let file = Scratch::new("weights");
    let source = wide(3, "fc", Tensor::relu).seed(4).unwrap();
    source.save(&file.0).unwrap();
    let mut target = wide(3, "fc", Tensor::silu);
    let report = target.load_weights(&file.0).unwrap();
    assert_eq!((report.loaded.len(), report.missing.len(), report.unexpected.len()), (2, 0, 0));
    assert_eq!(target.get("fc.weight").unwrap(), source.get("fc.weight").unwrap());

    let mut foreign = Checkpoint::default();
    foreign.tensors.insert("fc.weight".into(), Literal::from_f32([3, 81], &[0.5; 243]));
    foreign.tensors.insert("num_batches".into(), Literal::from_f32([1], &[0.0]));
    foreign.save(&file.0).unwrap();
    let report = target.load_weights(&file.0).unwrap();
    assert_eq!(report.to_string(), "1 tensors loaded, 1 missing: fc.bias, 1 unexpected: num_batches");
    assert!(wide(5, "fc", Tensor::relu).load_weights(&file.0).unwrap_err().to_string().contains("f32[5,81]"));
    assert!(wide(3, "head", Tensor::relu).load_weights(&file.0).unwrap_err().to_string().contains("no tensor"));
}

#[test]
fn names_and_types_of_tensors_that_are_set_are_checked() {
    let mut trainer = wide(3, "fc", Tensor::relu);
    assert!(trainer.get("fc").unwrap_err().to_string().contains("fc.weight"));
    let e = trainer.set("fc.bias", &Literal::from_f32([4], &[0.0; 4])).unwrap_err().to_string();
    assert!(e.contains("f32[3]") && e.contains("f32[4]"), "{e}");
    trainer.set("fc.bias", &Literal::from_f32([3], &[1.0, 2.0, 3.0])).unwrap();
    assert_eq!(trainer.get("fc.bias").unwrap().to_f32(), [1.0, 2.0, 3.0]);
}
