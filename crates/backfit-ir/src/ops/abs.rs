//! `abs(x) = |x|`, elementwise over numbers.
//!
//! Floats clear the sign, of NaN too. The smallest signed integer gives itself, and so does every unsigned one.
//! The slope is sign(x): 0 at the kink.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::dtype::Class;
use crate::op::{Op, Unary};

impl Tensor {
    /// The absolute value. The smallest signed integer gives itself.
    #[track_caller]
    pub fn abs(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Abs), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = |x|",
    parse: |_| Ok(Op::Unary(Unary::Abs)),
    infer: |_, types| infer_unary(types, Takes::Numbers),
    eval: |_, x, ty| {
        vec![x[0].map(
            ty[0].clone(),
            f64::abs,
            |v| if ty[0].dtype.class() == Class::Signed { v.wrapping_abs() } else { v },
        )]
    },
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, _| x.sign())),
    tolerance: Tolerance::Exact,
    onnx: &["Abs"],
    samples: || {
        let mut all =
            samples::unary(values::floats([2, 4], &[-4.0, -1.25, -0.5, -6.2e-5, 6.2e-5, 0.5, 1.25, 4.0]), Tensor::abs);
        all.push(samples::unary_integers(Tensor::abs));
        all
    },
}
.define("abs");
