//! What the elementwise operators have in common: type rules, definitions, broadcasting, infix operators, samples.

mod broadcast;
mod infix;
pub mod samples;

pub use broadcast::{broadcast_shape, sum_to};
pub(crate) use infix::infix;

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;
use std::cmp::Ordering;

/// Which classes of dtype an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Floats only.
    Floats,
    /// Floats and integers.
    Numbers,
    /// Integers only.
    Integers,
    /// Integers and bool.
    Bits,
    /// Every dtype.
    All,
}

impl Takes {
    /// Refuses a dtype of another class, and every packed one.
    pub fn check(self, dtype: DType) -> Result<(), String> {
        let class = dtype.class();
        let (fits, words) = match self {
            Takes::Floats => (class == Class::Float, "a float dtype"),
            Takes::Numbers => (class != Class::Bool, "a float or integer dtype"),
            Takes::Integers => (dtype.is_integer(), "an integer dtype"),
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
    /// The definition of an operator without attributes.
    pub const fn define(self, name: &'static str) -> OpDef {
        self.define_with(name, no_attributes)
    }

    /// The definition of an operator with attributes.
    pub const fn define_with(self, name: &'static str, attributes: fn(&Op) -> Attributes) -> OpDef {
        OpDef {
            name,
            formula: self.formula,
            kind: Kind::Primitive(Primitive {
                attributes,
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

/// How two integers of a dtype compare: unsigned ones by their bit patterns.
pub fn order(dtype: DType, a: i64, b: i64) -> Ordering {
    if dtype.class() == Class::Unsigned { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) }
}

/// The usual derivative of a unary operator: cotangent × slope, where `slope` builds dy/dx from x and y.
pub fn chain(vjp: &Vjp, slope: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Vec<Option<Tensor>> {
    vec![Some(vjp.cotangent() * &slope(&vjp.operands[0], &vjp.results[0]))]
}
