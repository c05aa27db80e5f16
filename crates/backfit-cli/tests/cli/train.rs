//! Trainings reach the promised numbers and say what they did.

use crate::files::{POINTS, idx, npy, npz, points};
use crate::runner::Workplace;
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn iris_gets_28_of_30_and_leaves_its_folder() {
    let work = Workplace::new();
    let said = work.succeed(&["train", "iris", "--json"]);
    let done = said.event("done");
    assert!(number(&done["test"]["accuracy"]) >= 28.0 / 30.0 - 1e-6, "{done}");
    assert_eq!((&done["test"]["samples"], &done["train"]["samples"]), (&30.into(), &120.into()));
    for key in ["seconds", "steps", "samples_per_second"] {
        assert!(number(&done[key]) > 0.0, "{key}: {done}");
    }
    assert_eq!(number(&done["allocations_per_step"]), 0.0, "{done}");
    for key in ["checkpoint", "curve", "log", "recipe"] {
        assert!(work.path(done[key].as_str().unwrap()).is_file(), "{key}: {done}");
    }
    assert_eq!(done["checkpoint"], "runs/iris-1/checkpoint.safetensors");
    let kinds: Vec<Value> = said.events().iter().map(|e| e["event"].clone()).collect();
    for kind in ["compiled", "started", "step", "epoch", "validation", "saved", "finished", "done"] {
        assert!(kinds.contains(&kind.into()), "{kind}");
    }
    let log = std::fs::read_to_string(work.path("runs/iris-1/log.jsonl")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["event"].is_string()));
    assert!(std::fs::read_to_string(work.path("runs/iris-1/curve.svg")).unwrap().contains("held back"));

    let evaluated = work.succeed(&["eval", "runs/iris-1", "--json"]).event("evaluated");
    assert_eq!(evaluated["test"], done["test"]);
    // The recipe in the folder is a recipe; a second run has a folder of its own.
    work.succeed(&["train", "runs/iris-1/recipe.toml", "--epochs", "1", "--out", "again"]);
    work.succeed(&["train", "iris", "--epochs", "1"]);
    assert!(work.path("again/checkpoint.safetensors").is_file() && work.path("runs/iris-2").is_dir());
}

#[test]
fn sine_comes_within_a_percent_of_the_closed_form() {
    let work = Workplace::new();
    let done = work.succeed(&["train", "sine", "--json"]).event("done");
    let (loss, optimum) = (number(&done["train"]["loss"]), number(&done["optimum"]));
    assert!((optimum - 0.475_587_90).abs() < 1e-8);
    assert!(loss > optimum - 1e-5 && loss < optimum * 1.01, "{done}");
    assert_eq!((number(&done["allocations_per_step"]), &done["test"]), (0.0, &Value::Null));
}

#[test]
fn shortened_digits_learn_and_tell_people_what_to_do_next() {
    let work = Workplace::new();
    let said = work.succeed(&["train", "digits", "--epochs", "2", "--seed", "3", "--threads", "2", "--out", "run"]);
    for words in ["held back", "accuracy", "0 allocations per step", "backfit eval run", "run/curve.svg", "train"] {
        assert!(said.stdout.contains(words), "'{words}' is missing in {}", said.stdout);
    }
    assert!(said.stderr.contains("epoch 2/2"), "{}", said.stderr);
    let evaluated = work.succeed(&["eval", "run", "--json"]).event("evaluated");
    assert!(number(&evaluated["test"]["accuracy"]) > 0.9, "{evaluated}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let work = Workplace::new();
    let options = ["--json", "--epochs", "1", "--set", "data.take=640", "--set", "model.layers=[32]"];
    let loss = |threads: &str, out: &str| {
        let said = work.succeed(&[&["train", "digits", "--threads", threads, "--out", out][..], &options].concat());
        said.event("done")["train"].clone()
    };
    assert_eq!(loss("1", "one"), loss("3", "three"));
}

#[test]
fn tables_arrays_and_idx_files_are_trained_on() {
    let work = Workplace::new();
    work.write("points.csv", points(40));
    work.write("points.toml", POINTS);
    let held_back = ["--set", "data.held_back=0.25"];
    let said = work.succeed(&[&["train", "points.toml", "--json"][..], &held_back].concat());
    assert_eq!(said.event("done")["test"]["samples"], 10);

    let line = |i: usize| (i as f32, 3.0 * i as f32 - 1.0);
    let (x, y): (Vec<f32>, Vec<f32>) = (0..8).map(line).unzip();
    work.write("line.npz", npz(&[("x", npy("8, 1", &x)), ("height", npy("8,", &y))]));
    let recipe = POINTS.replace("csv = \"points.csv\"\nlabel = \"kind\"", "npz = \"line.npz\"\ntargets = [\"height\"]");
    let recipe = recipe.replace("cross_entropy", "mse").replace("kind = \"mlp\"\nlayers = [4]", "kind = \"linear\"");
    work.write("line.toml", recipe.replace("epochs = 2", "epochs = 200"));
    let done = work.succeed(&["train", "line.toml", "--json"]).event("done");
    assert!(number(&done["train"]["loss"]) < 1e-3, "{done}");

    work.write("images.idx", idx(&[6, 4, 4], &[7; 96]));
    work.write("labels.idx", idx(&[6], &[0, 1, 2, 0, 1, 2]));
    let recipe = POINTS.replace("csv = \"points.csv\"\nlabel = \"kind\"", "idx = [\"images.idx\", \"labels.idx\"]");
    let recipe = recipe.replace("standard", "unit").replace("kind = \"mlp\"", "kind = \"cnn\"\nchannels = [2]");
    work.write("idx.toml", recipe);
    work.succeed(&["train", "idx.toml"]);
}

#[test]
fn early_stopping_ends_a_run_and_keeps_its_best() {
    let work = Workplace::new();
    let options = ["--set", "early_stop.patience=2", "--set", "optimizer.learning_rate=1e-12", "--out", "run"];
    let done = work.succeed(&[&["train", "iris", "--json"][..], &options].concat()).event("done");
    assert_eq!(done["stopped"], "early", "{done}");
    assert!(work.path("run/best.safetensors").is_file());
}

#[test]
fn a_sample_that_overflows_is_skipped_and_the_trace_names_operator_and_line() {
    let work = Workplace::new();
    work.write("points.csv", points(40).replace("5,3,far", "3e38,3e38,far"));
    let recipe = POINTS.replace("kind = \"mlp\"\nlayers = [4]", "kind = \"polynomial\"\ndegree = 2");
    work.write("points.toml", recipe.replace("standard", "none"));
    let plain = work.succeed(&["train", "points.toml", "--json", "--out", "plain"]);
    assert!(plain.event("skipped")["trace"].is_null());
    let traced = work.succeed(&["train", "points.toml", "--json", "--nan-trace", "--out", "traced"]);
    let trace = traced.event("skipped")["trace"].as_str().unwrap().to_owned();
    assert!(trace.starts_with("'mul' gave an infinity in a result f32[4,2]\n  at points.toml:7\n"), "{trace}");
    assert!(trace.contains("features: f32[4,2] is finite; its largest finite magnitude is 3.000e38"), "{trace}");
    let bytes = |run: &str| std::fs::read(work.path(run).join("checkpoint.safetensors")).unwrap();
    assert!(bytes("plain") == bytes("traced"));
    let said = work.succeed(&["train", "points.toml", "--nan-trace", "--out", "told"]);
    assert!(said.stderr.contains("was skipped: its gradients are not finite") && said.stderr.contains("points.toml:7"));
}
