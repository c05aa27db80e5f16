//! The page of all operators is in step with the registry. `UPDATE_CATALOGUE=1` writes it anew.

use backfit_suites::catalogue::{PATH, page};
use std::path::Path;

#[test]
fn the_catalogue_is_in_step_with_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PATH);
    let page = page();
    if std::env::var_os("UPDATE_CATALOGUE").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let first = found.lines().zip(page.lines()).find(|(old, new)| old != new);
    assert!(found == page, "{PATH} is out of step; run `cargo xtask catalogue`. First difference: {first:?}");
}
