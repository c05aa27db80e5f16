//! `rng_bits(key)`: uniform u32 bits of the counter-based generator Philox4x32-10.
//!
//! The key is `u32[4]` = (k₀, k₁, c₂, c₃). Element i, row-major, is word i mod 4 of Philox with key (k₀, k₁) and
//! counter (b mod 2³², b / 2³², c₂, c₃), b = i / 4: every element can be computed by itself.
//! Errors: a key of another type. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance};
use super::elementwise::arity;
use super::structure::sized;
use crate::attributes::Attributes;
use crate::builder::{Graph, Tensor};
use crate::dtype::DType;
use crate::interp::Array;
use crate::literal::Literal;
use crate::op::Op;
use crate::shape::{Shape, Type};

impl Graph {
    /// Uniform u32 bits of a shape from a key of type `u32[4]`.
    #[track_caller]
    pub fn rng_bits(&self, key: &Tensor, shape: impl Into<Shape>) -> Tensor {
        self.push1(Op::RngBits(shape.into()), &[key])
    }
}

/// Philox4x32 with ten rounds.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let wide = u64::from(a) * u64::from(b);
        ((wide >> 32) as u32, wide as u32)
    };
    for _ in 0..10 {
        let (high0, low0) = product(0xD251_1F53, counter[0]);
        let (high1, low1) = product(0xCD9E_8D57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

fn shape(op: &Op) -> &Shape {
    match op {
        Op::RngBits(shape) => shape,
        _ => unreachable!("a rule of rng_bits"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    if types[0] != Type::new(DType::U32, [4]) {
        return Err(format!("the key is {}; it must be u32[4]", types[0]));
    }
    sized(Type::new(DType::U32, shape(op)))
}

fn eval(_: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let key: Vec<u32> = x[0].as_ints().iter().map(|&v| v as u32).collect();
    let n = results[0].shape.elements();
    let block = |b: u64| philox([b as u32, (b >> 32) as u32, key[2], key[3]], [key[0], key[1]]);
    let bits = (0..n.div_ceil(4) as u64).flat_map(block).take(n).map(i64::from).collect();
    vec![Array::ints(results[0].clone(), bits)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "rng_bits",
    formula: "y[i] = Philox4x32-10(key, i / 4)[i mod 4]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("shape", shape(op).dims()),
        parse: |a| Ok(Op::RngBits(a.sizes("shape")?.into())),
        infer,
        eval,
        // Ten rounds of two products, four exclusive ors and two additions for four elements.
        flops: |_, _, results| 20 * results[0].shape.elements() as u64,
    }),
    derivative: Derivative::NotDifferentiable("random bits do not depend continuously on the key"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let draw = |shape: &'static [usize]| move |g: &Graph, x: &[Tensor]| vec![g.rng_bits(&x[0], shape)];
        let key = |v: [u32; 4]| vec![Literal::from_i64(Type::new(DType::U32, [4]), &v.map(i64::from))];
        vec![
            Sample::integers("zero key", key([0; 4]), draw(&[4])),
            Sample::integers("rows that end within a block", key([1, 2, 3, 4]), draw(&[3, 5])),
            Sample::integers("all bits set", key([u32::MAX; 4]), draw(&[2, 2, 2])),
            Sample::integers("scalar", key([7, 0, 1, 0]), draw(&[])),
            Sample::integers("nothing", key([7, 0, 1, 0]), draw(&[0, 3])),
        ]
    },
};
