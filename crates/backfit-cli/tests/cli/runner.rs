//! Runs the binary in a folder of its own.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed at the end, in which the binary runs.
pub struct Workplace(PathBuf);

/// What the binary said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Workplace {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("backfit-cli-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Workplace(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backfit"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }

    /// Runs what must succeed.
    pub fn succeed(&self, args: &[&str]) -> Said {
        let said = self.run(args);
        assert_eq!(said.code, Some(0), "{args:?}\n{}\n{}", said.stdout, said.stderr);
        said
    }

    /// Runs what must be refused: exit code 2, these words on stderr, and nothing written.
    pub fn refuse(&self, args: &[&str], words: &[&str]) {
        let before = contents(&self.0);
        let said = self.run(args);
        assert_eq!(said.code, Some(2), "{args:?}\n{}\n{}", said.stdout, said.stderr);
        for word in words {
            assert!(said.stderr.contains(word), "{args:?}: '{word}' is missing in:\n{}", said.stderr);
        }
        assert!(said.stdout.is_empty(), "{args:?}: {}", said.stdout);
        assert_eq!(contents(&self.0), before, "{args:?} has written something");
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Said {
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The events, one object a line, each with the key `event`.
    pub fn events(&self) -> Vec<Value> {
        let event = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert!(value["event"].is_string(), "{line}");
            value
        };
        self.stdout.lines().map(event).collect()
    }

    pub fn event(&self, kind: &str) -> Value {
        let events = self.events();
        events.into_iter().rfind(|e| e["event"] == kind).unwrap_or_else(|| panic!("no '{kind}' in {}", self.stdout))
    }
}

/// Every file below a folder, with its bytes.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}
