//! The pages say what is so.

use super::{read, root};

const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "BENCHMARKS.md"];

/// The lines of the first block of Rust in Markdown.
fn block<'t>(lines: impl Iterator<Item = &'t str>, start: &str) -> Vec<&'t str> {
    lines.skip_while(|line| *line != start).skip(1).take_while(|line| *line != "```").collect()
}

#[test]
fn the_sample_in_the_readme_is_the_one_that_is_tested() {
    let (readme, library) = (read("README.md"), read("crates/backfit/src/lib.rs"));
    let docs = library.lines().map_while(|line| line.strip_prefix("//!"));
    let docs = docs.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let tested: Vec<&str> = block(docs, "```").into_iter().filter(|line| !line.starts_with('#')).collect();
    let shown = block(readme.lines(), "```rust");
    // Lines that are hidden may leave two blank ones in a row.
    let text = |lines: Vec<&str>| lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    assert!(shown.len() > 10);
    assert_eq!(text(shown), text(tested));
}

#[test]
fn the_walk_through_shows_the_operator_as_it_is() {
    let page = read("CONTRIBUTING.md");
    let shown = block(page.lines(), "```text").join("\n");
    assert_eq!(shown.trim(), read("crates/backfit-ir/src/ops/softplus.rs").trim());
}

/// Whatever stands in backticks or parentheses and begins like a path of this repository.
fn paths(text: &str) -> Vec<&str> {
    let words = text.split(['`', '(', ')', '"']).filter(|word| !word.contains(['*', ' ', '|', '\n', '{']));
    let known = |word: &&str| {
        ["crates/", "docs/", "examples/", "tests/", "xtask/", "benchmarks/", ".ci/"].iter().any(|f| word.starts_with(f))
            || word.ends_with(".md")
    };
    words.filter(known).filter(|word| !word.contains("NAME")).collect()
}

#[test]
fn paths_that_the_pages_name_exist() {
    let mut missing = Vec::new();
    for page in PAGES {
        let text = read(page);
        let found = paths(&text);
        let absent = found.into_iter().filter(|path| !root().join(path).exists());
        missing.extend(absent.map(|path| format!("{page} names {path}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
