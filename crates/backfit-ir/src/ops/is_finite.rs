//! `is_finite(x)`: whether x is neither NaN nor ±∞, elementwise over floats; the result is bool.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::interp::Array;
use crate::op::{Op, Unary};

impl Tensor {
    /// Whether elements are neither NaN nor ±∞; the result is bool.
    #[track_caller]
    pub fn is_finite(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::IsFinite), &[self]).or_poison(DType::Bool)
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = |x| < ∞",
    parse: |_| Ok(Op::Unary(Unary::IsFinite)),
    infer: |_, types| Ok(vec![infer_unary(types, Takes::Floats)?[0].with_dtype(DType::Bool)]),
    eval: |_, x, ty| {
        let finite = x[0].as_floats().iter().map(|v| i64::from(v.is_finite())).collect();
        vec![Array::ints(ty[0].clone(), finite)]
    },
    derivative: Derivative::NotDifferentiable("the result is a truth value"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let mut all = samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), Tensor::is_finite);
        all.push(samples::kinks(&[65504.0, 65520.0, 3.4e38, 3.5e38, 1e308], Tensor::is_finite));
        all.into_iter().map(Sample::not_smooth).collect()
    },
}
.define("is_finite");
