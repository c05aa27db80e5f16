//! `reshape(x)`: the same elements in row-major order in another shape.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{arity, no_flops};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::op::Op;
use crate::shape::{Shape, Type};

impl Tensor {
    /// The same elements in another shape.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        if *self.shape() == shape { self.clone() } else { self.graph().push1(Op::Reshape(shape), &[self]) }
    }

    /// All axes from `axis` on (negative from the end) joined into one.
    #[track_caller]
    pub fn flatten(&self, axis: i64) -> Tensor {
        let Some(axis) = crate::axis_index(axis, self.rank().max(1)) else {
            return self.fail(format!("flatten: {} has no axis {axis}", self.ty()));
        };
        let mut dims = self.shape()[..axis.min(self.rank())].to_vec();
        dims.push(self.shape()[axis.min(self.rank())..].iter().product());
        self.reshape(dims)
    }

    /// A new axis of extent 1 at this place of the result (negative from the end: −1 is the last).
    #[track_caller]
    pub fn unsqueeze(&self, axis: i64) -> Tensor {
        let Some(axis) = crate::axis_index(axis, self.rank() + 1) else {
            return self.fail(format!("unsqueeze: {} has no place {axis} for a new axis", self.ty()));
        };
        let mut dims = self.shape().to_vec();
        dims.insert(axis, 1);
        self.reshape(dims)
    }

    /// Without an axis (negative from the end), which must have extent 1.
    #[track_caller]
    pub fn squeeze(&self, axis: i64) -> Tensor {
        match crate::axis_index(axis, self.rank()) {
            Some(found) if self.shape()[found] == 1 => {
                let mut dims = self.shape().to_vec();
                dims.remove(found);
                self.reshape(dims)
            }
            _ => self.fail(format!("squeeze: axis {axis} of {} is not one of extent 1", self.ty())),
        }
    }
}

fn target(op: &Op) -> &Shape {
    match op {
        Op::Reshape(shape) => shape,
        _ => unreachable!("a rule of reshape"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let shape = target(op);
    match shape.checked_elements() {
        Some(n) if n == types[0].shape.elements() => Ok(vec![types[0].with_shape(shape)]),
        _ => Err(format!("{} has {} elements, {shape} has another number", types[0], types[0].shape.elements())),
    }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "reshape",
    formula: "y has the elements of x in row-major order",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("shape", target(op).dims()),
        parse: |a| Ok(Op::Reshape(a.sizes("shape")?.into())),
        infer,
        eval: |_, x, ty| vec![x[0].pick(ty[0].clone(), |i| i)],
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|vjp| vec![Some(vjp.cotangent().reshape(vjp.operands[0].shape()))]),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        vec![
            Sample::floats("split and join", vec![values::tensor([4, 3], -2.0, 2.0, 1)], |_, x| vec![x[0].reshape([2, 1, 6])]),
            Sample::floats("to a scalar", vec![values::floats([1, 1], &[3.0])], |_, x| vec![x[0].reshape([])]),
        ]
    },
};
