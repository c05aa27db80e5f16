//! What a user can do wrong: exit code 2, what, where and what to do; nothing written.

use crate::files::{POINTS, idx, npy, npz, png, points};
use crate::runner::Workplace;

/// A folder with the recipe and the table of points.
fn workplace() -> Workplace {
    let work = Workplace::new();
    work.write("points.csv", points(40));
    work.write("points.toml", POINTS);
    work
}

#[test]
fn impossible_values_of_a_recipe() {
    let work = workplace();
    let cases: [(&str, &[&str]); 13] = [
        ("optimizer.learning_rate=-0.1", &["optimizer.learning_rate", "-0.1", "--set"]),
        ("optimizer.name=\"adamm\"", &["adamm", "sgd", "rmsprop"]),
        ("optimizer.lr=0.1", &["unknown field `lr`", "learning_rate", "optimizer.learning_rate"]),
        ("batch=0", &["batch of 0"]),
        ("epochs=0", &["0 epochs"]),
        ("batch=41", &["batch of 41", "only 40", "at most 40"]),
        ("unroll=11", &["unroll", "11 steps in one run", "only 10", "at most 10"]),
        ("model.kind=\"cnn\"", &["model.channels"]),
        ("loss.name=\"mse\"", &["loss.name", "classes", "cross_entropy"]),
        ("optimizer.groups=[{pattern=\"*.wieght\"}]", &["'*.wieght'", "fc1.weight, fc1.bias", "--set"]),
        ("optimizer.groups=[{pattern=\"*\", frozen=true}]", &["every weight is frozen", "--set"]),
        ("accumulate=3", &["batch of 4", "3 equal parts", "divisor"]),
        ("data.normalisation=\"unit\"", &["data.normalisation", "bytes", "standard"]),
    ];
    for (change, words) in cases {
        work.refuse(&["train", "points.toml", "--set", change], words);
    }
    work.write("points.toml", POINTS.replace("learning_rate = 0.1", "learning_rate = -3"));
    work.refuse(&["train", "points.toml"], &["points.toml:19", "-3.0 is not a positive number", "help: "]);
    work.refuse(&["train", "nonsense"], &["no recipe 'nonsense'", "digits", "iris"]);
    work.refuse(&["train"], &["RECIPE"]);
    work.refuse(&["train", "iris", "--set", "epochs"], &["KEY=VALUE"]);
    work.refuse(&["inspect", "iris", "--function", "fit"], &["'fit'", "step", "predict"]);
    work.refuse(&["inspect", "iris", "--stage", "magic"], &["'magic'", "simplify"]);
    work.refuse(&["data", "fetch", "mmnist"], &["mmnist", "mnist"]);
    work.refuse(&["train", "mnist"], &["data.dir", "backfit data fetch mnist"]);
    work.refuse(&["train", "mnist", "--data", "nowhere"], &["mnist", "nowhere"]);
}

#[test]
fn wrong_tables() {
    let work = workplace();
    work.refuse(&["train", "points.toml", "--set", "data.label=\"sort\""], &["sort", "points.csv", "kind"]);
    let cases: [(String, &[&str]); 5] = [
        (points(40).replace("5,3,far", "5,NaN,far"), &["points.csv:", "NaN"]),
        (points(40).replace("5,3,far", "5,far"), &["points.csv:"]),
        ("x,y,kind\n".to_owned(), &["points.csv"]),
        (String::new(), &["points.csv"]),
        (points(40).replace("far", "-1").replace("near", "0"), &["label -1", "points.csv"]),
    ];
    for (content, words) in cases {
        work.write("points.csv", content);
        work.refuse(&["train", "points.toml"], words);
    }
    work.write("points.csv", points(40).replace("far", "7").replace("near", "0"));
    work.refuse(&["train", "points.toml", "--set", "data.classes=2"], &["label 7", "points.csv", "0..2"]);
    std::fs::remove_file(work.path("points.csv")).unwrap();
    work.refuse(&["train", "points.toml"], &["points.csv"]);
}

