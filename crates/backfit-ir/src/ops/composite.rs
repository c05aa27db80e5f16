//! What the composites have in common: rules, checks, optional operands, samples.

use super::definition::{Body, Composite, Kind, OpDef, Sample, values};
use super::elementwise::{Takes, infer_unary};
use crate::attributes::{AttrResult, Attributes};
use crate::builder::{Tensor, axis_index};
use crate::dtype::DType;
use crate::op::{Keyword, Monoid};
use crate::shape::Type;

/// The rules of a composite with one result, which does the same in and outside training.
pub const fn rules(check: fn(&[Type], &Attributes) -> Result<(), String>, body: fn(&Body) -> Vec<Tensor>) -> Kind {
    Kind::Composite(Composite { results: 1, check, body, inference: None })
}

/// An attribute read in a body or derivative, which are built only where `check` has accepted it.
///
/// # Panics
/// Where `check` does not read the attribute in the same way.
pub fn accepted<T>(read: AttrResult<T>) -> T {
    read.expect("`check` reads every attribute")
}

/// Refuses anything but one float operand.
pub fn one_float(types: &[Type]) -> Result<(), String> {
    infer_unary(types, Takes::Floats).map(drop)
}

/// Refuses integers, bool and packed dtypes.
pub fn float(name: &str, ty: &Type) -> Result<(), String> {
    if ty.dtype.is_float() { Ok(()) } else { Err(format!("{name} is {ty}; it must be of a float dtype")) }
}

/// Refuses floats, bool and packed dtypes.
pub fn integer(name: &str, ty: &Type) -> Result<(), String> {
    let fits = ty.dtype.is_integer() && !ty.dtype.is_packed();
    if fits { Ok(()) } else { Err(format!("{name} is {ty}; it must be of an integer dtype")) }
}

/// Refuses another rank.
pub fn rank(name: &str, ty: &Type, rank: usize, axes: &str) -> Result<(), String> {
    if ty.shape.rank() == rank { Ok(()) } else { Err(format!("{name} is {ty}; it must have the {rank} axes {axes}")) }
}

/// Refuses another shape.
pub fn shape(name: &str, ty: &Type, dims: &[usize]) -> Result<(), String> {
    let expected = crate::Shape::from(dims);
    if ty.shape == expected { Ok(()) } else { Err(format!("{name} is {ty}; its shape must be {expected}")) }
}

/// Refuses another dtype.
pub fn dtype(name: &str, ty: &Type, dtype: DType) -> Result<(), String> {
    if ty.dtype == dtype { Ok(()) } else { Err(format!("{name} is {ty}; it must be {dtype}, so cast it")) }
}

/// Refuses anything but a float scalar.
pub fn scalar(name: &str, ty: &Type) -> Result<(), String> {
    float(name, ty)?;
    shape(name, ty, &[])
}

/// An axis of a type, counted from the front.
pub fn axis(ty: &Type, axis: i64) -> Result<usize, String> {
    axis_index(axis, ty.shape.rank()).ok_or_else(|| format!("{ty} has no axis {axis}"))
}

/// Distinct axes of a type.
pub fn axes(ty: &Type, axes: &[i64]) -> Result<(), String> {
    let mut found = axes.iter().map(|&a| axis(ty, a)).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    found.dedup();
    if found.len() == axes.len() { Ok(()) } else { Err(format!("axes {axes:?} of {ty} name an axis twice")) }
}

/// A float attribute that must lie in a range, said in words.
pub fn number(attributes: &Attributes, name: &str, words: &str, fits: fn(f64) -> bool) -> Result<f64, String> {
    let value = attributes.float(name)?;
    if fits(value) { Ok(value) } else { Err(format!("{name} is {value}; it must be {words}")) }
}

/// `epsilon` of a norm.
pub fn epsilon(attributes: &Attributes) -> Result<f64, String> {
    number(attributes, "epsilon", "finite and not negative", |v| v.is_finite() && v >= 0.0)
}

