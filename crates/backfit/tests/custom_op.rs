//! The example of a user's own operator, which stands outside the workspace, builds and trains.

use std::path::Path;
use std::process::Command;

#[test]
fn an_operator_from_outside_the_workspace_trains() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The versions of the workspace, which are here already.
    std::fs::copy(root.join("Cargo.lock"), root.join("examples/custom_op/Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("custom_op");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--manifest-path"]).arg(root.join("examples/custom_op/Cargo.toml"));
    let output = cargo.env("CARGO_TARGET_DIR", target).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("accuracy "), "{said}");
}
