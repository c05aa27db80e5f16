//! Scopes within functions, as exceptions by scope see them.

use backfit_ir::rewrite::callee;
use backfit_ir::{Module, scope};
use std::sync::Arc;

/// Puts the user's scope of its calls and loops before those of a function's nodes, as far as all of them share it.
pub(super) fn run(module: &mut Module) {
    let mut shared: Vec<Option<Arc<str>>> = vec![None; module.functions.len()];
    // Callees stand before callers in a module.
    for index in (0..module.functions.len()).rev() {
        let function = &mut module.functions[index];
        let outer = shared[index].take().unwrap_or_default();
        for node in &mut function.nodes {
            if function.composite.is_none() {
                node.scope = scope::within(&outer, &node.scope);
            }
            if let Some(callee) = callee(&node.op) {
                let known = &mut shared[callee.index()];
                *known = Some(common(known.as_deref().unwrap_or(&node.scope), &node.scope));
            }
        }
    }
}

/// What two scopes begin with, but for what the compiler adds.
fn common(a: &str, b: &str) -> Arc<str> {
    let pairs = a.split('/').zip(b.split('/'));
    let parts = pairs.take_while(|(a, b)| a == b && scope::composites(a).next().is_none());
    parts.map(|(part, _)| part).collect::<Vec<_>>().join("/").into()
}
