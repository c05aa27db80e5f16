//! Errors as values: what is wrong, where, why, and what to do.

use crate::graph::Loc;
use std::fmt;
use std::path::PathBuf;

/// Where a problem was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the user's source.
    Source(Loc),
    /// A node or value of a graph, by name.
    Node(String),
    /// A file, and the line in it (from 1) where that is known.
    File(PathBuf, Option<u64>),
    /// A key of a recipe or a command-line option.
    Key(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Source(loc) => write!(f, "{loc}"),
            Place::Node(name) => write!(f, "node {name}"),
            Place::File(path, None) => write!(f, "{}", path.display()),
            Place::File(path, Some(line)) => write!(f, "{}:{line}", path.display()),
            Place::Key(key) => write!(f, "{key}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, with the values that show it.
    pub what: String,
    /// Where.
    pub place: Option<Place>,
    /// The way that led there: enclosing operators, paths through the graph, causes below.
    pub why: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without a place.
    pub fn new(what: impl Into<String>) -> Self {
        Problem { what: what.into(), place: None, why: Vec::new(), help: None }
    }

    /// Says where.
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Says where, for a file.
    pub fn in_file(self, path: impl Into<PathBuf>) -> Self {
        self.at(Place::File(path.into(), None))
    }

    /// Adds a line of explanation.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    /// Says what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if let Some(place) = &self.place {
            write!(f, "\n  at {place}")?;
        }
        for why in &self.why {
            write!(f, "\n  because {why}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// Everything that was found wrong, at least one [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    problems: Vec<Problem>,
}

/// A result whose error is [`struct@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of several problems; `None` where there are none.
    pub fn from_problems(problems: Vec<Problem>) -> Option<Self> {
        (!problems.is_empty()).then_some(Error { problems })
    }

    /// All problems, in the order in which they were met.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Adds a line of explanation to every problem.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        let why = why.into();
        for problem in &mut self.problems {
            problem.why.push(why.clone());
        }
        self
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error { problems: vec![problem] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
