//! Runs that were interrupted go on bit for bit.

use crate::runner::{Said, Workplace};
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

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_the_run_goes_on_bit_for_bit() {
    let work = Workplace::new();
    let options = ["digits", "--json", "--epochs", "3", "--set", "data.take=3200", "--set", "model.layers=[16]"];
    work.succeed(&[&["train", "--out", "whole"][..], &options].concat());
    let child = work.command(&[&["train", "--out", "parts"][..], &options].concat()).spawn().unwrap();
    let (begun, log) = (Instant::now(), work.path("parts/log.jsonl"));
    let stepped = || std::fs::read_to_string(&log).is_ok_and(|log| log.matches("\"event\":\"step\"").count() >= 3);
    while !stepped() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the run does not start");
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    let event = said.event("interrupted");
    assert!(event["resume"].as_str().unwrap().contains("--resume parts"), "{event}");
    assert!(event["steps"].as_u64().unwrap() < 150, "{event}");
    let resumed = work.succeed(&["train", "--resume", "parts", "--json"]);
    assert_eq!(resumed.event("started")["step"], event["steps"]);
    let bytes = |run: &str| std::fs::read(work.path(run).join("checkpoint.safetensors")).unwrap();
    assert!(bytes("whole") == bytes("parts"), "the checkpoints differ");
}
