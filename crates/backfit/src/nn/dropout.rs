//! Dropout.

use backfit_ir::Tensor;

/// In training, zeros every element with probability `rate` and scales the others by 1 / (1 − `rate`); outside training
/// the identity. The same as [`Tensor::dropout`].
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 64]);
/// assert_eq!(nn::dropout(&x, 0.1).ty(), x.ty());
/// ```
#[track_caller]
pub fn dropout(x: &Tensor, rate: f64) -> Tensor {
    x.dropout(rate)
}
