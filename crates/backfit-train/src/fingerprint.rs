//! What a model computes, as a short word: two models with the same word have interchangeable checkpoints.

use backfit_ir::{FuncId, Module, Op};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The fingerprint of a function. It depends on operators, attributes, types and names of parameters; not on
/// lines of source, nor on how Backfit carries out a composite.
pub(crate) fn fingerprint(module: &Module, function: FuncId) -> String {
    let mut text = String::new();
    describe(module, function, &mut text);
    word(text.as_bytes())
}

fn word(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn describe(module: &Module, function: FuncId, text: &mut String) {
    let f = module.function(function);
    for param in &f.params {
        // Writing to a string does not fail.
        writeln!(text, "{} {} {} {:?}", param.value, param.name, f.ty(param.value), param.role).ok();
    }
    for node in &f.nodes {
        write!(text, "{:?} = {} {:?} ", node.results, node.op.name(), node.operands).ok();
        match &node.op {
            Op::Constant(literal) => write!(text, "{} {}", literal.ty(), word(literal.bytes())).ok(),
            Op::Call(id) => describe_callee(module, *id, text),
            Op::Scan(scan) => {
                write!(text, "{} {} {} ", scan.trip_count, scan.carries, scan.reverse).ok();
                describe_callee(module, scan.body, text)
            }
            op => write!(text, "{}", (op.primitive().attributes)(op)).ok(),
        };
        text.push('\n');
    }
    for result in &f.results {
        writeln!(text, "{} {}", result.name, result.value).ok();
    }
}

/// A composite by name and attributes, another function by what it does.
fn describe_callee(module: &Module, id: FuncId, text: &mut String) -> Option<()> {
    match &module.function(id).composite {
        Some(composite) => write!(text, "{} {}", composite.name, composite.attributes).ok(),
        None => {
            text.push_str("(\n");
            describe(module, id, text);
            text.push(')');
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::{DType, Graph, Tensor};

    fn of(build: impl Fn(&Tensor) -> Tensor) -> String {
        let g = Graph::new();
        let x = g.input("x", DType::F32, [4]);
        g.result("y", &build(&x));
        let module = g.finish().unwrap();
        fingerprint(&module, FuncId(module.functions.len() as u32 - 1))
    }

    #[test]
    fn it_tells_operators_and_attributes_apart_and_not_lines() {
        assert_eq!(
            of(|x| x.tanh()),
            of(|x| {
                // Another line.
                x.tanh()
            })
        );
        assert_ne!(of(|x| x.tanh()), of(|x| x.exp()));
        assert_ne!(of(|x| x.relu()), of(|x| x.silu()));
        assert_ne!(of(|x| x.elu(1.0)), of(|x| x.elu(2.0)));
        assert_ne!(of(|x| x * 2.0), of(|x| x * 3.0));
    }
}
