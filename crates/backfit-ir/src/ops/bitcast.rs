//! `bitcast(x)`: the bits of x read as another dtype of the same width, elementwise.
//!
//! Neither dtype may be bool or packed. The payload of a NaN may change. The reference interpreter rounds x to its
//! declared dtype first, even where it otherwise keeps floats in f64.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, arity, samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::interp::Array;
use crate::literal::Literal;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// The same bits as another dtype of the same width.
    #[track_caller]
    pub fn bitcast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        self.graph().push1(Op::Bitcast(dtype), &[self]).or_poison(dtype)
    }
}

fn target(op: &Op) -> DType {
    match op {
        Op::Bitcast(dtype) => *dtype,
        _ => unreachable!("a rule of bitcast"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (from, to) = (types[0].dtype, target(op));
    Takes::Numbers.check(from)?;
    Takes::Numbers.check(to)?;
    if from.bits() != to.bits() {
        return Err(format!("{from} has {} bits, {to} has {}", from.bits(), to.bits()));
    }
    Ok(vec![types[0].with_dtype(to)])
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = the bits of x",
    parse: |a| Ok(Op::Bitcast(a.dtype("dtype")?)),
    infer,
    eval: |_, x, ty| {
        let bits = Literal::from_bytes(ty[0].clone(), x[0].to_literal().bytes()).expect("the same width");
        vec![Array::from_literal(&bits)]
    },
    derivative: Derivative::NotDifferentiable("it reads bits, not numbers"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples,
}
.define_with("bitcast", |op| Attributes::new().with("dtype", target(op)));

/// To every dtype of the same width; NaNs are left out of floats.
fn samples() -> Vec<Sample> {
    let to_all = |x: &Tensor| -> Vec<Tensor> {
        let fits = |to: &DType| *to != DType::Bool && to.bits() == x.dtype().bits();
        DType::COMPUTED.into_iter().filter(fits).map(|to| x.bitcast(to)).collect()
    };
    let numbers = values::floats([7], &[0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, 6.2e-5]);
    vec![
        Sample::floats("floats", vec![numbers], move |_, x| to_all(&x[0])).not_smooth(),
        Sample::floats("no elements", vec![values::floats([0], &[])], move |_, x| to_all(&x[0])).not_smooth(),
        Sample::integers("integers", vec![values::integers([], &[0x3C5A])], move |_, x| to_all(&x[0])),
        samples::unary_integers(|x| {
            let signed = [DType::I64, DType::I32, DType::I16, DType::I8];
            let same_width = signed.into_iter().find(|to| to.bits() == x.dtype().bits());
            same_width.map_or(x.clone(), |to| x.bitcast(to))
        }),
    ]
}
