//! Tables of numbers as text, with a label that may be a name.

use super::dataset::Dataset;
use crate::reading::open;
use backfit_ir::{DType, Error, Literal, Place, Problem, Result, Type};
use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// How many wrong cells are told at once.
const TOLD: usize = 10;

/// What a table looks like. Columns are named by the header, or by their number from 1 where there is none.
///
/// ```
/// use backfit_train::data::csv::Table;
/// let text = "width,height,kind\n1,2.5,cat\n3,4,dog\n";
/// let table = Table { label: Some("kind".into()), ..Table::default() };
/// let set = table.decode(text.as_bytes(), "pets.csv".as_ref())?;
/// assert_eq!(set.column("features")?.ty().to_string(), "f32[2,2]");
/// assert_eq!(set.column("label")?.to_i64(), [0, 1]);
/// assert_eq!(set.class_names().unwrap(), ["cat", "dog"]);
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Whether the first line names the columns.
    pub header: bool,
    /// What stands between two cells.
    pub delimiter: u8,
    /// The column of the class: integers, taken as they are, or names.
    pub label: Option<String>,
    /// Columns to be predicted as numbers.
    pub targets: Vec<String>,
    /// Columns to leave out.
    pub ignored: Vec<String>,
    /// Which class name gets which number.
    pub class_order: ClassOrder,
}

/// Which class name gets which number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassOrder {
    /// The first name in the file is class 0.
    #[default]
    FirstAppearance,
    /// The first name of the alphabet is class 0.
    Sorted,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            header: true,
            delimiter: b',',
            label: None,
            targets: Vec::new(),
            ignored: Vec::new(),
            class_order: ClassOrder::default(),
        }
    }
}

/// What a column of the table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Feature,
    Target,
    Label,
    Ignored,
}

impl Table {
    /// Reads a file: `features: f32[N,F]` of every column without another role, `target: f32[N,T]` and
    /// `label: i32[N]` where asked for.
    ///
    /// # Errors
    /// The file cannot be read or is empty, lines of different lengths, an unknown column, and each cell
    /// that is not a finite number, with line and column.
    pub fn read(&self, file: &Path) -> Result<Dataset> {
        self.decode(open(file)?, file)
    }

    /// Reads a table from memory or a stream; `file` is named in errors.
    ///
    /// # Errors
    /// As for [`Table::read`].
    pub fn decode(&self, content: impl Read, file: &Path) -> Result<Dataset> {
        let mut reader =
            ReaderBuilder::new().has_headers(false).delimiter(self.delimiter).trim(Trim::All).from_reader(content);
        let mut cells: Option<Cells> = None;
        let mut record = StringRecord::new();
        loop {
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => return Err(record_error(&e, file)),
            }
            let line = record.position().map_or(0, csv::Position::line);
            match &mut cells {
                Some(cells) => cells.add(&record, line, file),
                None => {
                    let names = self.names(&record);
                    let roles = self.roles(&names, file)?;
                    let started = cells.insert(Cells::new(names, roles));
                    if !self.header {
                        started.add(&record, line, file);
                    }
                }
            }
            if cells.as_ref().is_some_and(|c| c.problems.len() >= TOLD) {
                break;
            }
        }
        match cells.filter(|cells| cells.rows > 0) {
            Some(cells) => cells.finish(self.class_order, file),
            None => Err(Problem::new("the table has no rows").in_file(file).into()),
        }
    }

    fn names(&self, first: &StringRecord) -> Vec<String> {
        if self.header {
            first.iter().map(str::to_string).collect()
        } else {
            (1..=first.len()).map(|n| n.to_string()).collect()
        }
    }

    fn roles(&self, names: &[String], file: &Path) -> Result<Vec<Role>> {
        let mut roles = vec![Role::Feature; names.len()];
        let label = self.label.iter().map(|name| (name, Role::Label));
        let targets = self.targets.iter().map(|name| (name, Role::Target));
        let ignored = self.ignored.iter().map(|name| (name, Role::Ignored));
        let mut problems = Vec::new();
        for (name, role) in label.chain(targets).chain(ignored) {
            match names.iter().position(|n| n == name) {
                Some(i) => roles[i] = role,
                None => problems.push(
                    Problem::new(format!("the table has no column '{name}'"))
                        .in_file(file)
                        .help(format!("the columns are: {}", names.join(", "))),
                ),
            }
        }
        Error::from_problems(problems).map_or(Ok(roles), Err)
    }
}

