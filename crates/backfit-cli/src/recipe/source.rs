//! The text of a recipe and where in it everything stands.

use super::{Recipe, builtin};
use backfit::ir::Loc;
use backfit::{Place, Problem, Result};
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// Stands for the folder of the recipes inside the program.
const BUILTIN: &str = "built-in";

/// The text of a recipe, its name, and the changes that were asked for.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    path: PathBuf,
    text: String,
    overrides: Vec<String>,
}

impl Source {
    /// A file where the name looks like one, else a recipe inside the program.
    ///
    /// # Errors
    /// There is no such recipe, or the file cannot be read.
    pub fn open(name: &str, overrides: &[String]) -> Result<Self> {
        let path = PathBuf::from(name);
        if let Some(text) = builtin::find(name).filter(|_| !path.is_file()) {
            return Ok(Source::new(name, Path::new(BUILTIN).join(format!("{name}.toml")), text, overrides));
        }
        if !path.exists() && path.extension().is_none() {
            let names: Vec<&str> = builtin::names().collect();
            let problem = Problem::new(format!("there is no recipe '{name}'"));
            let help = format!("name a file, or one of the recipes inside backfit: {}", names.join(", "));
            return Err(problem.help(help).into());
        }
        let text = std::fs::read_to_string(&path).map_err(|e| {
            let problem = Problem::new("cannot read the recipe").in_file(&path).because(e.to_string());
            problem.help(format!("the recipes inside backfit are: {}", builtin::names().collect::<Vec<_>>().join(", ")))
        })?;
        let stem = path.file_stem().map_or_else(|| name.to_owned(), |s| s.to_string_lossy().into_owned());
        Ok(Source::new(&stem, path, &text, overrides))
    }

    /// A recipe of this name and text; `path` is named in errors.
    pub fn new(name: &str, path: impl Into<PathBuf>, text: &str, overrides: &[String]) -> Self {
        Source { name: name.to_owned(), path: path.into(), text: text.to_owned(), overrides: overrides.to_vec() }
    }

    /// The name of the recipe, without folders and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder from which relative paths in the recipe count: that of the file, or the current one for a recipe
    /// inside the program.
    pub fn folder(&self) -> &Path {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if folder == Path::new(BUILTIN) { Path::new("") } else { folder }
    }

    /// The recipe with all changes.
    ///
    /// # Errors
    /// What is not TOML, unknown keys and values of another kind, with their lines.
    pub fn parse(&self) -> Result<Recipe> {
        let recipe: Recipe = toml::from_str(&self.text).map_err(|e| self.refuse(&e))?;
        if self.overrides.is_empty() {
            return Ok(recipe);
        }
        let mut table: Table = self.text.parse().map_err(|e| self.refuse(&e))?;
        let mut changed = recipe;
        for change in &self.overrides {
            let known = keys(&table);
            set(&mut table, change)?;
            changed = Value::Table(table.clone()).try_into().map_err(|e: toml::de::Error| {
                let problem = Problem::new(format!("the recipe cannot be changed like this: {}", e.message()));
                problem.at(Place::Key(option(change))).help(format!("the recipe has the keys: {known}"))
            })?;
        }
        Ok(changed)
    }

    /// A key's line in the file, or the option that changed it.
    pub fn place(&self, key: &str) -> Place {
        let changes = |change: &&String| change.split_once('=').is_some_and(|(k, _)| k.trim() == key);
        match self.overrides.iter().rev().find(changes) {
            Some(change) => Place::Key(option(change)),
            None => Place::File(self.path.clone(), self.line(key)),
        }
    }

    /// The same as a location in a source, which the operators of a model carry.
    pub fn loc(&self, key: &str) -> Loc {
        Loc { file: self.path.to_string_lossy().into(), line: self.line(key).unwrap_or(1) as u32 }
    }

    /// The line of a key, or of the table that should have it.
    fn line(&self, key: &str) -> Option<u64> {
        let root = DeTable::parse(&self.text).ok()?.into_inner();
        let mut table: &DeTable = &root;
        let mut at = None;
        for part in key.split('.') {
            let found = table.iter().find(|(name, _)| AsRef::<str>::as_ref(name.get_ref()) == part);
            let Some((name, value)) = found else { break };
            at = Some(name.span().start);
            match value_of(value) {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        at.map(|offset| line_of(&self.text, offset))
    }

    fn refuse(&self, error: &toml::de::Error) -> Problem {
        let line = error.span().map(|span| line_of(&self.text, span.start));
        let problem = Problem::new(format!("the recipe is not valid: {}", error.message().trim_end()));
        let problem = problem.at(Place::File(self.path.clone(), line));
        let problem = match line.and_then(|n| self.text.lines().nth(n as usize - 1)) {
            Some(text) => problem.because(format!("the line is: {}", text.trim())),
            None => problem,
        };
        problem.help("correct it; 'backfit train --help' and the recipe.toml in every run show how recipes look")
    }
}

fn value_of<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> &'a DeValue<'i> {
    value.get_ref()
}

fn line_of(text: &str, offset: usize) -> u64 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&b| b == b'\n').count() as u64 + 1
}

fn option(change: &str) -> String {
    format!("--set {change}")
}

/// Applies one `key=value`. A value that is not TOML is a string.
fn set(table: &mut Table, change: &str) -> Result<()> {
    let Some((key, text)) = change.split_once('=') else {
        let problem = Problem::new("a change has the form KEY=VALUE").at(Place::Key(option(change)));
        return Err(problem.help("for example --set optimizer.learning_rate=0.01").into());
    };
    let text = text.trim();
    let value = format!("v = {text}").parse::<Table>().ok().and_then(|mut t| t.remove("v"));
    let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
    let mut path: Vec<&str> = key.trim().split('.').collect();
    let last = path.pop().unwrap_or_default();
    let mut inner = table;
    for part in path {
        let next = inner.entry(part).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(next) = next else {
            let what = format!("'{part}' is a value, not a table");
            let help = format!("`backfit inspect` shows the recipe; set '{part}' itself, or a key of another table");
            return Err(Problem::new(what).at(Place::Key(option(change))).help(help).into());
        };
        inner = next;
    }
    inner.insert(last.to_owned(), value);
    Ok(())
}

/// The keys of a table, with dots.
fn keys(table: &Table) -> String {
    fn collect(prefix: &str, table: &Table, out: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                Value::Table(inner) => collect(&format!("{prefix}{key}."), inner, out),
                _ => out.push(format!("{prefix}{key}")),
            }
        }
    }
    let mut out = Vec::new();
    collect("", table, &mut out);
    out.join(", ")
}
