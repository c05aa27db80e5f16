//! What `export` writes. That onnxruntime runs it, the suites show.

use crate::runner::Workplace;
use backfit::datasets::npz;
use backfit::{DType, Dataset};
use std::fs::read;

/// The arrays of an archive, whose lengths may differ.
fn arrays(work: &Workplace, file: &str) -> Vec<(String, backfit::Literal)> {
    let path = work.path(file);
    npz::decode_npz(std::fs::File::open(&path).unwrap(), &path).unwrap()
}

fn array(work: &Workplace, file: &str, name: &str) -> backfit::Literal {
    let found = arrays(work, file).into_iter().find(|(n, _)| n == name);
    found.unwrap_or_else(|| panic!("{file} has no {name}")).1
}

fn holds(work: &Workplace, file: &str, text: &str) -> bool {
    read(work.path(file)).unwrap().windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn a_step_comes_with_all_that_training_takes() {
    let work = Workplace::new();
    let said = work.succeed(&["export", "iris", "--step", "--samples", "-o", "out", "--set", "epochs=7", "--json"]);
    let files: Vec<String> = said
        .events()
        .iter()
        .filter(|e| e["event"] == "model")
        .map(|e| e["file"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, ["init", "step", "eval", "predict"].map(|name| format!("out/{name}.onnx")));
    for words in ["updates:fc1.weight.new", "role:learning_rate", "iris.toml:"] {
        assert!(holds(&work, "out/step.onnx", words), "{words}");
    }
    assert_eq!(array(&work, "out/state.npz", "fc1.weight").ty().shape.rank(), 2);
    let samples = array(&work, "out/samples.npz", "train.features");
    assert!(samples.ty().shape[0] > array(&work, "out/samples.npz", "test.features").ty().shape[0]);
    let batch = toml::from_str::<toml::Table>(&std::fs::read_to_string(work.path("out/recipe.toml")).unwrap()).unwrap();
    let batch = batch["batch"].as_integer().unwrap() as usize;
    let rates = array(&work, "out/hypers.npz", "learning_rate");
    assert_eq!(rates.ty().shape.dims(), [7 * samples.ty().shape[0].div_ceil(batch)]);
}

#[test]
fn a_trained_model_has_its_weights_inside() {
    let work = Workplace::new();
    work.succeed(&["train", "iris", "--set", "epochs=2", "--out", "run"]);
    work.succeed(&["export", "run", "--target", "onnx", "-o", "out"]);
    let names: Vec<_> = std::fs::read_dir(work.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!holds(&work, "out/predict.onnx", "role:fc1.weight") && holds(&work, "out/predict.onnx", "role:features"));
    // The bytes of a trained weight are in the file, and not those that it started from.
    work.succeed(&["export", "run", "--step", "-o", "trained"]);
    work.succeed(&["export", "iris", "--step", "-o", "fresh"]);
    let inside = |file: &str| {
        let weight = array(&work, file, "fc1.weight");
        let model = read(work.path("out/predict.onnx")).unwrap();
        model.windows(weight.bytes().len()).any(|w| w == weight.bytes())
    };
    assert!(inside("trained/state.npz") && !inside("fresh/state.npz"));
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_written() {
    let work = Workplace::new();
    work.refuse(&["export", "iris", "-o", ".", "--target", "abacus"], &["abacus", "onnx"]);
    work.refuse(&["export", "nothing", "-o", "out"], &["nothing"]);
    work.refuse(&["export", "iris"], &["--out"]);
    std::fs::create_dir(work.path("full")).unwrap();
    work.write("full/file", "");
    work.refuse(&["export", "iris", "-o", "full"], &["the folder is not empty", "full", "--out"]);
    work.write("file", "");
    work.refuse(&["export", "iris", "-o", "file"], &["file"]);
    std::fs::create_dir(work.path("empty")).unwrap();
    work.refuse(&["export", "empty", "-o", "out"], &["there is no checkpoint"]);
}

#[test]
fn samples_are_those_that_the_model_takes() {
    let work = Workplace::new();
    work.succeed(&["export", "sine", "--step", "--samples", "-o", "out"]);
    let columns = arrays(&work, "out/samples.npz").into_iter().filter(|(name, _)| name.starts_with("train."));
    let set = Dataset::new(columns).unwrap();
    assert!(!set.is_empty() && set.check_finite().is_ok());
}

#[test]
fn a_step_is_exported_with_weights_in_f32_alone_and_the_key_is_named_where_they_are_not() {
    let work = Workplace::new();
    for masters in ["stochastic", "compensated"] {
        let change = format!("masters=\"{masters}\"");
        let words = ["masters: ", "--set masters", "leave out masters", "without --step"];
        work.refuse(&["export", "iris", "--step", "-o", "out", "--set", &change], &words);
        work.succeed(&["export", "iris", "-o", masters, "--set", &change]);
    }
    // NumPy has no bf16: whatever is in the archive must have the dtype that the model declares.
    work.succeed(&["export", "iris", "--step", "-o", "out", "--set", "precision=bf16"]);
    for (name, values) in arrays(&work, "out/state.npz") {
        assert_eq!(values.ty().dtype, DType::F32, "{name}");
    }
}