/// The cells read so far, by role.
struct Cells {
    names: Vec<String>,
    roles: Vec<Role>,
    rows: usize,
    features: Vec<f32>,
    targets: Vec<f32>,
    labels: Vec<String>,
    problems: Vec<Problem>,
}

impl Cells {
    fn new(names: Vec<String>, roles: Vec<Role>) -> Self {
        let (features, targets, labels, problems) = Default::default();
        Cells { names, roles, rows: 0, features, targets, labels, problems }
    }

    fn add(&mut self, record: &StringRecord, line: u64, file: &Path) {
        self.rows += 1;
        for (i, cell) in record.iter().enumerate() {
            let into = match self.roles[i] {
                Role::Feature => &mut self.features,
                Role::Target => &mut self.targets,
                Role::Ignored => continue,
                Role::Label => {
                    if cell.is_empty() {
                        self.problems.push(wrong_cell("the label is empty", (i, &self.names[i]), line, file));
                    }
                    self.labels.push(cell.to_string());
                    continue;
                }
            };
            match cell.parse::<f32>() {
                Ok(number) if number.is_finite() => into.push(number),
                parsed => {
                    let what = match (cell, parsed) {
                        ("", _) => "the cell is empty".to_string(),
                        (_, Ok(_)) => format!("'{cell}' is not a finite f32"),
                        (_, Err(_)) => format!("'{cell}' is not a number"),
                    };
                    self.problems.push(wrong_cell(&what, (i, &self.names[i]), line, file));
                }
            }
        }
    }

    fn finish(self, class_order: ClassOrder, file: &Path) -> Result<Dataset> {
        if let Some(error) = Error::from_problems(self.problems) {
            return Err(error);
        }
        let rows = self.rows;
        let count = |role| self.roles.iter().filter(|&&r| r == role).count();
        let table = |role, values: &[f32]| Literal::from_f32([rows, count(role)], values);
        let mut columns = Vec::new();
        if count(Role::Feature) > 0 {
            columns.push(("features", table(Role::Feature, &self.features)));
        }
        if count(Role::Target) > 0 {
            columns.push(("target", table(Role::Target, &self.targets)));
        }
        let mut class_names = None;
        if count(Role::Label) > 0 {
            let (labels, names) = classes(&self.labels, class_order);
            class_names = names;
            columns.push(("label", Literal::from_i64(Type::new(DType::I32, [rows]), &labels)));
        }
        let set = Dataset::new(columns).map_err(|e| e.because("every column is ignored"))?.from_file(file);
        Ok(match class_names {
            Some(names) => set.with_class_names(names),
            None => set,
        })
    }
}

/// The number of every label, and the names where they are not numbers already.
fn classes(labels: &[String], order: ClassOrder) -> (Vec<i64>, Option<Vec<String>>) {
    let numbers: Option<Vec<i64>> = labels.iter().map(|l| l.parse::<i32>().ok().map(i64::from)).collect();
    if let Some(numbers) = numbers {
        return (numbers, None);
    }
    let mut in_order: Vec<&String> = labels.iter().collect();
    if order == ClassOrder::Sorted {
        in_order.sort_unstable();
    }
    let mut names = Vec::new();
    let mut number_of = BTreeMap::new();
    for label in in_order {
        number_of.entry(label).or_insert_with(|| {
            names.push(label.clone());
            names.len() as i64 - 1
        });
    }
    (labels.iter().map(|label| number_of[label]).collect(), Some(names))
}

fn wrong_cell(what: &str, column: (usize, &str), line: u64, file: &Path) -> Problem {
    let (i, name) = column;
    let which = if name == (i + 1).to_string() { name.to_string() } else { format!("{} ('{name}')", i + 1) };
    Problem::new(format!("{what}, in column {which}"))
        .at(Place::File(file.into(), Some(line)))
        .help("correct the cell or remove the row; name text columns as the label or as ignored")
}

