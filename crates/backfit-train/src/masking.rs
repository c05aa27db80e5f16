//! Which results know about padding.

use backfit_ir::{Function, ValueId};

/// The input that says which rows of a batch are samples (1) and which padding (0).
pub const VALID: &str = "valid";

/// The scalar results of a function that do not depend on the mask: padding rows would count in them.
pub(crate) fn unmasked_results(function: &Function) -> Vec<String> {
    let mut masked = vec![false; function.values.len()];
    if let Some(mask) = function.params.iter().find(|p| p.name == VALID) {
        masked[mask.value.index()] = true;
    }
    for node in &function.nodes {
        let reached = node.operands.iter().any(|v| masked[v.index()]);
        node.results.iter().for_each(|v| masked[v.index()] = reached);
    }
    let is_unmasked = |v: ValueId| function.ty(v).shape.rank() == 0 && !masked[v.index()];
    function.results.iter().filter(|r| r.alias.is_none() && is_unmasked(r.value)).map(|r| r.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::{DType, Graph};

    #[test]
    fn only_scalars_that_do_not_depend_on_the_mask_are_named() {
        let g = Graph::new();
        let x = g.input("x", DType::F32, [4]);
        let valid = g.input(VALID, DType::F32, [4]);
        g.result("masked", &(&x * &valid).sum_all());
        g.result("plain", &x.sum_all());
        g.result("rows", &x.exp());
        let module = g.finish().unwrap();
        assert_eq!(unmasked_results(&module.functions[0]), ["plain"]);
    }
}
