//! Chores of this repository: `cargo xtask test | bench | nightly | catalogue | python`.

mod bench;
mod nightly;
mod python;
mod run;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test                 everything that must hold before a change is taken
cargo xtask bench                speed of kernels and steps; BACKFIT_PEERS_PYTHON names a Python with torch or jax to compare with
cargo xtask nightly --data DIR   long trainings on full data sets (--seeds 1,2,3) and the audit on every instruction set
cargo xtask catalogue            writes docs/operators.md anew
cargo xtask python               makes target/python, in which exported models are run";

/// What a chore came to, or what is wrong with the arguments.
type Outcome = Result<ExitCode, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(words: &[&str]) -> Outcome {
    match words {
        ["test"] => Ok(run::all(test::steps())),
        ["bench"] => Ok(run::all(bench::steps())),
        ["nightly", options @ ..] => Ok(run::all(nightly::steps(options)?)),
        ["catalogue"] => Ok(run::all(vec![test::catalogue()])),
        ["python"] => Ok(run::all(vec![run::Step::of("python", python::environment)])),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        [] => Err("there is no chore given".to_owned()),
        other => Err(format!("'{}' is no chore", other.join(" "))),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}
