//! `cargo xtask test`.

use crate::python;
use crate::root;
use crate::run::Step;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that must hold before a change is taken, quick steps first.
pub fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", &["fmt", "--all", "--check"]),
        Step::cargo("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        Step::of("python", python::environment),
        Step::cargo("tests", &["test", "--workspace", "--no-fail-fast"])
            .env(python::VARIABLE, &python::path().to_string_lossy()),
        Step::cargo("documentation", &["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    ];
    steps.extend(examples().into_iter().flat_map(|manifest| example(&manifest)));
    steps.push(Step::of("example onnx_train.py", python::example));
    steps.extend(["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"].into_iter().filter_map(other_processor));
    steps
}

/// Writes the catalogue of operators.
pub fn catalogue() -> Step {
    Step::cargo("catalogue", &["test", "-p", "backfit-suites", "--test", "catalogue"]).env("UPDATE_CATALOGUE", "1")
}

/// The manifests of the crates that use Backfit from outside the workspace.
fn examples() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join("examples")) else { return vec![] };
    let manifests = entries.filter_map(|entry| Some(entry.ok()?.path().join("Cargo.toml")));
    let mut manifests: Vec<PathBuf> = manifests.filter(|path| path.is_file()).collect();
    manifests.sort();
    manifests
}

/// Formats, lints and tests a crate, and runs it where it is a program.
fn example(manifest: &Path) -> Vec<Step> {
    let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let path = manifest.to_string_lossy();
    // One folder of artefacts for all of them.
    let artefacts =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("examples");
    let artefacts = artefacts.to_string_lossy();
    let name = |what: &str| format!("example {folder}: {what}");
    let of = ["--manifest-path", &path, "--target-dir", &artefacts];
    let mut steps = vec![
        Step::cargo(&name("format"), &["fmt", "--manifest-path", &path, "--check"]),
        Step::cargo(&name("clippy"), &[&["clippy", "--all-targets"], &of[..], &["--", "-D", "warnings"]].concat()),
        Step::cargo(&name("tests"), &[&["test"], &of[..]].concat()),
    ];
    if manifest.with_file_name("src").join("main.rs").is_file() {
        steps.push(Step::cargo(&name("run"), &[&["run"], &of[..]].concat()));
    }
    steps
}

/// Checks the types for a processor that is not this one; `None` for this one.
fn other_processor(target: &str) -> Option<Step> {
    let processor = target.split('-').next().unwrap_or_default();
    if processor == std::env::consts::ARCH {
        return None;
    }
    let name = format!("types on {processor}");
    if !is_installed(target) {
        return Some(Step::skip(&name, format!("`rustup target add {target}` installs what it needs")));
    }
    Some(Step::cargo(&name, &["check", "--workspace", "--target", target]))
}

fn is_installed(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir", "--target", target]).current_dir(root()).output();
    let folder = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    let libraries = folder.and_then(|folder| std::fs::read_dir(folder.trim()).ok());
    libraries.is_some_and(|mut entries| {
        entries.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("libcore")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_other_processor_is_checked() {
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        assert!(other_processor(&host).is_none());
        let absent = other_processor("riscv64gc-unknown-none-elf").map(|step| step.name);
        assert_eq!(absent.as_deref(), Some("types on riscv64gc"));
    }
}
