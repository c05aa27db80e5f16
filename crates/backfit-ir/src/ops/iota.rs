//! `iota`: 0, 1, 2 … along an axis, the same on all others.
//!
//! No operands. The dtype is a float (rounded) or integer (wrapped where it is too narrow to count that far).
//! Errors: no such axis; bool or a packed dtype. Source: StableHLO `iota`.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{arity, no_flops};
use super::structure::{has_axis, sized};
use crate::attributes::Attributes;
use crate::builder::{Graph, Tensor};
use crate::dtype::{Class, DType};
use crate::interp::{Array, Odometer};
use crate::op::Op;
use crate::shape::{Shape, Type};

impl Graph {
    /// Counts 0, 1, 2 … along an axis.
    #[track_caller]
    pub fn iota(&self, dtype: DType, shape: impl Into<Shape>, axis: usize) -> Tensor {
        self.push1(Op::Iota { ty: Type::new(dtype, shape), axis }, &[])
    }
}

fn parts(op: &Op) -> (&Type, usize) {
    match op {
        Op::Iota { ty, axis } => (ty, *axis),
        _ => unreachable!("a rule of iota"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 0)?;
    let (ty, axis) = parts(op);
    has_axis(ty, axis)?;
    if ty.dtype.class() == Class::Bool {
        return Err("it counts in a float or integer dtype, not bool".to_owned());
    }
    sized(ty.clone())
}

fn eval(op: &Op, _: &[&Array], results: &[Type]) -> Vec<Array> {
    let (_, axis) = parts(op);
    let ty = results[0].clone();
    let counts = Odometer::new(&ty.shape).map(|index| index[axis]);
    vec![if ty.dtype.is_float() {
        let counts = counts.map(|i| i as f64).collect();
        Array::floats(ty, counts)
    } else {
        let counts = counts.map(|i| i as i64).collect();
        Array::ints(ty, counts)
    }]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "iota",
    formula: "y[i₀,i₁,…] = i[axis]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (ty, axis) = parts(op);
            Attributes::new().with("dtype", ty.dtype).with("shape", ty.shape.dims()).with("axis", axis)
        },
        parse: |a| Ok(Op::Iota { ty: Type::new(a.dtype("dtype")?, a.sizes("shape")?), axis: a.size("axis")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|_| vec![]),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let add = |axis| move |g: &Graph, x: &[Tensor]| vec![&x[0] + &g.iota(x[0].dtype(), x[0].shape(), axis)];
        vec![
            Sample::floats("first axis", vec![values::tensor([3, 2], -2.0, 2.0, 1)], add(0)),
            Sample::floats("middle axis", vec![values::tensor([2, 3, 2], -2.0, 2.0, 1)], add(1)),
            Sample::floats("one element", vec![values::floats([1], &[2.0])], add(0)),
            Sample::floats("nothing", vec![values::floats([0, 3], &[])], add(1)),
            Sample::integers("integers", vec![values::integers([2, 3], &[1, 2, 3, 4, 5, 6])], add(1)),
        ]
    },
};
