//! `cargo xtask bench`.

use crate::root;
use crate::run::Step;
use std::path::PathBuf;
use std::process::Command;

/// A Python with torch, jax or both.
const PYTHON: &str = "BACKFIT_PEERS_PYTHON";

/// Every benchmark in release, then the same steps in other frameworks.
pub fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = benchmarks().iter().map(|(package, name)| benchmark(package, name)).collect();
    steps.push(match std::env::var_os(PYTHON) {
        Some(python) => {
            let mut command = Command::new(python);
            command.arg(root().join("benchmarks/peers.py"));
            Step::command("peers", command)
        }
        None => Step::skip("peers", format!("{PYTHON} does not name a Python with torch or jax")),
    });
    steps
}

fn benchmark(package: &str, name: &str) -> Step {
    Step::cargo(name, &["run", "--quiet", "--release", "--package", package, "--example", name])
}

/// Crate and name of every `crates/*/examples/*_bench.rs`.
fn benchmarks() -> Vec<(String, String)> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for package in files(root().join("crates")) {
        for file in files(package.join("examples")) {
            let name = file.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
            if name.ends_with("_bench") && file.extension().is_some_and(|e| e == "rs") {
                let package = package.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                found.push((package.to_owned(), name.to_owned()));
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmarks_of_kernels_are_found() {
        let kernel = |name: &str| ("backfit-kernels".to_owned(), name.to_owned());
        assert!(benchmarks().contains(&kernel("gemm_bench")));
        assert!(!benchmarks().contains(&kernel("bench")));
    }
}
