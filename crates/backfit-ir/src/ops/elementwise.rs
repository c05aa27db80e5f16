//! What the elementwise operators have in common: type rules, definitions, broadcasting.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::error::Problem;
use crate::interp::Array;
use crate::op::Op;
use crate::shape::{Shape, Type};
use std::panic::Location;

/// Which classes of dtype an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Floats only.
    Floats,
    /// Floats and integers.
    Numbers,
    /// Integers and bool.
    Bits,
    /// Every dtype.
    All,
}

impl Takes {
    fn check(self, dtype: DType) -> Result<(), String> {
        let class = dtype.class();
        let (fits, words) = match self {
            Takes::Floats => (class == Class::Float, "a float dtype"),
            Takes::Numbers => (class != Class::Bool, "a float or integer dtype"),
            Takes::Bits => (class != Class::Float, "an integer dtype or bool"),
            Takes::All => (true, ""),
        };
        if dtype.is_packed() {
            return Err(format!("{dtype} is packed; cast it to a wider dtype first"));
        }
        if fits { Ok(()) } else { Err(format!("it takes {words}, not {dtype}")) }
    }
}

/// Refuses any number of operands but `count`.
pub fn arity(operands: &[Type], count: usize) -> Result<(), String> {
    if operands.len() == count { Ok(()) } else { Err(format!("it takes {count} operands, not {}", operands.len())) }
}

/// The type rule of a unary operator whose result has the operand's type.
pub fn infer_unary(operands: &[Type], takes: Takes) -> Result<Vec<Type>, String> {
    arity(operands, 1)?;
    takes.check(operands[0].dtype)?;
    Ok(operands.to_vec())
}

/// The type rule of a binary operator: equal types in, that type out.
pub fn infer_binary(operands: &[Type], takes: Takes) -> Result<Vec<Type>, String> {
    arity(operands, 2)?;
    if operands[0] != operands[1] {
        return Err(format!("the operands are {} and {}; they must be of one type", operands[0], operands[1]));
    }
    takes.check(operands[0].dtype)?;
    Ok(vec![operands[0].clone()])
}

/// One arithmetic operation per result element.
pub fn flops(_: &Op, _: &[Type], results: &[Type]) -> u64 {
    results[0].shape.elements() as u64
}

/// No arithmetic: data movement.
pub fn no_flops(_: &Op, _: &[Type], _: &[Type]) -> u64 {
    0
}

/// The attributes of an operator that has none.
pub fn no_attributes(_: &Op) -> Attributes {
    Attributes::new()
}

/// The parts of an elementwise primitive that differ from one to the next.
pub struct Elementwise {
    /// The formula.
    pub formula: &'static str,
    /// Type rule.
    pub infer: fn(&Op, &[Type]) -> Result<Vec<Type>, String>,
    /// Reference evaluation.
    pub eval: fn(&Op, &[&Array], &[Type]) -> Vec<Array>,
    /// Builds the operator.
    pub parse: fn(&Attributes) -> Result<Op, String>,
    /// Derivative.
    pub derivative: Derivative,
    /// Allowed difference.
    pub tolerance: Tolerance,
    /// ONNX names.
    pub onnx: &'static [&'static str],
    /// Cases.
    pub samples: fn() -> Vec<Sample>,
}

impl Elementwise {
    /// The definition under a name.
    pub const fn define(self, name: &'static str) -> OpDef {
        OpDef {
            name,
            formula: self.formula,
            kind: Kind::Primitive(Primitive {
                attributes: no_attributes,
                parse: self.parse,
                infer: self.infer,
                eval: self.eval,
                flops,
            }),
            derivative: self.derivative,
            tolerance: self.tolerance,
            onnx: self.onnx,
            samples: self.samples,
        }
    }
}

/// The shape that two shapes broadcast to by NumPy's rule: aligned at the end, unit axes stretch.
pub fn broadcast_shape(a: &Shape, b: &Shape) -> Result<Shape, String> {
    let rank = a.rank().max(b.rank());
    let extent = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |j| s[j]);
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (x, y) = (extent(a, i), extent(b, i));
        if x != y && x != 1 && y != 1 {
            return Err(format!("shapes {a} and {b} do not broadcast: {x} against {y}, counting axes from the end"));
        }
        dims.push(if x == 1 { y } else { x });
    }
    Ok(dims.into())
}

impl Tensor {
    /// This tensor repeated to `shape` by NumPy's rule: aligned at the end, unit axes stretch.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        if *self.shape() == shape {
            return self.clone();
        }
        if self.value().is_some() && broadcast_shape(self.shape(), &shape).as_ref() != Ok(&shape) {
            return self.fail(format!("broadcast: {} cannot be repeated to {shape}", self.shape()));
        }
        let first = shape.rank() - self.rank().min(shape.rank());
        let axes = (first..shape.rank()).collect();
        self.graph().push1(Op::Broadcast { shape, axes }, &[self])
    }

    /// Both tensors, broadcast to their common shape.
    #[track_caller]
    pub fn broadcast_with(&self, other: &Tensor) -> Option<(Tensor, Tensor)> {
        if self.value().is_none() || other.value().is_none() {
            return None;
        }
        match broadcast_shape(self.shape(), other.shape()) {
            Ok(shape) => Some((self.broadcast_to(&shape), other.broadcast_to(&shape))),
            Err(why) => {
                self.graph().problem(Problem::new(why), Location::caller());
                None
            }
        }
    }

    /// An elementwise binary operator after broadcasting.
    #[track_caller]
    pub fn binary(&self, op: Op, other: &Tensor) -> Tensor {
        match self.broadcast_with(other) {
            Some((a, b)) => self.graph().push1(op, &[&a, &b]),
            None => self.graph().poison(self.ty().clone()),
        }
    }
}

/// Sums a cotangent over the axes along which its operand was broadcast, down to `shape`.
pub fn sum_to(cotangent: &Tensor, shape: &Shape) -> Tensor {
    let extra = cotangent.rank() - shape.rank();
    let axes: Vec<i64> = (0..cotangent.rank())
        .filter(|&i| i < extra || (shape[i - extra] == 1 && cotangent.shape()[i] != 1))
        .map(|i| i as i64)
        .collect();
    cotangent.sum(&axes).reshape(shape)
}

/// The usual derivative of a unary operator: cotangent × slope, where `slope` builds dy/dx from x and y.
pub fn chain(vjp: &Vjp, slope: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Vec<Option<Tensor>> {
    vec![Some(vjp.cotangent() * &slope(&vjp.operands[0], &vjp.results[0]))]
}
