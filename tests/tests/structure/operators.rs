//! Adding a composite touches one file and one word; everything else sees it from there.

use super::{read, root};
use backfit_ir::Module;
use backfit_ir::ops::{Kind, OpDef, REGISTRY};
use backfit_ir::rewrite::canonical_module;
use backfit_suites::catalogue::PATH;
use backfit_suites::sample::{Case, cases};
use std::fs;
use std::path::Path;

fn composites() -> impl Iterator<Item = &'static OpDef> {
    REGISTRY.iter().copied().filter(|def| matches!(def.kind, Kind::Composite(_)))
}

/// The words of the list in `ops/mod.rs`.
fn listed() -> Vec<String> {
    let text = read("crates/backfit-ir/src/ops/mod.rs");
    let start = text.find("\nops! {").expect("the list") + 7;
    let list = &text[start..start + text[start..].find("\n}").expect("its end")];
    let lines = list.lines().filter(|line| !line.trim().starts_with("///"));
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[test]
fn every_operator_is_one_word_of_the_list_and_a_file_of_that_name() {
    let listed = listed();
    let registered: Vec<&str> = REGISTRY.iter().map(|def| def.name).collect();
    assert_eq!(listed, registered, "the words of the list are the names of the operators, in order");
    for name in registered {
        assert_eq!(listed.iter().filter(|word| *word == name).count(), 1, "{name}");
        let text = read(format!("crates/backfit-ir/src/ops/{name}.rs"));
        assert!(text.starts_with("//! "), "{name} does not begin with its formula");
        assert_eq!(text.matches("pub static DEF: OpDef").count(), 1, "{name}");
    }
}

fn case_of(def: &OpDef, cases: &[Case]) -> Module {
    let case = cases.iter().find(|case| case.def.name == def.name);
    let case = case.unwrap_or_else(|| panic!("the audit has no case for {}", def.name));
    case.module().unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

#[test]
fn the_audit_and_the_text_form_know_every_composite() {
    let cases = cases();
    for def in composites() {
        let module = canonical_module(&case_of(def, &cases));
        let calls = |f: &backfit_ir::Function| f.composite.as_ref().is_some_and(|c| c.name == def.name);
        assert!(module.functions.iter().any(calls), "the sample of {} does not call it", def.name);
        let text = module.to_string();
        assert!(text.contains(&format!("composite {}", def.name)), "{text}");
        assert_eq!(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), module);
    }
}

#[test]
fn the_catalogue_has_every_operator_once() {
    let page = read(PATH);
    for def in REGISTRY {
        let link = format!("[`{0}`](../crates/backfit-ir/src/ops/{0}.rs)", def.name);
        assert_eq!(page.matches(&link).count(), 1, "{}", def.name);
    }
}

/// A composite's name stands in no code that treats all operators alike.
#[test]
fn no_pass_and_no_target_names_a_composite() {
    let mut wrong = Vec::new();
    for folder in ["backfit-ir/src", "backfit-compile/src", "backfit-cpu/src", "backfit-kernels/src"] {
        search(&root().join("crates").join(folder), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn search(folder: &Path, wrong: &mut Vec<String>) {
    for path in fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() && !path.ends_with("ops") {
            search(&path, wrong);
        }
        if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("UTF-8");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            let names = composites().filter(|def| code.iter().any(|line| line.contains(&format!("\"{}\"", def.name))));
            wrong.extend(names.map(|def| format!("{} names {}", path.display(), def.name)));
        }
    }
}
