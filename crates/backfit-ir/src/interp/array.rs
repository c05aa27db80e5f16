//! Tensors of the interpreter.

use crate::dtype::{Class, DType};
use crate::literal::Literal;
use crate::shape::{Shape, Type};
use half::{bf16, f16};

/// The elements: all float dtypes as f64, all others as i64 (u64 as its bit pattern, bool as 0 and 1).
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Of a float dtype.
    Float(Vec<f64>),
    /// Of an integer dtype or bool.
    Int(Vec<i64>),
}

/// A dense row-major tensor of the interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Type.
    pub ty: Type,
    /// Elements.
    pub data: Data,
}

impl Array {
    /// From a literal.
    pub fn from_literal(literal: &Literal) -> Self {
        let ty = literal.ty().clone();
        let data = if ty.dtype.is_float() { Data::Float(literal.to_f64()) } else { Data::Int(literal.to_i64()) };
        Array { ty, data }
    }

    /// To a literal of the declared dtype.
    pub fn to_literal(&self) -> Literal {
        match &self.data {
            Data::Float(v) => Literal::from_f64(self.ty.clone(), v),
            Data::Int(v) => Literal::from_i64(self.ty.clone(), v),
        }
    }

    /// An array of a float dtype. Values are not rounded.
    pub fn floats(ty: Type, values: Vec<f64>) -> Self {
        Array { ty, data: Data::Float(values) }
    }

    /// An array of an integer dtype or bool; values are wrapped.
    pub fn ints(ty: Type, values: Vec<i64>) -> Self {
        let dtype = ty.dtype;
        Array { ty, data: Data::Int(values.into_iter().map(|v| wrap(dtype, v)).collect()) }
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.ty.shape.elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements of a float array.
    ///
    /// # Panics
    /// For an integer array: type rules keep that from happening.
    pub fn as_floats(&self) -> &[f64] {
        match &self.data {
            Data::Float(v) => v,
            Data::Int(_) => panic!("{} is not a float array", self.ty),
        }
    }

    /// The elements of an integer or bool array.
    ///
    /// # Panics
    /// For a float array: type rules keep that from happening.
    pub fn as_ints(&self) -> &[i64] {
        match &self.data {
            Data::Int(v) => v,
            Data::Float(_) => panic!("{} is not an integer array", self.ty),
        }
    }

    /// Applies the function that fits the class of the elements.
    pub fn map(&self, ty: Type, float: impl Fn(f64) -> f64, int: impl Fn(i64) -> i64) -> Array {
        match &self.data {
            Data::Float(v) => Array::floats(ty, v.iter().map(|&x| float(x)).collect()),
            Data::Int(v) => Array::ints(ty, v.iter().map(|&x| int(x)).collect()),
        }
    }

    /// Applies the function that fits the class to pairs of elements.
    pub fn zip(
        &self,
        other: &Array,
        ty: Type,
        float: impl Fn(f64, f64) -> f64,
        int: impl Fn(i64, i64) -> i64,
    ) -> Array {
        match (&self.data, &other.data) {
            (Data::Float(a), Data::Float(b)) => {
                Array::floats(ty, a.iter().zip(b).map(|(&x, &y)| float(x, y)).collect())
            }
            _ => {
                let pairs = self.as_ints().iter().zip(other.as_ints());
                Array::ints(ty, pairs.map(|(&x, &y)| int(x, y)).collect())
            }
        }
    }

    /// A tensor whose element `i` is element `index(i)` of this one: every data movement comes down to this.
    pub fn pick(&self, ty: Type, index: impl Fn(usize) -> usize) -> Array {
        let n = ty.shape.elements();
        let data = match &self.data {
            Data::Float(v) => Data::Float((0..n).map(|i| v[index(i)]).collect()),
            Data::Int(v) => Data::Int((0..n).map(|i| v[index(i)]).collect()),
        };
        Array { ty, data }
    }

    /// Copies one element from another array of the same class.
    pub fn set(&mut self, index: usize, from: &Array, from_index: usize) {
        match (&mut self.data, &from.data) {
            (Data::Float(a), Data::Float(b)) => a[index] = b[from_index],
            (Data::Int(a), Data::Int(b)) => a[index] = b[from_index],
            _ => unreachable!("type rules keep classes apart"),
        }
    }

    /// Rounds float elements to the declared dtype, and subnormals to signed zero where `flush` is set and the dtype is f64, f32 or bf16.
    pub fn round(&mut self, flush: bool) {
        let dtype = self.ty.dtype;
        if let Data::Float(v) = &mut self.data {
            for x in v {
                *x = round(dtype, *x);
                if flush && is_subnormal(dtype, *x) {
                    *x = 0f64.copysign(*x);
                }
            }
        }
    }
}

fn is_subnormal(dtype: DType, x: f64) -> bool {
    match dtype {
        // bf16 has the exponents of f32, and its arithmetic is done there.
        DType::F32 | DType::BF16 => (x as f32).is_subnormal(),
        DType::F64 => x.is_subnormal(),
        _ => false,
    }
}

fn round(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(x as f32),
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        _ => x,
    }
}

/// Wraps an integer into a dtype: two's complement, u64 as its bit pattern, bool as `≠ 0`.
pub fn wrap(dtype: DType, v: i64) -> i64 {
    let unused = 64 - dtype.bits() as u32;
    match dtype.class() {
        Class::Bool => i64::from(v != 0),
        Class::Unsigned => ((v as u64) << unused >> unused) as i64,
        _ => v << unused >> unused,
    }
}

/// Counts through the indices of a shape in row-major order.
pub struct Odometer {
    dims: Vec<usize>,
    next: Option<Vec<usize>>,
}

impl Odometer {
    /// All indices of these extents.
    pub fn new(dims: &[usize]) -> Self {
        let empty = dims.contains(&0);
        Odometer { dims: dims.to_vec(), next: (!empty).then(|| vec![0; dims.len()]) }
    }
}

impl Iterator for Odometer {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let current = self.next.clone()?;
        let mut following = current.clone();
        self.next = None;
        for axis in (0..self.dims.len()).rev() {
            following[axis] += 1;
            if following[axis] < self.dims[axis] {
                self.next = Some(following);
                break;
            }
            following[axis] = 0;
        }
        Some(current)
    }
}
