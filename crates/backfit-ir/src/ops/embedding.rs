//! `embedding(table, ids)`: the rows of a table that ids name.
//!
//! table: `[V, D]`, any dtype but packed ones; ids: `[*]`, any integer dtype. Result: `[*, D]`.
//! An id outside 0 … V − 1 gives the nearest row. The gradient adds up where an id repeats.

use super::composite::{integer, rank, rules};
use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Takes, arity};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

impl Tensor {
    /// The rows of this table `[V, D]` that `ids` name.
    #[track_caller]
    pub fn embedding(&self, ids: &Tensor) -> Tensor {
        self.compose(&DEF, &[ids], Attributes::new())
    }
}

fn check(types: &[Type], _: &Attributes) -> Result<(), String> {
    arity(types, 2)?;
    Takes::All.check(types[0].dtype)?;
    rank("the table", &types[0], 2, "[V, D]")?;
    integer("ids", &types[1])?;
    if types[0].shape[0] == 0 { Err(format!("the table {} has no rows", types[0])) } else { Ok(()) }
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "embedding",
    formula: "y[…, :] = table[ids[…], :]",
    kind: rules(check, |b| vec![b.operands[0].gather(&b.operands[1], 0)]),
    derivative: Derivative::Body,
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let look_up = |_: &_, x: &[Tensor]| vec![x[0].embedding(&x[1])];
        let table = || values::tensor([5, 3], -2.0, 2.0, 1);
        vec![
            Sample::floats("repeated ids", vec![table(), values::indices([2, 3], &[1, 4, 1, 0, 1, 3])], look_up),
            Sample::floats("one id", vec![table(), values::indices([], &[2])], look_up),
            Sample::floats("no ids", vec![table(), values::indices([0], &[])], look_up),
        ]
    },
};
