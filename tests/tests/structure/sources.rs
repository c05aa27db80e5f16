//! What holds of every source file.

use super::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Longer files state why in a line that starts with `REASON`.
const LINES: usize = 700;
const REASON: &str = "//! Long because ";

/// Every Rust file of the repository, relative to its root, and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "xtask", "examples"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 100);
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("a folder that can be read").path()) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            found.push((path.strip_prefix(root()).expect("below the root").to_owned(), text));
        }
    }
}

fn report(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a line has this word outside of comments and strings.
fn says(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside: String = code.split('"').step_by(2).collect();
    outside.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

#[test]
fn long_files_state_why() {
    let long = |text: &str| text.lines().count() > LINES && !text.lines().any(|line| line.starts_with(REASON));
    let wrong = sources().into_iter().filter(|(_, text)| long(text));
    report(wrong.map(|(path, _)| format!("{}: over {LINES} lines without '{REASON}…'", path.display())).collect());
}

/// The reason stands on the line that allows it, or in the documentation right above.
fn states_why_unsafe(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|l| l.starts_with("#![allow(unsafe_code)]")) else { return false };
    lines[at].contains("// ") || at > 0 && lines[at - 1].starts_with("//! ")
}

#[test]
fn unsafe_stands_only_in_the_kernels_and_where_a_reason_is_given() {
    let elsewhere = sources().into_iter().filter(|(path, _)| !path.starts_with("crates/backfit-kernels"));
    let wrong = elsewhere.filter(|(_, text)| text.lines().any(|l| says(l, "unsafe")) && !states_why_unsafe(text));
    report(wrong.map(|(path, _)| format!("{}: unsafe without a reason", path.display())).collect());
}

#[test]
fn nothing_is_left_to_do() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let unfinished = ["todo", "unimplemented", "dbg"];
        let bad = |line: &str| unfinished.iter().any(|word| says(line, word) && line.contains(&format!("{word}!")));
        let at = text.lines().enumerate().filter(|(_, line)| bad(line));
        wrong.extend(at.map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
    }
    report(wrong);
}

#[test]
fn words_are_found_outside_comments_and_strings() {
    assert!(says("unsafe { x }", "unsafe"));
    assert!(!says(&format!("let x = {:?}; // unsafe", "unsafe"), "unsafe"));
    assert!(!says("#![allow(unsafe_code)]", "unsafe"));
}
