//! The page of all operators, made from the registry.

use crate::sample::cases;
use backfit_ir::ops::{Derivative, Kind, OpDef, REGISTRY, Tolerance};
use backfit_ir::{Attributes, Module};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where the page lies, from the root of the repository.
pub const PATH: &str = "docs/operators.md";

const HEAD: &str = "\
# Operators

Made from the registry by `cargo xtask catalogue`; a test keeps it in step. The file of an operator has its shapes, dtypes,
errors and source.

*Derivative*: `rule`, written by hand; `body`, that of what it is made of; `structural`, by the reverse mode itself; `zero`,
a constant to derivatives; or none, and why. *Tolerance*: how near a target must come to the reference, in units of the
dtype's epsilon, relative to the element, or to the largest element of the result (`of the norm`).
";

/// The page.
///
/// # Panics
/// Where a sample of an operator does not build.
pub fn page() -> String {
    let attributes = attributes();
    let mut page = HEAD.to_owned();
    let is_primitive = |def: &OpDef| matches!(def.kind, Kind::Primitive(_));
    let about = "The closed set that every target matches exhaustively.";
    section(&mut page, "Primitives", about, &attributes, is_primitive);
    let about = "Functions of primitives and other composites. A target may take one whole; none needs to.";
    section(&mut page, "Composites", about, &attributes, |def| !is_primitive(def));
    page
}

fn section(page: &mut String, title: &str, about: &str, known: &Names, keep: impl Fn(&OpDef) -> bool) {
    let defs: Vec<&OpDef> = REGISTRY.iter().copied().filter(|def| keep(def)).collect();
    write!(page, "\n## {title}\n\n{about} There are {}.\n\n", defs.len()).expect("strings take all");
    page.push_str("| operator | formula | attributes | derivative | tolerance | ONNX |\n|---|---|---|---|---|---|\n");
    for def in defs {
        let link = format!("[`{0}`](../crates/backfit-ir/src/ops/{0}.rs)", def.name);
        let attributes = words(known.get(def.name).into_iter().flatten().map(String::as_str));
        let onnx = words(def.onnx.iter().copied());
        let cells = [link, cell(def.formula), attributes, derivative(def), tolerance(def.tolerance), onnx];
        writeln!(page, "| {} |", cells.join(" | ")).expect("strings take all");
    }
}

fn words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ")
}

/// A text that Markdown takes as it is.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '|' | '*' | '_' | '\\' | '<' | '[' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn derivative(def: &OpDef) -> String {
    match def.derivative {
        Derivative::Rule(_) => "rule".to_owned(),
        Derivative::Body => "body".to_owned(),
        Derivative::Structural => "structural".to_owned(),
        Derivative::Zero => "zero".to_owned(),
        Derivative::NotDifferentiable(why) => format!("none: {}", cell(why)),
    }
}

fn tolerance(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Exact => "same bits".to_owned(),
        Tolerance::Element(units) => format!("{units}"),
        Tolerance::Norm(units) => format!("{units} of the norm"),
    }
}

/// Names of attributes by operator.
type Names = BTreeMap<String, Vec<String>>;

/// The attributes that the samples show, in the order in which the operators declare them.
fn attributes() -> Names {
    let mut names = Names::new();
    for case in cases() {
        let module = case.module().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        collect(&module, case.def, names.entry(case.def.name.to_owned()).or_default());
    }
    names
}

fn collect(module: &Module, def: &OpDef, names: &mut Vec<String>) {
    let mut add = |attributes: &Attributes| {
        for (name, _) in attributes.iter() {
            if names.iter().all(|known| known != name) {
                names.push(name.to_owned());
            }
        }
    };
    match &def.kind {
        Kind::Primitive(primitive) => {
            let nodes = module.functions.iter().flat_map(|f| &f.nodes);
            nodes.filter(|node| node.op.name() == def.name).for_each(|node| add(&(primitive.attributes)(&node.op)));
        }
        Kind::Composite(_) => {
            let composites = module.functions.iter().filter_map(|f| f.composite.as_ref());
            composites.filter(|composite| composite.name == def.name).for_each(|composite| add(&composite.attributes));
        }
    }
}