/// A pair of extents.
pub fn pair(attributes: &Attributes, name: &str) -> Result<[usize; 2], String> {
    let sizes = attributes.sizes(name)?;
    <[usize; 2]>::try_from(sizes).map_err(|sizes| format!("{name} is {sizes:?}; it takes height and width"))
}

/// A word of an enumeration.
pub fn word<T: Keyword>(attributes: &Attributes, name: &str) -> Result<T, String> {
    T::from_word(attributes.str(name)?).map_err(|why| format!("{name}: {why}"))
}

/// The operands after the first `required` ones, in order; bool attributes of these names say which are given.
pub fn optional<'a, T, const N: usize>(
    operands: &'a [T],
    attributes: &Attributes,
    required: usize,
    names: [&str; N],
) -> Result<[Option<&'a T>; N], String> {
    let mut rest = operands.iter().skip(required);
    let mut found = [None; N];
    let mut count = required;
    for (place, name) in found.iter_mut().zip(names) {
        if attributes.bool(name)? {
            *place = rest.next();
            count += 1;
        }
    }
    if operands.len() == count { Ok(found) } else { Err(format!("it takes {count} operands, not {}", operands.len())) }
}

/// The operands that are given.
pub fn given<'a>(operands: &[Option<&'a Tensor>]) -> Vec<&'a Tensor> {
    operands.iter().copied().flatten().collect()
}

/// The dtype in which indices of this dtype are compared and computed.
pub fn index_dtype(dtype: DType) -> DType {
    if dtype.bits() == 64 || dtype == DType::U32 { DType::I64 } else { DType::I32 }
}

impl Tensor {
    /// Calls a composite on this tensor and others and returns its first result.
    #[track_caller]
    pub fn compose(&self, def: &'static OpDef, others: &[&Tensor], attributes: Attributes) -> Tensor {
        let operands: Vec<&Tensor> = std::iter::once(self).chain(others.iter().copied()).collect();
        self.graph().composite(def, &operands, attributes).swap_remove(0)
    }

    /// Half precision as f32, in which statistics are accumulated; every other dtype as it is.
    #[track_caller]
    pub fn widen(&self) -> Tensor {
        self.cast(self.dtype().accumulator())
    }

    /// The mean over axes, which stay with extent 1.
    pub(crate) fn mean_keep(&self, axes: &[i64]) -> Tensor {
        let count: usize = axes.iter().map(|&a| self.dim(a)).product();
        &self.reduce_keep(Monoid::Sum, axes) / count as f64
    }

    /// A reduced tensor with its vanished axes back, with extent 1, so that it broadcasts against the original of this rank.
    pub(crate) fn spread_over(&self, axes: &[i64], rank: usize) -> Tensor {
        let gone: Vec<usize> = axes.iter().filter_map(|&a| axis_index(a, rank)).collect();
        let mut left = self.shape().iter();
        let dims = (0..rank).map(|a| if gone.contains(&a) { 1 } else { left.next().copied().unwrap_or(1) });
        self.reshape(dims.collect::<Vec<_>>())
    }

    /// A vector of channels so shaped that it broadcasts against `[N, C, *]` of this rank.
    pub(crate) fn as_channels(&self, rank: usize) -> Tensor {
        let mut dims = vec![1; rank];
        dims[1] = self.shape().elements();
        self.reshape(dims)
    }
}

/// Cases for an elementwise composite: shapes, large magnitudes, danger values, and 0, where it may have a kink.
pub fn activation_samples(apply: fn(&Tensor) -> Tensor) -> Vec<Sample> {
    let build = move |_: &_, x: &[Tensor]| vec![apply(&x[0])];
    vec![
        Sample::floats("ordinary", vec![values::tensor([3, 5], -4.0, 4.0, 1)], build),
        Sample::floats("scalar", vec![values::floats([], &[0.75])], build),
        Sample::floats("no elements", vec![values::floats([2, 0], &[])], build),
        Sample::floats("far from zero", vec![values::floats([4], &[-100.0, -20.0, 20.0, 100.0])], build),
        Sample::floats("at zero", vec![values::floats([2], &[0.0, -0.0])], build).not_smooth(),
        Sample::floats("danger values", vec![values::danger()], build).not_smooth(),
    ]
}
