//! `barrier(x…)`: the identity on all operands; no pass moves computation across it or merges through it.
//!
//! At least one operand, of any types but packed ones. Source: StableHLO `optimization_barrier`.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{no_attributes, no_flops};
use super::structure::unpacked;
use crate::builder::{Graph, Tensor};
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Graph {
    /// The same tensors, all of which are computed before any use of the results.
    #[track_caller]
    pub fn barrier(&self, tensors: &[&Tensor]) -> Vec<Tensor> {
        self.push(Op::Barrier, tensors)
    }
}

fn infer(_: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    if types.is_empty() {
        return Err("it takes at least one operand".to_owned());
    }
    types.iter().try_for_each(unpacked)?;
    Ok(types.to_vec())
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "barrier",
    formula: "y… = x…",
    kind: Kind::Primitive(Primitive {
        attributes: no_attributes,
        parse: |_| Ok(Op::Barrier),
        infer,
        eval: |_, x, _| x.iter().map(|&x| x.clone()).collect::<Vec<Array>>(),
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|vjp| vjp.cotangents.to_vec()),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let all = |g: &Graph, x: &[Tensor]| g.barrier(&x.iter().collect::<Vec<_>>());
        let x = || values::tensor([2, 3], -2.0, 2.0, 1);
        vec![
            Sample::floats("one", vec![x()], all),
            Sample::floats("several types", vec![x(), values::indices([2], &[1, 2]), values::floats([], &[1.0])], all),
            Sample::integers("integers", vec![values::integers([2], &[1, -2])], all),
        ]
    },
};
