//! `random_uniform(key)`: independent numbers from U[low, high).
//!
//! key: `u32[4]`. A number u in [0, 1) is a multiple of 2⁻ᵇ, with as many random bits b as the dtype holds exactly:
//! 53 for f64 (from two words), 24 for f32, 11 for f16, 8 for bf16; the result is low + (high − low) · u, which rounding may
//! bring up to high.

use super::composite::{accepted, number, rules};
use super::definition::{Body, Derivative, OpDef, Sample, Tolerance};
use super::elementwise::arity;
use super::fold_in::{check_key, key};
use crate::attributes::Attributes;
use crate::builder::{Graph, Tensor};
use crate::dtype::DType;
use crate::shape::{Shape, Type};

impl Tensor {
    /// Independent numbers from U[low, high); this is the key, a `u32[4]`.
    #[track_caller]
    pub fn random_uniform(&self, shape: impl Into<Shape>, low: f64, high: f64, dtype: DType) -> Tensor {
        let attributes = Attributes::new()
            .with("shape", shape.into().dims())
            .with("low", low)
            .with("high", high)
            .with("dtype", dtype);
        self.compose(&DEF, &[], attributes)
    }
}

/// A key, and the shape and float dtype of random numbers.
pub fn check_random(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    arity(types, 1)?;
    check_key(&types[0])?;
    attributes.sizes("shape")?;
    let dtype = attributes.dtype("dtype")?;
    if dtype.is_float() { Ok(()) } else { Err(format!("random numbers are of a float dtype, not {dtype}")) }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "low", "finite", f64::is_finite)?;
    number(attributes, "high", "finite", f64::is_finite)?;
    check_random(types, attributes)
}

/// U[0, 1): `count` numbers of a float dtype.
pub fn unit(graph: &Graph, key: &Tensor, count: usize, dtype: DType) -> Tensor {
    let words = if dtype == DType::F64 { 2 } else { 1 };
    let bits = graph.rng_bits(key, [words, count]);
    let top = |word: usize, bits_kept: i32| {
        let whole = bits.narrow(0, word, 1).reshape([count]);
        whole.shift_right(&whole.like(f64::from(32 - bits_kept))).cast(dtype)
    };
    match dtype {
        DType::F64 => (top(0, 27) * f64::from(1 << 26) + top(1, 26)) * 0.5f64.powi(53),
        DType::F32 => top(0, 24) * 0.5f64.powi(24),
        DType::F16 => top(0, 11) * 0.5f64.powi(11),
        _ => top(0, 8) * 0.5f64.powi(8),
    }
}

fn body(b: &Body) -> Vec<Tensor> {
    let (shape, dtype) = (Shape::from(accepted(b.attributes.sizes("shape"))), accepted(b.attributes.dtype("dtype")));
    let (low, high) = (accepted(b.attributes.float("low")), accepted(b.attributes.float("high")));
    let u = unit(b.graph, &b.operands[0], shape.elements(), dtype);
    let scaled = if (low, high) == (0.0, 1.0) { u } else { u * (high - low) + low };
    vec![scaled.reshape(shape)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "random_uniform",
    formula: "y ~ U[low, high)",
    kind: rules(check, body),
    derivative: Derivative::NotDifferentiable("its operand is an integer"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || random_samples(|key, shape, dtype| key.random_uniform(shape, -2.0, 3.0, dtype)),
};

/// Cases for random numbers.
pub fn random_samples(draw: fn(&Tensor, Vec<usize>, DType) -> Tensor) -> Vec<Sample> {
    let with = |label: &str, shape: &'static [usize], dtype| {
        let keys = vec![key([7, 11, 13, 0])];
        Sample::floats(label, keys, move |_, x| vec![draw(&x[0], shape.to_vec(), dtype)]).not_smooth()
    };
    vec![
        with("f32", &[3, 5], DType::F32),
        with("f64", &[3, 5], DType::F64),
        with("f16", &[9], DType::F16),
        with("bf16", &[9], DType::BF16),
        with("scalar", &[], DType::F32),
        with("no elements", &[2, 0], DType::F32),
    ]
}
