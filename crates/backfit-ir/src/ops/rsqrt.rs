//! `rsqrt(x) = 1 / √x`, elementwise over floats.
//!
//! NaN and numbers below 0 give NaN; +0 gives +∞ and −0 gives −∞, as 1 / √x does; +∞ gives 0.

use super::definition::{Derivative, OpDef, Tolerance, values};
use super::elementwise::{Elementwise, Takes, chain, infer_unary, samples};
use crate::builder::Tensor;
use crate::op::{Op, Unary};

impl Tensor {
    /// 1 / √x. rsqrt(±0) = ±∞; NaN below 0.
    #[track_caller]
    pub fn rsqrt(&self) -> Tensor {
        self.graph().push1(Op::Unary(Unary::Rsqrt), &[self])
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = 1 / √x",
    parse: |_| Ok(Op::Unary(Unary::Rsqrt)),
    infer: |_, types| infer_unary(types, Takes::Floats),
    eval: |_, x, ty| vec![x[0].map(ty[0].clone(), |v| 1.0 / libm::sqrt(v), |v| v)],
    derivative: Derivative::Rule(|vjp| chain(vjp, |x, y| -0.5 * y / x)),
    tolerance: Tolerance::Element(4.0),
    onnx: &[],
    samples: || samples::unary(values::tensor([3, 5], 0.25, 4.0, 1), Tensor::rsqrt),
}
.define("rsqrt");
