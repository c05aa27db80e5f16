//! `call`: runs a function of the module on the operands.

use super::definition::{Derivative, Kind, OpDef, Primitive, Tolerance};
use super::elementwise::no_flops;
use crate::attributes::Attributes;
use crate::graph::{FuncId, Module};
use crate::shape::Type;

/// The type rule: operands match the parameters; the results are the function's.
pub fn infer(module: &Module, callee: FuncId, operands: &[Type]) -> Result<Vec<Type>, String> {
    let function = module.functions.get(callee.index()).ok_or_else(|| format!("there is no function {}", callee.0))?;
    let params: Vec<&Type> = function.params.iter().map(|p| function.ty(p.value)).collect();
    if params.len() != operands.len() {
        return Err(format!("'{}' takes {} operands, not {}", function.name, params.len(), operands.len()));
    }
    for (param, (expected, found)) in function.params.iter().zip(params.iter().zip(operands)) {
        if *expected != found {
            return Err(format!("'{}' of '{}' is {expected}, the operand is {found}", param.name, function.name));
        }
    }
    Ok(function.results.iter().map(|r| function.ty(r.value).clone()).collect())
}

/// The definition. Calls are resolved through the module, so the rules here are never asked.
pub static DEF: OpDef = OpDef {
    name: "call",
    formula: "y… = f(x…)",
    kind: Kind::Primitive(Primitive {
        attributes: |_| Attributes::new(),
        parse: |_| Err("a call is written with its function".to_owned()),
        infer: |_, _| Err("a call is checked against its module".to_owned()),
        eval: |_, _, _| unreachable!("the interpreter runs calls itself"),
        flops: no_flops,
    }),
    derivative: Derivative::Structural,
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: Vec::new,
};
