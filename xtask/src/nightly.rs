//! `cargo xtask nightly`: what takes too long for every change.

use crate::root;
use crate::run::{Check, Step};
use std::path::PathBuf;

/// Recipes that need full data sets, and the check of what they must reach on the samples held back.
const RECIPES: &[(&str, Check)] =
    &[("mnist", |lines| reaches(lines, 0.97)), ("mnist-cnn", |lines| reaches(lines, 0.985))];

/// Instruction sets on which the audit is run, where the machine has them.
const SETS: &[&str] = &["portable", "avx2", "avx512", "neon"];

struct Options {
    data: PathBuf,
    seeds: Vec<u64>,
}

/// Trainings with every seed, and the audit on every instruction set.
pub fn steps(words: &[&str]) -> Result<Vec<Step>, String> {
    let options = Options::parse(words)?;
    let mut steps = Vec::new();
    for (recipe, check) in RECIPES {
        for seed in &options.seeds {
            steps.push(training(recipe, *seed, &options.data).check(*check));
        }
    }
    steps.extend(SETS.iter().map(|set| {
        if has(set) {
            let audit = ["test", "--release", "-p", "backfit-suites", "--test", "audit"];
            Step::cargo(&format!("audit on {set}"), &audit).env("BACKFIT_ISA", set)
        } else {
            Step::skip(&format!("audit on {set}"), "this machine does not have it")
        }
    }));
    Ok(steps)
}

fn training(recipe: &str, seed: u64, data: &std::path::Path) -> Step {
    // Runs keep their folders, so that curves can be looked at; each run needs a new one.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let out = root().join(format!("target/nightly/{now}/{recipe}-{seed}"));
    let (seed, data, out) = (seed.to_string(), data.to_string_lossy(), out.to_string_lossy());
    let cargo = ["run", "--quiet", "--release", "--package", "backfit-cli", "--"];
    let train = ["--json", "train", recipe, "--data", &data, "--seed", &seed, "--out", &out];
    Step::cargo(&format!("{recipe}, seed {seed}"), &[&cargo[..], &train[..]].concat())
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options, String> {
        let mut data = None;
        let mut seeds = vec![1, 2, 3];
        for pair in words.chunks(2) {
            match pair {
                ["--data", folder] => data = Some(std::path::absolute(folder).map_err(|e| format!("{folder}: {e}"))?),
                ["--seeds", list] => {
                    let parsed: Result<Vec<u64>, _> = list.split(',').map(str::parse).collect();
                    seeds = parsed.map_err(|e| format!("--seeds {list}: {e}"))?;
                }
                other => return Err(format!("'{}' is no option with a value", other.join(" "))),
            }
        }
        let data = data.ok_or("nightly needs --data DIR, a folder with the data set mnist")?;
        if data.is_dir() { Ok(Options { data, seeds }) } else { Err(format!("{} is no folder", data.display())) }
    }
}

fn has(set: &str) -> bool {
    match set {
        "portable" => true,
        #[cfg(target_arch = "x86_64")]
        "avx2" => is_x86_feature_detected!("avx2"),
        #[cfg(target_arch = "x86_64")]
        "avx512" => is_x86_feature_detected!("avx512bw"),
        "neon" => cfg!(target_arch = "aarch64"),
        _ => false,
    }
}

/// Whether the training's last event has this accuracy on the samples held back.
fn reaches(lines: &[String], wanted: f64) -> Result<String, String> {
    let done = lines.iter().rfind(|line| line.contains("\"done\"")).ok_or("it has not told that it is done")?;
    let found = accuracy(done).ok_or("it has not told its accuracy on the samples held back")?;
    let note = format!("accuracy {found:.4}, at least {wanted} wanted");
    if found >= wanted { Ok(note) } else { Err(note) }
}

/// The number `accuracy` of the object `test`.
fn accuracy(event: &str) -> Option<f64> {
    let test = event.split("\"test\":").nth(1)?;
    let number = test.split("\"accuracy\":").nth(1)?;
    number.split([',', '}']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_are_read_and_judged() {
        let event = |accuracy: &str| {
            let line = format!(
                r#"{{"event":"done","train":{{"accuracy":0.1}},"test":{{"accuracy":{accuracy},"loss":0.2}},"steps":3}}"#
            );
            vec!["{\"event\":\"epoch\"}".to_owned(), line]
        };
        assert!(reaches(&event("0.9801"), 0.97).is_ok());
        assert!(reaches(&event("0.9501"), 0.97).is_err());
        assert!(reaches(&event("null"), 0.97).is_err());
        assert!(reaches(&[], 0.97).is_err());
    }

    #[test]
    fn options_are_told_apart() {
        let folder = root().to_string_lossy().into_owned();
        assert_eq!(Options::parse(&["--data", &folder]).unwrap().seeds, [1, 2, 3]);
        assert_eq!(Options::parse(&["--seeds", "7", "--data", &folder]).unwrap().seeds, [7]);
        for wrong in [&["--data"][..], &["--seeds", "1"], &["--data", &folder, "--seeds", "x"], &["--data", "/no/such"]]
        {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
