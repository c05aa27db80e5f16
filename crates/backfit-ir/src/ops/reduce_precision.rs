//! `reduce_precision(x)`: x rounded to a float format with fewer bits, elementwise over floats; the dtype stays.
//!
//! As in StableHLO and XLA: the mantissa is rounded to nearest, ties to even; then what is too large for the exponent
//! becomes ±∞, and what is below the format's smallest normal number becomes ±0. With the exponent bits of the
//! dtype itself subnormals stay. NaN, ±0 and ±∞ are kept. Bits beyond the dtype's own change nothing.
//!
//! Derivative: the cotangent passes unchanged; rounding is treated as the identity.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, infer_unary, samples};
use crate::attributes::{AttrResult, Attributes};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// This tensor rounded to a format with these bits of exponent (at least 1) and mantissa, in the same dtype.
    #[track_caller]
    pub fn reduce_precision(&self, exponent: u32, mantissa: u32) -> Tensor {
        self.graph().push1(Op::ReducePrecision { exponent, mantissa }, &[self])
    }
}

fn bits(op: &Op) -> (u32, u32) {
    match op {
        Op::ReducePrecision { exponent, mantissa } => (*exponent, *mantissa),
        _ => unreachable!("a rule of reduce_precision"),
    }
}

fn parse(a: &Attributes) -> AttrResult<Op> {
    let bits = |name| u32::try_from(a.size(name)?).map_err(|_| format!("attribute '{name}' is too large"));
    Ok(Op::ReducePrecision { exponent: bits("exponent")?, mantissa: bits("mantissa")? })
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    if bits(op).0 == 0 {
        return Err("a format needs at least one bit of exponent".to_owned());
    }
    infer_unary(types, Takes::Floats)
}

/// Bits of exponent and mantissa of a float dtype.
fn format(dtype: DType) -> (u32, u32) {
    match dtype {
        DType::F32 => (8, 23),
        DType::F16 => (5, 10),
        DType::BF16 => (8, 7),
        _ => (11, 52),
    }
}

/// Rounds a number of a dtype to a format.
pub fn reduce_precision(dtype: DType, exponent: u32, mantissa: u32, x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let (full, all) = format(dtype);
    let bias = |bits: u32| (1 << (bits.min(full) - 1)) - 1;
    let last = libm::ilogb(x).max(1 - bias(full)) - mantissa.min(all) as i32;
    let rounded = libm::scalbn(libm::rint(libm::scalbn(x, -last)), last);
    let magnitude = rounded.abs();
    if magnitude >= libm::scalbn(1.0, bias(exponent) + 1) {
        f64::INFINITY.copysign(x)
    } else if exponent < full && magnitude < libm::scalbn(1.0, 1 - bias(exponent)) {
        0f64.copysign(x)
    } else {
        rounded
    }
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = x rounded to fewer bits",
    parse,
    infer,
    eval: |op, x, ty| {
        let (exponent, mantissa) = bits(op);
        vec![x[0].map(ty[0].clone(), |v| reduce_precision(ty[0].dtype, exponent, mantissa, v), |v| v)]
    },
    derivative: Derivative::Rule(|vjp| vec![vjp.cotangents[0].clone()]),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        [(8, 7), (5, 10), (5, 2), (4, 3), (2, 1), (8, 23), (11, 52), (1, 0)].into_iter().flat_map(cases).collect()
    },
}
.define_with("reduce_precision", |op| {
    let (exponent, mantissa) = bits(op);
    Attributes::new().with("exponent", exponent as usize).with("mantissa", mantissa as usize)
});

/// Rounding makes steps, so no derivative is compared.
fn cases((exponent, mantissa): (u32, u32)) -> Vec<Sample> {
    let round = move |x: &Tensor| x.reduce_precision(exponent, mantissa);
    let mut all = samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), round);
    all.push(samples::kinks(
        &[1.00390625, 1.01171875, 448.0, 464.0, 480.0, 65519.0, 65520.0, 0.015625, 0.0078125, 3.4e38],
        round,
    ));
    let name = |sample: Sample| Sample { label: format!("e{exponent}m{mantissa}: {}", sample.label), ..sample };
    all.into_iter().map(|sample| name(sample).not_smooth()).collect()
}
