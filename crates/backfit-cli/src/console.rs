//! What goes to stdout: text for people, or one JSON object a line.

use serde_json::Value;
use std::io::Write;

/// How results are told.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// JSON instead of text.
    pub json: bool,
}

impl Console {
    /// Text, for people only.
    pub fn say(self, text: impl AsRef<str>) {
        if !self.json {
            write(text.as_ref());
        }
    }

    /// An event, for programs only.
    pub fn event(self, event: &Value) {
        if self.json {
            write(&event.to_string());
        }
    }
}

/// One line. A reader that went away, such as `head`, ends the program without a complaint.
fn write(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Columns of text, each as wide as its widest cell; the first column is aligned left, the others right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(c, (cell, &width))| match c {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A number of bytes for people.
pub fn bytes(n: usize) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.2} MiB", n as f64 / 1_048_576.0),
    }
}

/// A loss or metric for people.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e6).contains(&size) => format!("{value:.4e}"),
        size if size < 1.0 => format!("{value:.6}"),
        _ => format!("{value:.5}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_their_columns() {
        let rows = [vec!["a".to_owned(), "10".into()], vec!["long".into(), "9".into()]];
        assert_eq!(table(&rows), "a     10\nlong   9");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([12, 2048, 3 << 20].map(bytes), ["12 B", "2.0 KiB", "3.00 MiB"]);
        assert_eq!([0.0, 0.4755879, 12.5, 1e-9].map(number), ["0", "0.475588", "12.50000", "1.0000e-9"]);
    }
}
