//! `cast(x)`: the same numbers in another dtype, elementwise.
//!
//! To a float: the nearest value, ties to even; beyond the largest it is ±∞. From a float to an integer: truncates
//! toward zero and saturates; NaN gives 0. Between integers: wraps. To bool: whether x ≠ 0 (true for NaN).
//! From bool: 0 and 1. The operand may be packed (`i4`, `u4`, `u1`), the result may not.

use super::definition::{Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::elementwise::{Elementwise, arity, samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::interp::{Array, Data};
use crate::literal::Literal;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// The same numbers in another dtype: floats round to nearest even, floats to integers truncate and saturate
    /// (NaN gives 0), integers wrap, bool is `≠ 0`.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype {
            return self.clone();
        }
        self.graph().push1(Op::Cast(dtype), &[self]).or_poison(dtype)
    }
}

fn target(op: &Op) -> DType {
    match op {
        Op::Cast(dtype) => *dtype,
        _ => unreachable!("a rule of cast"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let dtype = target(op);
    if dtype.is_packed() {
        return Err(format!("{dtype} is packed: only constants have such a dtype"));
    }
    Ok(vec![types[0].with_dtype(dtype)])
}

/// Truncates and saturates; NaN gives 0.
fn truncate(dtype: DType, v: f64) -> i64 {
    let unused = 64 - dtype.bits() as u32;
    match dtype.class() {
        Class::Unsigned => (v as u64).min(u64::MAX >> unused) as i64,
        Class::Bool => i64::from(v != 0.0),
        _ => (v as i64).clamp(i64::MIN >> unused, i64::MAX >> unused),
    }
}

/// An integer of a dtype as f64. Where it does not fit, and is to be rounded to a narrower float afterwards,
/// the neighbour with an odd mantissa is taken, so that rounding twice gives what rounding once would.
fn to_float(from: DType, to: DType, v: i64) -> f64 {
    let exact = if from.class() == Class::Unsigned { i128::from(v as u64) } else { i128::from(v) };
    let near = exact as f64;
    let error = near as i128 - exact;
    if to == DType::F64 || error == 0 || near.to_bits() & 1 == 1 {
        return near;
    }
    let away_from_zero = (error > 0) == (exact > 0);
    f64::from_bits(if away_from_zero { near.to_bits() - 1 } else { near.to_bits() + 1 })
}

fn eval(op: &Op, x: &[&Array], ty: &[Type]) -> Vec<Array> {
    let (from, to) = (x[0].ty.dtype, target(op));
    vec![match &x[0].data {
        Data::Float(v) if to.is_float() => Array::floats(ty[0].clone(), v.clone()),
        Data::Float(v) => Array::ints(ty[0].clone(), v.iter().map(|&v| truncate(to, v)).collect()),
        Data::Int(v) if to.is_float() => {
            Array::floats(ty[0].clone(), v.iter().map(|&v| to_float(from, to, v)).collect())
        }
        Data::Int(v) => Array::ints(ty[0].clone(), v.clone()),
    }]
}

/// Between floats the cotangent is cast back; to and from integers nothing flows.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let from = vjp.operands[0].dtype();
    vec![(from.is_float() && target(vjp.op).is_float()).then(|| vjp.cotangent().cast(from))]
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = x in another dtype",
    parse: |a| Ok(Op::Cast(a.dtype("dtype")?)),
    infer,
    eval,
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || DType::COMPUTED.into_iter().flat_map(cases).collect(),
}
.define_with("cast", |op| Attributes::new().with("dtype", target(op)));

/// Numbers at which float to integer conversions truncate or saturate.
const EDGES: &[f64] =
    &[-0.9, 0.9, 1.5, -1.5, 127.5, 128.0, -129.0, 255.9, 256.0, 40000.0, 2147483648.0, 1e10, -1e19, 2e19];

fn cases(to: DType) -> Vec<Sample> {
    let cast = move |x: &Tensor| x.cast(to);
    let edges = Sample::floats("edges", vec![values::floats([EDGES.len()], EDGES)], move |_, x| vec![cast(&x[0])]);
    let mut all = samples::unary(values::tensor([3, 5], -4.0, 4.0, 1), cast);
    all.extend([samples::unary_integers(cast), samples::unary_bools(cast), edges.not_smooth()]);
    for packed in [DType::I4, DType::U4, DType::U1] {
        let literal = Literal::from_i64(Type::new(packed, [5]), &[0, 1, -1, 7, -8]);
        let build = move |g: &crate::Graph, x: &[Tensor]| vec![g.constant(literal.clone()).cast(to), x[0].clone()];
        let input = values::floats([], &[1.0]);
        all.push(Sample::floats(&format!("from {packed}"), vec![input], build).with_dtypes(&[DType::F32]).not_smooth());
    }
    let smooth = to.is_float();
    let named = |sample: Sample| Sample {
        label: format!("to {to}: {}", sample.label),
        smooth: sample.smooth && smooth,
        ..sample
    };
    all.into_iter().map(named).collect()
}