#[test]
fn wrong_arrays_and_images() {
    let work = Workplace::new();
    let recipe = POINTS.replace("csv = \"points.csv\"\nlabel = \"kind\"", "npz = \"a.npz\"\nlabel = \"y\"");
    work.write("a.toml", recipe);
    let labels = || npy("4,", &[0.0, 1.0, 0.0, 1.0]);
    work.write("a.npz", npz(&[("x", npy("4, 2", &[0.0; 8])), ("y", labels())]));
    work.refuse(&["train", "a.toml"], &["f32", "a.npz", "array 'y'"]);
    let x = npy("4, 2", &[0.0, 1.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let recipe = POINTS.replace("csv = \"points.csv\"\nlabel = \"kind\"", "npz = \"a.npz\"\ntargets = [\"y\"]");
    work.write("a.toml", recipe.replace("cross_entropy", "mse"));
    work.write("a.npz", npz(&[("x", x), ("y", labels())]));
    work.refuse(&["train", "a.toml"], &["not finite", "sample 1", "a.npz"]);
    let whole = npz(&[("x", npy("4, 2", &[0.0; 8])), ("y", labels())]);
    work.write("a.npz", &whole[..whole.len() / 2]);
    work.refuse(&["train", "a.toml"], &["a.npz"]);

    let recipe = POINTS.replace("csv = \"points.csv\"\nlabel = \"kind\"", "idx = [\"i\", \"l\"]");
    work.write("i.toml", recipe);
    work.write("i", idx(&[6, 4, 4], &[7; 96]));
    work.write("l", idx(&[5], &[0; 5]));
    work.refuse(&["train", "i.toml"], &["6", "5"]);
    work.write("l", idx(&[6], &[0, 1, 0, 1, 0, 1]));
    work.write("i", &idx(&[6, 4, 4], &[7; 96])[..80]);
    work.refuse(&["train", "i.toml"], &["i"]);
}

#[test]
fn checkpoints_of_something_else() {
    let work = workplace();
    work.succeed(&["train", "points.toml", "--out", "run"]);
    work.succeed(&["train", "iris", "--epochs", "1", "--out", "iris"]);
    work.refuse(&["train", "points.toml", "--out", "run"], &["not empty", "run", "--resume"]);
    work.refuse(&["eval", "elsewhere"], &["no checkpoint", "elsewhere"]);
    work.refuse(&["eval", "run", "--recipe", "iris"], &["fc1.weight", "run/checkpoint.safetensors"]);
    work.refuse(&["train", "iris", "--resume", "run", "--out", "new"], &["fc1.weight"]);
    work.refuse(&["train", "--resume", "run", "--set", "model.layers=[5]"], &["fc1.weight", "f32[4,2]", "f32[5,2]"]);
    work.refuse(&["train", "--resume", "run", "--seed", "9", "--epochs", "3"], &["data", "not that of the run"]);
    work.refuse(&["predict", "run", "--input", "missing.csv"], &["missing.csv"]);
    work.write("wide.csv", "a,b,c\n1,2,3\n");
    work.refuse(&["predict", "run", "--input", "wide.csv"], &["wide.csv", "[3]", "[2]"]);
    work.write("bad.csv", "x,y\n1,oops\n");
    work.refuse(&["predict", "run", "--input", "bad.csv"], &["bad.csv:2", "oops"]);
    work.write("bad.png", &png(2, 2, &[0; 4])[..40]);
    work.refuse(&["predict", "run", "--input", "bad.png"], &["bad.png"]);
    let whole = std::fs::read(work.path("run/checkpoint.safetensors")).unwrap();
    work.write("cut.safetensors", &whole[..whole.len() - 9]);
    work.refuse(&["eval", "cut.safetensors"], &["cut.safetensors"]);
    let mut flipped = whole;
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    work.write("flipped.safetensors", flipped);
    work.refuse(&["predict", "flipped.safetensors", "--input", "points.csv"], &["flipped.safetensors"]);
}

#[test]
fn errors_are_events_too() {
    let work = Workplace::new();
    let said = work.run(&["train", "iris", "--json", "--set", "batch=0"]);
    assert_eq!(said.code, Some(2));
    let error = said.event("error");
    assert!(error["message"].as_str().unwrap().contains("batch of 0"), "{error}");
}
