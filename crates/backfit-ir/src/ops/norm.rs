//! What the norms have in common: checks, statistics of rows, the scale and shift after them, cotangents.
//!
//! They compute in the accumulator's dtype (f32 for half precision) and give back the dtype of x;
//! weights and biases may be of any float dtype.

use super::composite::{float, shape};
use super::definition::Vjp;
use super::elementwise::sum_to;
use crate::builder::Tensor;
use crate::graph::Composite;
use crate::shape::Type;

/// Checks optional weights and biases of a shape.
pub fn check_affine(operands: &[(&str, Option<&Type>)], dims: &[usize]) -> Result<(), String> {
    operands.iter().try_for_each(|(name, ty)| match ty {
        Some(ty) => float(name, ty).and_then(|()| shape(name, ty, dims)),
        None => Ok(()),
    })
}

/// x̂ · weight + bias in the dtype of x̂, with whatever of the two is given, so shaped by `shape` that it broadcasts.
pub fn affine(x: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>, shape: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let dtype = x.dtype();
    let scaled = weight.map_or(x.clone(), |w| &x * &shape(&w.cast(dtype)));
    bias.map_or(scaled.clone(), |b| &scaled + &shape(&b.cast(dtype)))
}

/// A cotangent summed down to the shape of an operand, in the operand's dtype.
pub fn cotangent_of(operand: &Tensor, cotangent: Tensor) -> Tensor {
    sum_to(&cotangent, operand.shape()).cast(operand.dtype())
}

/// The sum of cotangents that may be zero.
pub fn total(terms: impl IntoIterator<Item = Option<Tensor>>) -> Option<Tensor> {
    terms.into_iter().flatten().reduce(|a, b| a + b)
}

/// The cotangent of a result in the dtype of the computation, so shaped by `shape`, where it is not zero.
pub fn cotangent(vjp: &Vjp, result: usize, shape: impl Fn(Tensor) -> Tensor) -> Option<Tensor> {
    vjp.cotangents.get(result).and_then(Option::as_ref).map(|g| shape(g.widen()))
}

/// A norm of rows over the last axis, told from the composite: targets and policies may compute it in a form of their own.
/// Operands are x, then the weight and the bias that there are; results are y, the mean where rows are centered, and
/// 1 / √(mean square + ε), the statistics with the last axis kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNorm {
    /// Whether the mean is subtracted first.
    pub centered: bool,
    /// Whether there is a weight.
    pub weight: bool,
    /// Whether there is a bias.
    pub bias: bool,
    /// ε.
    pub epsilon: f64,
}

impl RowNorm {
    /// The norm that a composite with this many operands is; `None` for any other composite.
    pub fn of(composite: &Composite, operands: usize) -> Option<RowNorm> {
        let attributes = &composite.attributes;
        let epsilon = attributes.float("epsilon").ok()?;
        match composite.name.as_str() {
            "rms_norm" => Some(RowNorm { centered: false, weight: operands > 1, bias: false, epsilon }),
            "layer_norm" => {
                let [weight, bias] = ["weight", "bias"].map(|name| attributes.bool(name) == Ok(true));
                Some(RowNorm { centered: true, weight, bias, epsilon })
            }
            _ => None,
        }
    }
}
