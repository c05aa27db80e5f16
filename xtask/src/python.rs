//! The Python in which exported models are checked and run.
//!
//! It lies in `target/python` and has what `tests/onnx/requirements.txt` lists. It is made anew where that file changed.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable by which tests are told where it is. Who sets it brings a Python of their own.
pub const VARIABLE: &str = "BACKFIT_PYTHON";

/// The Python that tests use, as an absolute path: tests run in folders of their own.
pub fn path() -> PathBuf {
    let path = std::env::var_os(VARIABLE).map_or_else(|| folder().join("bin/python"), PathBuf::from);
    std::path::absolute(&path).unwrap_or(path)
}

fn folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("python")
}

/// Makes the environment, unless it is there or the variable names another.
pub fn environment() -> Result<String, String> {
    let packages = packages()?;
    if let Some(own) = std::env::var_os(VARIABLE) {
        return Ok(format!("{VARIABLE} names {}", own.to_string_lossy()));
    }
    let stamp = folder().join("packages.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|done| done == packages) {
        return Ok("it is there".to_owned());
    }
    let environment = folder().to_string_lossy().into_owned();
    run("python3", &["-m", "venv", "--clear", &environment])?;
    let list = requirements().to_string_lossy().into_owned();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", &list];
    run(&path().to_string_lossy(), &install)?;
    std::fs::write(&stamp, &packages).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(packages.split_whitespace().collect::<Vec<_>>().join(", "))
}

fn requirements() -> PathBuf {
    root().join("tests/onnx/requirements.txt")
}

fn packages() -> Result<String, String> {
    std::fs::read_to_string(requirements()).map_err(|e| format!("{}: {e}", requirements().display()))
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let help = format!(
        "install Python 3.11 or later with venv, and let pip reach a package index; or set {VARIABLE} to a Python that has \
         the packages of tests/onnx/requirements.txt"
    );
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    println!("{name} {}", arguments.join(" "));
    match Command::new(program).args(arguments).current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} {} ended with {status}: {help}", arguments[1])),
        Err(error) => Err(format!("{program}: {error}: {help}")),
    }
}

/// Exports a training step, and trains with it in Python.
pub fn example() -> Result<String, String> {
    let folder = folder().with_file_name("onnx_train");
    std::fs::remove_dir_all(&folder).ok();
    let out = folder.to_string_lossy();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(&cargo, &["run", "-p", "backfit-cli", "--", "export", "digits", "--step", "--samples", "-o", &out])?;
    let script = root().join("examples/onnx_train.py");
    let output = Command::new(path()).arg(script).arg(&folder).arg("1").output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    let accuracy = said.split("accuracy ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    match accuracy {
        Some(accuracy) if output.status.success() && accuracy > 0.85 => {
            Ok(format!("accuracy {accuracy} after an epoch"))
        }
        Some(accuracy) => Err(format!("it has learnt too little: accuracy {accuracy} after an epoch")),
        None => Err(format!("it ended with {} and reported no accuracy", output.status)),
    }
}
