//! Composites that ONNX has as operators of their own, with the same meaning.
//!
//! They are taken in f32 only: in half precision the language says after which steps is rounded, and onnxruntime has
//! few of them in f64.

use crate::builder::{Builder, Val};
use crate::proto::AttributeProto;
use backfit_ir::{Attributes, DType, Function, Type};

/// A composite and how it is written: attributes of ONNX from those of the call.
struct Claim {
    name: &'static str,
    onnx: &'static str,
    attributes: fn(&Attributes) -> Vec<AttributeProto>,
}

const TABLE: &[Claim] = &[
    Claim { name: "relu", onnx: "Relu", attributes: none },
    Claim { name: "softplus", onnx: "Softplus", attributes: none },
    Claim { name: "gelu", onnx: "Gelu", attributes: none },
    Claim { name: "gelu_tanh", onnx: "Gelu", attributes: |_| vec![AttributeProto::text("approximate", "tanh")] },
    Claim {
        name: "leaky_relu",
        onnx: "LeakyRelu",
        attributes: |a| vec![AttributeProto::float("alpha", a.float("slope").unwrap_or_default())],
    },
    Claim { name: "softmax", onnx: "Softmax", attributes: axis },
    Claim { name: "log_softmax", onnx: "LogSoftmax", attributes: axis },
    Claim {
        name: "layer_norm",
        onnx: "LayerNormalization",
        attributes: |a| vec![AttributeProto::float("epsilon", a.float("epsilon").unwrap_or_default())],
    },
];

/// The names in the table.
pub const CLAIMS: &[&str] = &{
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        names[at] = TABLE[at].name;
        at += 1;
    }
    names
};

fn none(_: &Attributes) -> Vec<AttributeProto> {
    vec![]
}

fn axis(attributes: &Attributes) -> Vec<AttributeProto> {
    vec![AttributeProto::int("axis", attributes.int("axis").unwrap_or(-1))]
}

/// Whether a function is a composite that is taken whole.
pub fn takes(function: &Function) -> bool {
    let Some(composite) = &function.composite else { return false };
    let types: Vec<&Type> = function.params.iter().map(|p| function.ty(p.value)).collect();
    let single = types.iter().all(|ty| ty.dtype == DType::F32 && ty.shape.elements() > 0);
    // ONNX's has a weight, and a bias only after it.
    let weighted = composite.name != "layer_norm" || composite.attributes.bool("weight") == Ok(true);
    CLAIMS.contains(&composite.name.as_str()) && single && weighted
}

/// A call of such a function.
///
/// # Panics
/// Where it is none.
pub fn lower(b: &mut Builder, function: &Function, x: &[Val], results: &[Type]) -> Vec<Val> {
    let composite = function.composite.as_ref().expect("only composites are left as calls");
    let claim = TABLE.iter().find(|c| c.name == composite.name).expect("only what is claimed is left as a call");
    let attributes = (claim.attributes)(&composite.attributes);
    b.nodes(claim.onnx, &x.iter().collect::<Vec<_>>(), attributes, results.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_compile::target::Program;
    use backfit_ir::Graph;
    use backfit_ir::ops::{Kind, find};

    #[test]
    fn claims_are_composites() {
        let composite = |name: &&&str| matches!(find(name).map(|def| &def.kind), Some(Kind::Composite(_)));
        assert_eq!(CLAIMS.iter().filter(composite).count(), TABLE.len());
    }

    fn operators(dtype: DType, weight: bool) -> Vec<String> {
        let g = Graph::new();
        let x = g.input("x", dtype, [2, 3]);
        let w = g.input("w", dtype, [3]);
        g.result("y", &x.gelu_tanh().softmax(-1).layer_norm(weight.then_some(&w), None, 1e-5));
        let module = g.finish().unwrap();
        let main = module.find("main").unwrap();
        let models = crate::export(&Program::new(module, vec![("main".to_owned(), main)])).unwrap();
        models[0].proto.graph.iter().flat_map(|g| &g.node).map(|n| n.op_type.clone()).collect()
    }

    #[test]
    fn composites_are_taken_whole_where_the_meaning_is_the_same() {
        assert_eq!(operators(DType::F32, true), ["Gelu", "Softmax", "LayerNormalization", "Identity"]);
        assert!(operators(DType::F32, false).starts_with(&["Gelu".to_owned(), "Softmax".to_owned()]));
        let half = operators(DType::F16, true);
        assert!(CLAIMS.len() < half.len() && !half.iter().any(|op| op == "Gelu" || op == "Softmax"), "{half:?}");
    }
}
