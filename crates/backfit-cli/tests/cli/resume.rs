//! Runs that were interrupted go on bit for bit.

use crate::runner::{Said, Workplace, contents};
use std::time::{Duration, Instant};

const SHORT: [&str; 5] = ["train", "iris", "--json", "--epochs", "4"];

#[test]
fn a_longer_run_is_a_shorter_one_and_the_rest() {
    let work = Workplace::new();
    // A constant learning rate: the schedule of the recipe depends on the number of epochs.
    let constant = ["--set", "schedule.name=\"constant\"", "--set", "model.dropout=0.3"];
    work.succeed(&[&SHORT[..], &constant, &["--out", "whole"]].concat());
    work.succeed(&[&["train", "iris", "--epochs", "2"][..], &constant, &["--out", "parts"]].concat());
    let said = work.succeed(&["train", "--resume", "parts", "--epochs", "4", "--json"]);
    assert_eq!(said.event("started")["epoch"], 2);
    let bytes = |run: &str| std::fs::read(work.path(run).join("checkpoint.safetensors")).unwrap();
    assert!(bytes("whole") == bytes("parts"), "the checkpoints differ");
    let log = std::fs::read_to_string(work.path("parts/log.jsonl")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains("\"event\":\"epoch\"")).count(), 4);
}

#[test]
fn a_run_in_several_processes_is_a_run_in_one_in_every_mode() {
    let modes: [&[&str]; 4] = [
        &["unroll=4"],
        &["accumulate=4", "loss_scale=1024"],
        &["loss_scale=\"dynamic\"", "optimizer.ema=0.9", "unroll=3", "accumulate=2"],
        &[
            "optimizer.name=\"adamw\"",
            "optimizer.groups=[{pattern=\"*.bias\", decay=0}, {pattern=\"fc1.*\", frozen=true}]",
        ],
    ];
    for mode in modes {
        let work = Workplace::new();
        let constant = ["schedule.name=\"constant\"", "model.dropout=0.3"];
        let sets: Vec<&str> = constant.iter().chain(mode).flat_map(|set| ["--set", *set]).collect();
        work.succeed(&[&SHORT[..], &sets, &["--out", "whole"]].concat());
        work.succeed(&[&["train", "iris", "--epochs", "2", "--out", "parts"][..], &sets].concat());
        for epochs in ["3", "4"] {
            work.succeed(&["train", "--resume", "parts", "--epochs", epochs, "--json"]);
        }
        let bytes = |run: &str| std::fs::read(work.path(run).join("checkpoint.safetensors")).unwrap();
        assert!(bytes("whole") == bytes("parts"), "{mode:?}: the checkpoints differ");
        work.succeed(&["eval", "parts"]);
    }
}

#[test]
fn steps_in_one_run_of_the_program_and_a_static_loss_scale_change_no_number() {
    let work = Workplace::new();
    let losses = |out: &str, sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let said = work.succeed(&[&SHORT[..], &sets, &["--out", out]].concat());
        said.events().iter().filter(|e| e["event"] == "step").map(|e| e["metrics"]["loss"].clone()).collect::<Vec<_>>()
    };
    let plain = losses("plain", &[]);
    assert_eq!(plain.len(), 24);
    assert_eq!(losses("unrolled", &["unroll=4"]), plain);
    assert_eq!(losses("scaled", &["loss_scale=4096"]), plain);
}

#[test]
fn a_run_from_any_file_but_the_latest_checkpoint_has_a_folder_of_its_own() {
    let work = Workplace::new();
    work.succeed(&["train", "iris", "--epochs", "3", "--set", "early_stop.patience=9", "--out", "first"]);
    // The latest checkpoint of no run: there is no log beside it.
    work.write("checkpoint.safetensors", std::fs::read(work.path("first/checkpoint.safetensors")).unwrap());
    work.write("recipe.toml", "mine");
    let before = contents(&work.path("first"));
    for (number, from) in ["first/best.safetensors", "checkpoint.safetensors"].into_iter().enumerate() {
        let beside = work.path(from).with_file_name("recipe.toml");
        let recipe = std::fs::read(&beside).unwrap();
        let said = work.succeed(&["train", "--resume", from, "--epochs", "4", "--json"]);
        assert!(said.event("started")["epoch"].as_u64().unwrap() > 0, "{from}");
        assert!(work.path(&format!("runs/iris-{}/checkpoint.safetensors", number + 1)).is_file(), "{from}");
        assert!(contents(&work.path("first")) == before, "{from}: the first run has changed");
        assert!(std::fs::read(&beside).unwrap() == recipe, "{from}: the recipe beside it has changed");
    }
}

#[test]
fn a_run_does_not_go_on_with_more_samples_or_steps_than_there_are() {
    let work = Workplace::new();
    work.succeed(&["train", "iris", "--epochs", "1", "--out", "run"]);
    let before = contents(&work.path("run"));
    let go_on = |change: &str, words: &[&str]| {
        work.refuse(&["train", "--resume", "run", "--epochs", "2", "--set", change], words);
    };
    go_on("batch=121", &["a batch of 121 samples, but there are only 120", "at most 120"]);
    go_on("unroll=65000", &["65000 steps in one run, but an epoch has only", "--set unroll=65000"]);
    assert!(contents(&work.path("run")) == before);
}

/// Starts a run into the folder `parts` and ends it with Ctrl-C after so many steps.
#[cfg(unix)]
pub fn interrupted(work: &Workplace, args: &[&str], steps: usize) -> Said {
    let child = work.command(args).spawn().unwrap();
    let (begun, log) = (Instant::now(), work.path("parts/log.jsonl"));
    let stepped = || std::fs::read_to_string(&log).is_ok_and(|log| log.matches("\"event\":\"step\"").count() >= steps);
    while !stepped() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the run does not start");
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    said
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_the_run_goes_on_bit_for_bit() {
    let work = Workplace::new();
    let options = ["digits", "--json", "--epochs", "3", "--set", "data.take=3200", "--set", "model.layers=[16]"];
    work.succeed(&[&["train", "--out", "whole"][..], &options].concat());
    let said = interrupted(&work, &[&["train", "--out", "parts"][..], &options].concat(), 3);
    let event = said.event("interrupted");
    assert!(event["resume"].as_str().unwrap().contains("--resume parts"), "{event}");
    assert!(event["steps"].as_u64().unwrap() < 150, "{event}");
    let resumed = work.succeed(&["train", "--resume", "parts", "--json"]);
    assert_eq!(resumed.event("started")["step"], event["steps"]);
    let bytes = |run: &str| std::fs::read(work.path(run).join("checkpoint.safetensors")).unwrap();
    assert!(bytes("whole") == bytes("parts"), "the checkpoints differ");
}
