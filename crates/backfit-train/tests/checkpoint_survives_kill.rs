//! A process that saves checkpoints again and again is killed at random moments. The file must then be
//! a whole checkpoint, and at least as new as the last one whose saving was confirmed.
//!
//! The writer is this test binary itself, started again with a mode and a path in the environment. It
//! hands over the bytes slowly, so that kills land between opening and renaming; whether they did is seen
//! by the draft they leave behind.
#![cfg(unix)]

use backfit_ir::Literal;
use backfit_train::atomic_file;
use backfit_train::checkpoint::{Checkpoint, key};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const MODE: &str = "BACKFIT_TEST_WRITER";
const FILE: &str = "BACKFIT_TEST_FILE";
const ELEMENTS: usize = 20_000;
const PAUSE: Duration = Duration::from_micros(300);

/// A checkpoint that shows by itself whether its parts belong together.
fn checkpoint(step: i32) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    for name in ["weight", "moment"] {
        checkpoint.tensors.insert(name.into(), Literal::from_i32([ELEMENTS], &vec![step; ELEMENTS]));
    }
    checkpoint.set(key::STEP, step);
    checkpoint
}

/// Writes in small pieces with pauses between.
struct Slow<'a>(&'a mut dyn Write);

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sleep(PAUSE);
        let n = self.0.write(&bytes[..bytes.len().min(8192)])?;
        self.0.flush()?;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The writer: saves step after step until it is killed. Does nothing unless started by a test below.
#[test]
fn writer() {
    let (Ok(mode), Some(file)) = (std::env::var(MODE), std::env::var_os(FILE).map(PathBuf::from)) else {
        return;
    };
    let started = Instant::now();
    let first = Checkpoint::load(&file).and_then(|c| c.get::<i32>(key::STEP)).unwrap_or(0);
    say("writing");
    for step in first + 1.. {
        let write = |out: &mut dyn Write| checkpoint(step).write_to(&mut Slow(out)).map_err(io::Error::other);
        match mode.as_str() {
            "atomic" => atomic_file::replace(&file, write).unwrap(),
            _ => write(&mut File::create(&file).unwrap()).unwrap(),
        }
        say(&format!("saved {step}"));
        assert!(started.elapsed() < Duration::from_secs(30), "nobody killed the writer");
    }
}

/// Tells the parent, on a line of its own.
fn say(what: &str) {
    println!("\n{what}");
    io::stdout().flush().unwrap();
}

/// What one kill left.
struct Outcome {
    confirmed: i32,
    found: Result<i32, String>,
    left_a_draft: bool,
}

fn kill_once(mode: &str, file: &Path, after: Duration) -> Outcome {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .env(MODE, mode)
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "writing"), "the writer did not start");
    sleep(after);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let confirmed = lines.filter_map(|l| l.strip_prefix("saved ")?.parse().ok()).last().unwrap_or(0);
    let found = Checkpoint::load(file).map_err(|e| e.to_string()).and_then(|loaded| {
        let step = loaded.get(key::STEP).map_err(|e| e.to_string())?;
        if loaded == checkpoint(step) { Ok(step) } else { Err("parts of different steps".into()) }
    });
    let mut left_a_draft = false;
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "partial") {
            left_a_draft = true;
            fs::remove_file(path).unwrap();
        }
    }
    Outcome { confirmed, found, left_a_draft }
}

/// Runs kills until `enough` says so or the time is up.
fn kill_often(mode: &str, mut enough: impl FnMut(&Outcome) -> bool) {
    let folder = std::env::temp_dir().join(format!("backfit-kill-{mode}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("model.safetensors");
    checkpoint(0).save(&file).unwrap();
    let started = Instant::now();
    for round in 0.. {
        assert!(started.elapsed() < Duration::from_secs(60), "{mode}: not enough after {round} kills");
        // Spread over loading, writing and renaming.
        let after = Duration::from_micros((round * 7_919) % 31_000);
        if enough(&kill_once(mode, &file, after)) {
            break;
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_killed_writer_leaves_the_old_checkpoint_or_the_new_one() {
    let (mut amid, mut latest) = (0, 0);
    kill_often("atomic", |outcome| {
        let found = *outcome.found.as_ref().expect("a kill must leave a whole checkpoint");
        assert!(found >= outcome.confirmed.max(latest), "step {found}, confirmed {}", outcome.confirmed);
        latest = found;
        amid += i32::from(outcome.left_a_draft);
        amid >= 120 && latest >= 50
    });
}

/// The harness can fail: it finds the losses of a writer that opens the file itself.
#[test]
fn a_writer_without_the_draft_is_found_to_lose_checkpoints() {
    let mut lost = 0;
    kill_often("in-place", |outcome| {
        lost += i32::from(outcome.found.is_err());
        lost >= 3
    });
}
