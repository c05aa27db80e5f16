//! The shape of the repository: which crate knows which, how long files are, where `unsafe` stands, and that an operator
//! is one file and one word; and that the pages say so.

mod crates;
mod operators;
mod pages;
mod sources;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the suites lie in the repository").to_owned()
}

/// A file of the repository, as text.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
