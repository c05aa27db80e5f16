//! What `inspect` and `data` show.

use crate::runner::Workplace;
use serde_json::Value;

#[test]
fn one_object_has_the_sizes_of_the_plan() {
    let work = Workplace::new();
    let said = work.succeed(&["inspect", "digits", "--json"]);
    assert_eq!(said.events().len(), 1);
    let event = said.event("inspected");
    let size = |key: &str| event["plan"][key].as_u64().unwrap_or_else(|| panic!("{key}"));
    assert!(size("arena_bytes") >= size("largest_live_bytes") && size("largest_live_bytes") > 0);
    assert_eq!(event["instructions"].as_array().unwrap().len() as u64, size("instructions"));
    // Weights, and Adam's two moments of each.
    let weights = 784 * 512 + 512 + 512 * 10 + 10;
    let residents = event["residents"].as_array().unwrap().iter().map(|r| r["bytes"].as_u64().unwrap());
    let resident: u64 = residents.sum();
    assert!(resident >= 3 * 4 * weights && resident <= size("resident_bytes"), "{resident}");
    // Every buffer lies within the arena.
    for buffer in event["arena"].as_array().unwrap() {
        let end = buffer["offset"].as_u64().unwrap() + buffer["bytes"].as_u64().unwrap();
        assert!(end <= size("arena_bytes"), "{buffer}");
    }
    // Forward and both gradients of the first layer alone.
    assert!(event["flops"].as_u64().unwrap() > 2 * 2 * 64 * 784 * 512);
    let locations = event["instructions"].as_array().unwrap().iter().flat_map(|i| i["locations"].as_array().unwrap());
    let lines: Vec<&Value> = locations.collect();
    assert!(lines.iter().any(|l| l.as_str().unwrap().contains("digits.toml:")), "{lines:?}");
}

#[test]
fn inspect_says_what_a_run_takes() {
    let work = Workplace::new();
    let inspected = work.succeed(&["inspect", "digits", "--json"]).event("inspected");
    let compiled = work.succeed(&["train", "digits", "--set", "epochs=1", "--json"]).event("compiled");
    for key in ["arena_bytes", "resident_bytes", "constant_bytes", "total_bytes"] {
        assert_eq!(inspected["memory"][key], compiled[key], "{key}");
    }
    for key in ["arena_bytes", "resident_bytes", "constant_bytes"] {
        assert_eq!(inspected["plan"][key], compiled[key], "{key}");
    }
}

#[test]
fn people_see_memory_instructions_and_stages() {
    let work = Workplace::new();
    let said = work.succeed(&["inspect", "iris"]);
    for words in ["arena", "resident", "MFLOP", "instruction", "Arena map", "simplify", "iris.toml:"] {
        assert!(said.stdout.contains(words), "'{words}' is missing in {}", said.stdout);
    }
    work.succeed(&["inspect", "iris", "--function", "predict"]);
}

#[test]
fn the_precision_policy_is_a_table_and_its_stage_shows_what_it_did() {
    let work = Workplace::new();
    let said = work.succeed(&["inspect", "iris", "--set", "precision=f16-engine"]);
    for words in ["precision f16-engine", "softmax      f16", "update       f32", "within ±32752"] {
        assert!(said.stdout.contains(words), "'{words}' is missing in {}", said.stdout);
    }
    let event = work.succeed(&["inspect", "iris", "--set", "precision=bf16", "--json"]).event("inspected");
    assert_eq!(event["precision"]["classes"]["contraction"], "bf16");
    assert_eq!(event["precision"]["classes"]["softmax"], "f32");
    let said = work.succeed(&["inspect", "iris", "--set", "precision=bf16", "--set", "masters=stochastic"]);
    assert!(said.stdout.contains("weights      bf16, stochastic rounding"), "{}", said.stdout);
    let text = |policy: &str| {
        let change = format!("precision={policy}");
        work.succeed(&["inspect", "iris", "--set", &change, "--stage", "precision", "--text"]).stdout
    };
    assert!(text("bf16").contains("bf16") && !text("f32").contains("bf16"));
}

