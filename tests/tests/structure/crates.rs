//! Data moves down only: no crate knows one below it.

use super::{read, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Every crate with the crates of the workspace that its code may use, upper ones first.
const MAY_USE: &[(&str, &[&str])] = &[
    ("backfit-ir", &[]),
    ("backfit-kernels", &[]),
    ("backfit-grad", &["backfit-ir"]),
    ("backfit-compile", &["backfit-ir"]),
    ("backfit-cpu", &["backfit-ir", "backfit-compile", "backfit-kernels"]),
    ("backfit-onnx", &["backfit-ir", "backfit-compile"]),
    ("backfit-train", &["backfit-ir", "backfit-grad", "backfit-compile"]),
    ("backfit", &["backfit-ir", "backfit-grad", "backfit-compile", "backfit-cpu", "backfit-onnx", "backfit-train"]),
    ("backfit-cli", &["backfit"]),
    ("backfit-suites", &["backfit-ir", "backfit-grad", "backfit-compile", "backfit-cpu", "backfit-onnx"]),
    ("xtask", &[]),
];

/// What tests of a crate may use besides.
// The suites build their models with the layers that users have.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[("backfit-train", &["backfit-cpu"]), ("backfit-suites", &["backfit"])];

struct Package {
    name: String,
    described: bool,
    manifest: String,
    /// Names of the crates of this workspace, and whether only tests use them.
    uses: Vec<(String, bool)>,
    roots: Vec<String>,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    list(&metadata["packages"]).iter().map(package).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn package(value: &Value) -> Package {
    // Crates of the workspace are depended on by path.
    let own = list(&value["dependencies"]).iter().filter(|d| d["path"].is_string());
    let is_root = |t: &&Value| list(&t["kind"]).iter().any(|k| k == "lib" || k == "bin");
    Package {
        name: text(&value["name"]),
        described: !text(&value["description"]).is_empty(),
        manifest: text(&value["manifest_path"]),
        uses: own.map(|d| (text(&d["name"]), d["kind"] == "dev")).collect(),
        roots: list(&value["targets"]).iter().filter(is_root).map(|t| text(&t["src_path"])).collect(),
    }
}

fn of<'t>(table: &'t [(&str, &'t [&'t str])], name: &str) -> Option<&'t [&'t str]> {
    table.iter().find(|(n, _)| *n == name).map(|(_, uses)| *uses)
}

#[test]
fn no_crate_uses_one_that_it_must_not_know() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = package.name.as_str();
        let Some(may) = of(MAY_USE, name) else {
            wrong.push(format!("{name} has no row in MAY_USE"));
            continue;
        };
        let tests = of(TESTS_MAY_USE, name).unwrap_or(&[]);
        let allowed = |used: &str, dev: bool| may.contains(&used) || dev && tests.contains(&used);
        let forbidden = package.uses.iter().filter(|(used, dev)| !allowed(used, *dev));
        wrong.extend(forbidden.map(|(used, _)| format!("{name} uses {used}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_a_one_way_street_with_a_row_for_every_crate() {
    let mut position = BTreeMap::new();
    for (index, (name, uses)) in MAY_USE.iter().enumerate() {
        assert!(uses.iter().all(|used| position.contains_key(used)), "{name} stands above what it uses");
        position.insert(*name, index);
    }
    let names: Vec<String> = packages().into_iter().map(|p| p.name).collect();
    assert!(position.keys().all(|row| names.iter().any(|n| n == row)), "a row of MAY_USE is no crate");
}

#[test]
fn every_crate_says_what_it_is() {
    for package in packages() {
        assert!(package.described, "{}: no description", package.manifest);
        let missing_docs = read(&package.manifest).contains("[lints]\nworkspace = true");
        assert!(missing_docs, "{}: it does not take the lints of the workspace", package.manifest);
        for root in &package.roots {
            assert!(read(root).starts_with("//! "), "{root}: it does not begin with its documentation");
        }
    }
    assert!(read("Cargo.toml").contains("missing_docs = \"warn\""));
}