fn record_error(error: &csv::Error, file: &Path) -> Error {
    let line = error.position().map(csv::Position::line);
    let what = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} cells, but the first row has {expected_len}")
        }
        ErrorKind::Utf8 { err, .. } => format!("cell {} is not UTF-8 text", err.field() + 1),
        _ => "cannot read the table".to_string(),
    };
    Problem::new(what).at(Place::File(file.into(), line)).because(error.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::damage;

    fn decode(table: &Table, text: &str) -> Result<Dataset> {
        table.decode(text.as_bytes(), Path::new("t.csv"))
    }

    fn labelled(label: &str) -> Table {
        Table { label: Some(label.into()), ..Table::default() }
    }

    #[test]
    fn columns_go_where_their_role_says() {
        let table = Table { targets: vec!["y".into()], ignored: vec!["id".into()], ..labelled("kind") };
        let set = decode(&table, "id,a,y,kind,b\nfirst,1,10,2,3\nsecond,4,11,-1,6\n").unwrap();
        assert_eq!(set.column("features").unwrap(), &Literal::from_f32([2, 2], &[1., 3., 4., 6.]));
        assert_eq!(set.column("target").unwrap(), &Literal::from_f32([2, 1], &[10., 11.]));
        assert_eq!(set.column("label").unwrap(), &Literal::from_i32([2], &[2, -1]));
        assert_eq!(set.class_names(), None);
        assert_eq!(set.file("label"), Some(Path::new("t.csv")));
    }

    #[test]
    fn without_a_header_columns_are_numbered_from_one() {
        let table = Table { header: false, delimiter: b';', ..labelled("1") };
        let set = decode(&table, "b; 1 \na;2e-1\n").unwrap();
        assert_eq!(set.column("features").unwrap().to_f32(), [1.0, 0.2]);
        assert_eq!(set.column("label").unwrap().to_i64(), [0, 1]);
    }

    #[test]
    fn class_names_are_numbered_by_appearance_or_alphabet() {
        let text = "x,k\n1,dog\n1,cat\n1,dog\n1,emu\n";
        let first = decode(&labelled("k"), text).unwrap();
        assert_eq!(first.class_names().unwrap(), ["dog", "cat", "emu"]);
        assert_eq!(first.column("label").unwrap().to_i64(), [0, 1, 0, 2]);
        let sorted = Table { class_order: ClassOrder::Sorted, ..labelled("k") };
        let sorted = decode(&sorted, text).unwrap();
        assert_eq!(sorted.class_names().unwrap(), ["cat", "dog", "emu"]);
        assert_eq!(sorted.column("label").unwrap().to_i64(), [1, 0, 1, 2]);
    }

    #[test]
    fn wrong_cells_are_told_together_with_line_and_column() {
        let e = decode(&Table::default(), "a,b\n1,2\nx,3\n4,\nnan,1e60\n").unwrap_err();
        assert_eq!(e.problems().len(), 4);
        let e = e.to_string();
        for part in [
            "'x' is not a number, in column 1 ('a')",
            "t.csv:3",
            "empty, in column 2",
            "t.csv:4",
            "'nan' is not",
            "'1e60' is not a finite",
        ] {
            assert!(e.contains(part), "{part} missing in: {e}");
        }
    }

    #[test]
    fn rows_of_different_lengths_are_refused_with_their_line() {
        let e = decode(&Table::default(), "a,b\n1,2\n3\n").unwrap_err().to_string();
        assert!(e.contains("t.csv:3") && e.contains("1 cells") && e.contains("has 2"), "{e}");
    }

    #[test]
    fn an_unknown_column_is_answered_with_those_there_are() {
        let e = decode(&labelled("kind"), "a,b\n1,2\n").unwrap_err().to_string();
        assert!(e.contains("'kind'") && e.contains("a, b"), "{e}");
    }

    #[test]
    fn tables_without_rows_or_columns_are_refused() {
        assert!(decode(&Table::default(), "").is_err());
        assert!(decode(&Table::default(), "a,b\n").is_err());
        let all = Table { ignored: vec!["a".into()], ..Table::default() };
        assert!(decode(&all, "a\n1\n").is_err());
        assert!(decode(&labelled("k"), "a,k\n1,\n").is_err());
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_name() {
        assert!(decode(&labelled("k"), "\u{feff}k,a\n1,1\n").is_ok());
    }

    #[test]
    fn damage_never_panics() {
        let text = "a,b,k\n1,2.5,\"cat\"\n3,-4e3,dog\n";
        damage::never_panics(text.as_bytes(), |b| labelled("k").decode(b, Path::new("t.csv")).is_ok());
    }
}
