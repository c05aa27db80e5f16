//! Shapes and tensor types.

use crate::dtype::DType;
use std::fmt;
use std::ops::Deref;

/// The largest rank a tensor may have.
pub const MAX_RANK: usize = 8;

/// The extents of a tensor, outermost axis first. Row-major everywhere; rank 0 is a scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// The shape of a scalar.
    pub const fn scalar() -> Self {
        Shape(Vec::new())
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// Number of elements, or `None` where the product or its size in bytes at 8 bytes an element
    /// would not fit an `isize` (sizes read from files are untrusted).
    pub fn checked_elements(&self) -> Option<usize> {
        let mut n = 1usize;
        for &d in &self.0 {
            n = n.checked_mul(d)?;
        }
        (n <= isize::MAX as usize / 8).then_some(n)
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.0[i];
        }
        strides
    }

    /// The extents as a slice.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(dims)
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Shape(dims.to_vec())
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(dims.to_vec())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

/// The type of a value: dtype × shape. Prints as `f32[128,784]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
}

impl Type {
    /// A type from its parts.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Type { dtype, shape: shape.into() }
    }

    /// Bytes that a dense row-major tensor of this type takes.
    pub fn bytes(&self) -> usize {
        self.dtype.bytes(self.shape.elements())
    }

    /// The same shape with another dtype.
    pub fn with_dtype(&self, dtype: DType) -> Type {
        Type { dtype, shape: self.shape.clone() }
    }

    /// The same dtype with another shape.
    pub fn with_shape(&self, shape: impl Into<Shape>) -> Type {
        Type { dtype: self.dtype, shape: shape.into() }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}
