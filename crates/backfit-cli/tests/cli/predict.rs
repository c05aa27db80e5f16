//! Predictions from files.

use crate::files::{POINTS, idx, npy, png, points};
use crate::runner::Workplace;
use serde_json::Value;

#[test]
fn rows_of_a_table_get_a_class_with_its_name() {
    let work = Workplace::new();
    work.write("points.csv", points(42));
    work.write("points.toml", POINTS);
    work.succeed(&["train", "points.toml", "--epochs", "60", "--set", "optimizer.name=\"adam\"", "--out", "run"]);
    // The column with the answer is left out.
    let events = work.succeed(&["predict", "run", "--input", "points.csv", "--json"]).events();
    assert_eq!(events.len(), 42);
    let names: Vec<&Value> = events.iter().map(|e| &e["name"]).collect();
    assert_eq!((names[0], names[4]), (&"near".into(), &"far".into()));
    let share = events[0]["probability"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&share));
    work.write("new.npy", npy("1, 2", &[6.0, 1.0]));
    let said = work.succeed(&["predict", "run", "--input", "new.npy"]);
    assert!(said.stdout.starts_with("0: far"), "{}", said.stdout);
}

#[test]
fn images_are_read_from_png_and_idx() {
    let work = Workplace::new();
    work.succeed(&["train", "digits", "--epochs", "1", "--set", "data.take=2000", "--out", "run"]);
    // A vertical bar is a one.
    let pixel = |i: usize| if (13..15).contains(&(i % 28)) && (4..24).contains(&(i / 28)) { 255 } else { 0 };
    let one: Vec<u8> = (0..784).map(pixel).collect();
    work.write("one.png", png(28, 28, &one));
    work.write("ones.idx", idx(&[2, 28, 28], &[&one[..], &one].concat()));
    let by_png = work.succeed(&["predict", "run", "--input", "one.png", "--json"]).events();
    let by_idx = work.succeed(&["predict", "run", "--input", "ones.idx", "--json"]).events();
    assert_eq!(by_png[0]["class"], 1);
    assert_eq!((by_idx.len(), &by_idx[1]["probabilities"]), (2, &by_png[0]["probabilities"]));
    work.write("small.png", png(2, 2, &[0; 4]));
    work.refuse(&["predict", "run", "--input", "small.png"], &["small.png", "[1, 2, 2]", "[1, 28, 28]"]);
}

#[test]
fn numbers_are_predicted_as_numbers() {
    let work = Workplace::new();
    work.succeed(&["train", "sine", "--out", "run"]);
    work.write("x.csv", "x\n0\n1.5\n");
    let events = work.succeed(&["predict", "run", "--input", "x.csv", "--json"]).events();
    let value = |i: usize| events[i]["values"][0].as_f64().unwrap();
    assert!(value(0).abs() < 0.02 && (value(1) - 1.5f64.sin()).abs() < 0.15, "{events:?}");
}
