//! `constant`: a tensor baked into the program.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, values};
use super::elementwise::{arity, no_flops};
use crate::attributes::Attributes;
use crate::interp::Array;
use crate::op::Op;

/// The definition. Its attribute, a literal, has its own syntax in the text form.
pub static DEF: OpDef = OpDef {
    name: "constant",
    formula: "y = the literal",
    kind: Kind::Primitive(Primitive {
        attributes: |_| Attributes::new(),
        parse: |_| Err("a constant is written with its literal".to_owned()),
        infer: |op, types| {
            arity(types, 0)?;
            match op {
                Op::Constant(literal) => Ok(vec![literal.ty().clone()]),
                _ => unreachable!("the rule of constant"),
            }
        },
        eval: |op, _, _| match op {
            Op::Constant(literal) => vec![Array::from_literal(literal)],
            _ => unreachable!("the rule of constant"),
        },
        flops: no_flops,
    }),
    derivative: Derivative::Rule(|_| vec![]),
    tolerance: Tolerance::Exact,
    onnx: &["Constant"],
    samples: || {
        let literal = values::tensor([2, 3], -2.0, 2.0, 1);
        vec![Sample::floats("in every dtype", vec![values::tensor([2, 3], -2.0, 2.0, 2)], move |g, x| {
            let constant = crate::Literal::from_f64(x[0].ty().clone(), &literal.to_f64());
            vec![&x[0] + &g.constant(constant)]
        })]
    },
};
