//! `fold_in(key, data)`: another key, made of a key and a number. The same pair gives the same key, another pair an independent one.
//!
//! key: `u32[4]`, data: a u32 scalar. Result: `u32[4]`, the four words that `rng_bits` gives for the key with word 3 xor data.
//! JAX: the function of this name.

use super::composite::rules;
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance};
use super::elementwise::arity;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::literal::Literal;
use crate::shape::Type;

impl Tensor {
    /// Another key, made of this key and a number, a u32 scalar.
    #[track_caller]
    pub fn fold_in(&self, data: &Tensor) -> Tensor {
        self.compose(&DEF, &[data], Attributes::new())
    }
}

/// Refuses anything but a key of a random operator.
pub fn check_key(ty: &Type) -> Result<(), String> {
    if *ty == Type::new(DType::U32, [4]) { Ok(()) } else { Err(format!("the key is {ty}; it must be u32[4]")) }
}

fn check(types: &[Type], _: &Attributes) -> Result<(), String> {
    arity(types, 2)?;
    check_key(&types[0])?;
    let number = types[1] == Type::new(DType::U32, []);
    if number { Ok(()) } else { Err(format!("data is {}; it must be a u32 scalar", types[1])) }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (key, data) = (&b.operands[0], &b.operands[1]);
    let last = key.narrow(0, 3, 1).xor(&data.reshape([1]));
    vec![b.graph.rng_bits(&b.graph.concatenate(&[&key.narrow(0, 0, 3), &last], 0), [4])]
}

/// Keys and numbers for samples.
pub fn key(words: [i64; 4]) -> Literal {
    Literal::from_i64(Type::new(DType::U32, [4]), &words)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "fold_in",
    formula: "y = rng_bits(key with word 3 xor data)",
    kind: rules(check, body),
    derivative: Derivative::NotDifferentiable("its operands are integers"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let fold = |_: &_, x: &[Tensor]| vec![x[0].fold_in(&x[1])];
        let number = |v| Literal::from_i64(Type::new(DType::U32, []), &[v]);
        vec![
            Sample::floats("ordinary", vec![key([1, 2, 3, 0]), number(7)], fold).not_smooth(),
            Sample::floats("extremes", vec![key([0xffff_ffff, 0, 0, 0xffff_ffff]), number(0xffff_ffff)], fold)
                .not_smooth(),
        ]
    },
};
