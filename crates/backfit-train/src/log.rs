//! The event log: one JSON object a line, written as it happens.

use backfit_ir::{Error, Place, Problem, Result};
use serde::Serialize;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Appends events to a file of JSON lines. Each is written with one call, so that whoever follows the
/// file sees whole lines.
///
/// JSON has no NaN and no infinity: `serde_json` writes them as `null`.
///
/// ```
/// use backfit_train::log::{EventLog, read};
/// use serde_json::json;
///
/// let file = std::env::temp_dir().join(format!("backfit-doc-{}.jsonl", std::process::id()));
/// let mut log = EventLog::create(&file)?;
/// log.write(&json!({"event": "step", "step": 1, "loss": 2.3}))?;
/// assert_eq!(read(&file)?[0]["loss"], 2.3);
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct EventLog {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
}

impl EventLog {
    /// A new log in place of any old one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| failed("cannot make the event log", path, &e))?;
        Ok(EventLog { file, path: path.into(), line: Vec::new() })
    }

    /// Goes on with a log, or begins one. A last line that is not whole, as a killed process leaves it,
    /// is removed.
    ///
    /// # Errors
    /// The file cannot be opened for reading and writing.
    pub fn append(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(path);
        let continued = opened.and_then(|mut file| {
            let end = end_of_lines(&mut file)?;
            file.set_len(end)?;
            file.seek(SeekFrom::Start(end))?;
            Ok(file)
        });
        let file = continued.map_err(|e| failed("cannot go on with the event log", path, &e))?;
        Ok(EventLog { file, path: path.into(), line: Vec::new() })
    }

    /// Writes one event as one line.
    ///
    /// # Errors
    /// The event is not representable in JSON, or the file cannot be written.
    pub fn write(&mut self, event: &impl Serialize) -> Result<()> {
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, event).map_err(io::Error::other);
        self.line.push(b'\n');
        let written = written.and_then(|()| self.file.write_all(&self.line));
        written.map_err(|e| failed("cannot write to the event log", &self.path, &e))
    }
}

/// Reads the events of a log. A last line that is not whole is left out.
///
/// # Errors
/// The file cannot be read, or a line is not JSON, with its number.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let bytes = std::fs::read(path).map_err(|e| failed("cannot read the event log", path, &e))?;
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let lines = bytes[..whole].split(|&b| b == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let event = |(i, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|e| {
            let place = Place::File(path.into(), Some(i as u64 + 1));
            Problem::new("the line is not an event").at(place).because(e.to_string()).into()
        })
    };
    lines.map(event).collect()
}

/// The offset behind the last line break.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let bytes = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(bytes)?;
        if let Some(at) = bytes.iter().rposition(|&b| b == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn failed(attempt: &str, path: &Path, cause: &io::Error) -> Error {
    Problem::new(attempt).in_file(path).because(cause.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("backfit-log-{test}-{}.jsonl", std::process::id()))
    }

    #[test]
    fn events_come_back_in_order() {
        let path = path("order");
        let mut log = EventLog::create(&path).unwrap();
        for step in 0..3 {
            log.write(&json!({"step": step, "note": "a\nb"})).unwrap();
        }
        let steps: Vec<Value> = read(&path).unwrap().iter().map(|e| e["step"].clone()).collect();
        assert_eq!(steps, [0, 1, 2]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_the_log_goes_on() {
        for torn in [String::new(), "{\"st".to_string(), "x".repeat(10_000)] {
            let path = path("torn");
            std::fs::write(&path, format!("{{\"step\":0}}\n{torn}")).unwrap();
            assert_eq!(read(&path).unwrap().len(), 1);
            EventLog::append(&path).unwrap().write(&json!({"step": 1})).unwrap();
            assert_eq!(read(&path).unwrap(), [json!({"step": 0}), json!({"step": 1})]);
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn appending_begins_a_log_where_there_is_none() {
        let path = path("new");
        EventLog::append(&path).unwrap().write(&json!(1)).unwrap();
        assert_eq!(read(&path).unwrap(), [json!(1)]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let path = path("bad");
        std::fs::write(&path, "1\n\noops\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("jsonl:3"));
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path).is_err());
    }
}
