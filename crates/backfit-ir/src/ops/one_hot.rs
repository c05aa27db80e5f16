//! `one_hot(ids, depth)[…, i] = 1` where `ids[…] = i`, else 0.
//!
//! ids: any integer dtype, result: `[*, depth]` of the dtype asked for. An id outside 0 … depth − 1 gives zeros.

use super::composite::{accepted, index_dtype, integer, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::arity;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::Type;

impl Tensor {
    /// 1 where the index along a new last axis of extent `depth` is the id, else 0; bool gives true and false.
    #[track_caller]
    pub fn one_hot(&self, depth: usize, dtype: DType) -> Tensor {
        self.compose(&DEF, &[], Attributes::new().with("depth", depth).with("dtype", dtype))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    arity(types, 1)?;
    integer("the operand", &types[0])?;
    attributes.size("depth")?;
    let dtype = attributes.dtype("dtype")?;
    if dtype.is_packed() { Err(format!("{dtype} is packed; ask for a wider dtype")) } else { Ok(()) }
}

fn body(b: &Body) -> Vec<Tensor> {
    let ids = b.operands[0].cast(index_dtype(b.operands[0].dtype()));
    let depth = accepted(b.attributes.size("depth"));
    let dims: Vec<usize> = ids.shape().iter().copied().chain([depth]).collect();
    let classes = b.graph.iota(ids.dtype(), [depth], 0).broadcast_to(dims);
    vec![ids.spread_over(&[-1], ids.rank() + 1).eq(&classes).cast(accepted(b.attributes.dtype("dtype")))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "one_hot",
    formula: "y[…, i] = 1 where x[…] = i, else 0",
    kind: rules(check, body),
    derivative: Derivative::NotDifferentiable("its operand is an integer"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let to = |dtype| move |_: &_, x: &[Tensor]| vec![x[0].one_hot(3, dtype)];
        vec![
            Sample::integers("floats", vec![values::integers([2, 2], &[0, 2, 1, 1])], to(DType::F32)),
            Sample::integers("truth values", vec![values::integers([2], &[2, 0])], to(DType::Bool)),
            Sample::integers("outside", vec![values::integers([3], &[-1, 3, 100])], to(DType::I32)),
            Sample::integers("scalar", vec![values::integers([], &[1])], to(DType::BF16)),
        ]
    },
};
