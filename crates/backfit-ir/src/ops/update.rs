//! What the optimizers' updates have in common: their operands' types and dtypes.
//!
//! An update computes in the accumulator's dtype of the weight (f32 for half precision) and gives every new value
//! the dtype of the old one. Gradients and scalars may be of any float dtype.

use super::composite::{float, scalar, shape};
use super::definition::Body;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::Type;

/// Whether the operands are tensors of the first one's shape under these names, then scalars under those.
pub fn check(types: &[Type], tensors: &[&str], scalars: &[&str]) -> Result<(), String> {
    let count = tensors.len() + scalars.len();
    if types.len() != count {
        let names = [tensors, scalars].concat().join(", ");
        return Err(format!("it takes {count} operands ({names}), not {}", types.len()));
    }
    for (name, ty) in tensors.iter().zip(types) {
        float(name, ty)?;
        shape(name, ty, &types[0].shape)?;
    }
    scalars.iter().zip(&types[tensors.len()..]).try_for_each(|(name, ty)| scalar(name, ty))
}

/// The operands, in the dtype of the computation.
pub fn operands(b: &Body) -> Vec<Tensor> {
    let dtype = b.operands[0].dtype().accumulator();
    b.operands.iter().map(|x| x.cast(dtype)).collect()
}

/// The new values in the dtypes of the old ones.
pub fn results(new: &[&Tensor], old: &[&Tensor]) -> Vec<Tensor> {
    let dtypes: Vec<DType> = old.iter().map(|x| x.dtype()).collect();
    new.iter().zip(dtypes).map(|(x, dtype)| x.cast(dtype)).collect()
}

/// The gradient with L2 regularisation: g + weight_decay · w.
pub fn regularised(g: &Tensor, w: &Tensor, weight_decay: f64) -> Tensor {
    if weight_decay == 0.0 { g.clone() } else { g + &(w * weight_decay) }
}
