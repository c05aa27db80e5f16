//! Functions as Graphviz pictures.

use crate::graph::{Def, FuncId, Function, Module, Node, Param, Role, ValueId};
use crate::op::Op;
use crate::rewrite::callee;
use std::fmt::Write;

/// A function in the DOT language. Nodes say operator, type and location and stand in boxes by scope;
/// parameters have a shape by role. Render it with `dot -Tsvg`.
///
/// ```
/// use backfit_ir::{DType, FuncId, Graph, dot::dot};
/// let g = Graph::new();
/// g.result("y", &g.scope("layer", || g.input("x", DType::F32, [2]).exp()));
/// let picture = dot(&g.finish().unwrap(), FuncId(0));
/// assert!(picture.starts_with("digraph \"main\" {"));
/// assert!(picture.contains("label=\"layer\""));
/// ```
///
/// # Panics
/// Where the module is not valid.
pub fn dot(module: &Module, function: FuncId) -> String {
    let function = module.function(function);
    let mut out = format!("digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n", quoted(&function.name));
    for (index, param) in function.params.iter().enumerate() {
        parameter(&mut out, function, index, param);
    }
    clusters(&mut out, module, function);
    for (index, node) in function.nodes.iter().enumerate() {
        for &operand in &node.operands {
            edge(&mut out, function, operand, &format!("n{index}"));
        }
    }
    for (index, result) in function.results.iter().enumerate() {
        let _ = writeln!(out, "  r{index} [label={}, shape=oval, style=bold];", quoted(&result.name));
        edge(&mut out, function, result.value, &format!("r{index}"));
        if let Some(alias) = result.alias {
            let _ = writeln!(out, "  r{index} -> p{alias} [style=dashed, constraint=false, label=\"writes\"];");
        }
    }
    out.push_str("}\n");
    out
}

/// A quoted string of the language; lines are kept.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

const fn shape(role: Role) -> &'static str {
    match role {
        Role::Input => "invhouse",
        Role::Weight { trainable: true } => "cylinder",
        Role::Weight { trainable: false } => "cylinder, style=dashed",
        Role::State => "folder",
        Role::Hyper => "diamond",
    }
}

fn parameter(out: &mut String, function: &Function, index: usize, param: &Param) {
    let label = quoted(&format!("{}\n{}", param.name, function.ty(param.value)));
    let _ = writeln!(out, "  p{index} [label={label}, shape={}];", shape(param.role));
}

/// Nodes, in a box for every component of their scope. Boxes open and close along the sorted paths, so deep
/// paths need no recursion.
fn clusters(out: &mut String, module: &Module, function: &Function) {
    let path = |node: usize| function.nodes[node].scope.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let mut order: Vec<(Vec<&str>, usize)> = (0..function.nodes.len()).map(|node| (path(node), node)).collect();
    order.sort();
    let (mut open, mut opened): (&[&str], usize) = (&[], 0);
    for (path, index) in &order {
        let shared = open.iter().zip(path).take_while(|(a, b)| a == b).count();
        (shared..open.len()).rev().for_each(|depth| line(out, depth, "}"));
        for (depth, part) in path.iter().enumerate().skip(shared) {
            let label = quoted(part);
            line(out, depth, &format!("subgraph cluster_{opened} {{ label={label}; color=gray;"));
            opened += 1;
        }
        let node = &function.nodes[*index];
        let style = if callee(&node.op).is_some() { ", style=rounded" } else { "" };
        line(out, path.len(), &format!("n{index} [label={}{style}];", quoted(&label(module, function, node))));
        open = path;
    }
    (0..open.len()).rev().for_each(|depth| line(out, depth, "}"));
}

fn line(out: &mut String, depth: usize, text: &str) {
    let _ = writeln!(out, "{:indent$}{text}", "", indent = 2 * depth.min(20) + 2);
}

fn label(module: &Module, function: &Function, node: &Node) -> String {
    let name = node.op.name();
    let head = match (&node.op, callee(&node.op)) {
        (_, Some(id)) => format!("{name} @{}", module.function(id).name),
        (Op::Constant(literal), _) => literal.splat().map_or(name.to_owned(), |v| format!("{name} {v}")),
        _ => name.to_owned(),
    };
    let types: Vec<String> = node.results.iter().map(|&v| function.ty(v).to_string()).collect();
    format!("{head}\n{}\n{}", types.join(", "), node.loc)
}

/// An arrow from the definition of a value; it is numbered where the node has several results.
fn edge(out: &mut String, function: &Function, value: ValueId, to: &str) {
    let _ = match function.values[value.index()].def {
        Def::Param(index) => writeln!(out, "  p{index} -> {to};"),
        Def::Node { node, result } if function.nodes[node].results.len() > 1 => {
            writeln!(out, "  n{node} -> {to} [taillabel=\"{result}\"];")
        }
        Def::Node { node, .. } => writeln!(out, "  n{node} -> {to};"),
    };
}