#[test]
fn ranges_are_told_with_lines_and_what_does_not_fit_with_help() {
    let work = Workplace::new();
    let event = work.succeed(&["inspect", "iris", "--ranges", "--json"]).event("ranges");
    assert_eq!((event["chip"].as_str(), event["warnings"].as_array().map(Vec::len)), (Some("f32"), Some(0)));
    for value in event["values"].as_array().unwrap() {
        let (bound, seen) = (value["bound"].as_f64().unwrap_or(f64::INFINITY), value["seen"].as_f64().unwrap());
        let initial = value["scope"].as_str().unwrap().starts_with("fc1/linear");
        // Weights have moved by the second run, but not by much.
        assert!(!initial || seen <= 1.5 * bound, "{value}");
    }
    // A rate at which weights leave the range of f16 within the steps between the two runs.
    let change = ["--set", "precision=f16", "--set", "optimizer.learning_rate=1e5"];
    let said = work.succeed(&[&["inspect", "iris", "--ranges"], &change[..]].concat());
    for words in ["f16 holds at most 6.5504e4", "iris.toml:", "help: "] {
        assert!(said.stdout.contains(words), "'{words}' is missing in {}", said.stdout);
    }
}

#[test]
fn ranges_are_those_of_the_recipe_with_its_schedule() {
    let work = Workplace::new();
    let seen = |changes: &[&str]| {
        let mut args = vec!["inspect", "iris", "--ranges", "--json", "--set", "precision=f16"];
        changes.iter().for_each(|change| args.extend(["--set", change]));
        let event = work.succeed(&args).event("ranges");
        let values = event["values"].as_array().unwrap().iter().map(|value| value["seen"].as_f64().unwrap());
        (values.collect::<Vec<f64>>(), event["warnings"].clone())
    };
    // A rate that rises by 10⁻⁷ a step: no weight moves by more than 10⁻⁴ in all.
    let rising = ["optimizer.learning_rate=1e5", "schedule.name=\"warmup\"", "schedule.warmup=1000000000000"];
    let (rising, warnings) = seen(&rising);
    let (still, expected) = seen(&["optimizer.learning_rate=1e-12"]);
    assert_eq!(warnings, expected);
    assert_eq!(rising.len(), still.len());
    for (a, b) in rising.iter().zip(&still) {
        assert!((a - b).abs() <= 1e-3 * b.abs(), "{a} {b}");
    }
    work.refuse(&["inspect", "iris", "--ranges", "--function", "eval"], &["--ranges", "--function"]);
}

#[test]
fn every_stage_has_a_text_form_and_a_picture() {
    let work = Workplace::new();
    for stage in ["differentiate", "precision", "decompose", "simplify", "layout"] {
        let said = work.succeed(&["inspect", "iris", "--stage", stage, "--text"]);
        assert!(said.stdout.contains("func @step {") && said.stdout.contains("aliases fc1.weight"), "{}", said.stdout);
    }
    let said = work.succeed(&["inspect", "iris", "--function", "eval", "--dot"]);
    assert!(said.stdout.starts_with("digraph"), "{}", said.stdout);
}

#[test]
fn data_sets_are_listed_and_copied() {
    let work = Workplace::new();
    let events = work.succeed(&["data", "list", "--json"]).events();
    let names: Vec<&str> = events.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(["digits", "iris", "sine", "mnist"].iter().all(|n| names.contains(n)), "{names:?}");
    work.refuse(&["data", "fetch", "mnist", "--from", "nowhere", "--to", "there"], &["nowhere"]);
}

#[test]
fn help_teaches_by_examples() {
    let work = Workplace::new();
    for command in ["train", "eval", "predict", "inspect"] {
        let said = work.succeed(&[command, "--help"]);
        assert!(said.stdout.contains("Examples:") && said.stdout.contains(&format!("backfit {command}")), "{command}");
    }
}
