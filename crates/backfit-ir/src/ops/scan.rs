//! `scan`: a loop with a static trip count.
//!
//! Operands: carries, constants, stacked inputs (leading axis = trip count).
//! The body's parameters are carries, constants, one slice of each stacked input;
//! its results are the new carries and one slice of each stacked output.
//! Results: final carries, stacked outputs. With `reverse`, slices are taken and placed from the last to the first.

use super::definition::{Derivative, Kind, OpDef, Primitive, Tolerance};
use super::elementwise::no_flops;
use crate::attributes::Attributes;
use crate::builder::{Graph, Tensor};
use crate::graph::{FuncId, Module};
use crate::op::Op;
use crate::shape::Type;

/// The attributes of `scan`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// What is done at every step.
    pub body: FuncId,
    /// How many leading operands are carried from step to step.
    pub carries: usize,
    /// How many operands after them are the same at every step.
    pub constants: usize,
    /// Number of steps.
    pub trip_count: usize,
    /// From the last slice to the first.
    pub reverse: bool,
}

/// The type rule.
pub fn infer(module: &Module, scan: &Scan, operands: &[Type]) -> Result<Vec<Type>, String> {
    let body = module.functions.get(scan.body.index()).ok_or_else(|| format!("there is no function {}", scan.body.0))?;
    let whole = scan.carries + scan.constants;
    if operands.len() < whole {
        return Err(format!("{} operands, but {} carries and {} constants", operands.len(), scan.carries, scan.constants));
    }
    let mut arguments = operands[..whole].to_vec();
    for ty in &operands[whole..] {
        if ty.shape.first() != Some(&scan.trip_count) {
            return Err(format!("a stacked input is {ty}; its leading axis must be the trip count {}", scan.trip_count));
        }
        arguments.push(ty.with_shape(&ty.shape[1..]));
    }
    let outputs = super::call::infer(module, scan.body, &arguments)?;
    if outputs.len() < scan.carries {
        return Err(format!("'{}' has {} results but {} carries", body.name, outputs.len(), scan.carries));
    }
    for (i, (before, after)) in operands.iter().zip(&outputs[..scan.carries]).enumerate() {
        if before != after {
            return Err(format!("carry {i} enters '{}' as {before} and leaves as {after}", body.name));
        }
    }
    let stacked = outputs[scan.carries..].iter().map(|ty| {
        let mut dims = vec![scan.trip_count];
        dims.extend_from_slice(&ty.shape);
        ty.with_shape(dims)
    });
    Ok(operands[..scan.carries].iter().cloned().chain(stacked).collect())
}

impl Graph {
    /// Runs `body` `trip_count` times. Returns the final carries, then the stacked outputs.
    #[track_caller]
    pub fn scan(&self, scan: Scan, carries: &[&Tensor], constants: &[&Tensor], stacked: &[&Tensor]) -> Vec<Tensor> {
        let operands: Vec<&Tensor> = carries.iter().chain(constants).chain(stacked).copied().collect();
        self.push(Op::Scan(scan), &operands)
    }
}

/// The definition. Scans are resolved through the module, so the rules here are never asked.
pub static DEF: OpDef = OpDef {
    name: "scan",
    formula: "(c, y[i]…) = f(c, constants, x[i]…) for i in 0..n",
    kind: Kind::Primitive(Primitive {
        attributes: |_| Attributes::new(),
        parse: |_| Err("a scan is written with its function".to_owned()),
        infer: |_, _| Err("a scan is checked against its module".to_owned()),
        eval: |_, _, _| unreachable!("the interpreter runs scans itself"),
        flops: no_flops,
    }),
    derivative: Derivative::Structural,
    tolerance: Tolerance::Exact,
    onnx: &["Scan"],
    samples: Vec::new,
};
