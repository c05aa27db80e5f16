//! Concrete tensors on the host: constants, batches, parameters, results.

use crate::dtype::DType;
use crate::shape::{Shape, Type};
use half::{bf16, f16};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A dense row-major tensor in host memory, little-endian. Cloning shares the bytes.
///
/// ```
/// use backfit_ir::{DType, Literal};
/// let x = Literal::from_f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(x.ty().to_string(), "f32[2,2]");
/// assert_eq!(x.to_f64(), [1.0, 2.0, 3.0, 4.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    ty: Type,
    bytes: Arc<[u8]>,
}

impl Literal {
    /// A literal from its bytes; `None` where their number does not match the type.
    pub fn from_bytes(ty: Type, bytes: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        let expected = ty.shape.checked_elements().map(|n| ty.dtype.bytes(n))?;
        (bytes.len() == expected).then_some(Literal { ty, bytes })
    }

    /// An f32 tensor.
    ///
    /// # Panics
    /// Where `values` has not as many elements as the shape.
    pub fn from_f32(shape: impl Into<Shape>, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::from_bytes(Type::new(DType::F32, shape), bytes).expect("one value per element")
    }

    /// An i32 tensor.
    ///
    /// # Panics
    /// Where `values` has not as many elements as the shape.
    pub fn from_i32(shape: impl Into<Shape>, values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::from_bytes(Type::new(DType::I32, shape), bytes).expect("one value per element")
    }

    /// A tensor of any dtype from f64 values, rounded to nearest even for floats,
    /// truncated and saturated for integers, `≠ 0` for bool.
    ///
    /// # Panics
    /// Where `values` has not as many elements as the shape.
    pub fn from_f64(ty: Type, values: &[f64]) -> Self {
        let mut bytes = vec![0; ty.bytes()];
        let (least, greatest) = range(ty.dtype);
        for (i, v) in values.iter().map(|v| v.clamp(least, greatest)).enumerate() {
            write_element(ty.dtype, &mut bytes, i, v, v as i64, v as u64);
        }
        assert_eq!(values.len(), ty.shape.elements(), "one value per element");
        Literal { ty, bytes: bytes.into() }
    }

    /// A tensor of an integer or bool dtype from i64 values, wrapped; u64 takes the bit pattern.
    /// Float dtypes take the nearest value.
    ///
    /// # Panics
    /// Where `values` has not as many elements as the shape.
    pub fn from_i64(ty: Type, values: &[i64]) -> Self {
        let mut bytes = vec![0; ty.bytes()];
        for (i, &v) in values.iter().enumerate() {
            write_element(ty.dtype, &mut bytes, i, v as f64, v, v as u64);
        }
        assert_eq!(values.len(), ty.shape.elements(), "one value per element");
        Literal { ty, bytes: bytes.into() }
    }

    /// A scalar of any dtype.
    pub fn scalar(dtype: DType, value: f64) -> Self {
        Self::from_f64(Type::new(dtype, []), &[value])
    }

    /// All elements zero.
    pub fn zeros(ty: Type) -> Self {
        let bytes = vec![0; ty.bytes()];
        Literal { ty, bytes: bytes.into() }
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Every element as f64 (exact but for 64-bit integers beyond 2⁵³).
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.ty.shape.elements()).map(|i| self.float(i)).collect()
    }

    /// Every element as i64: u64 as its bit pattern, floats truncated and saturated.
    pub fn to_i64(&self) -> Vec<i64> {
        (0..self.ty.shape.elements()).map(|i| self.integer(i)).collect()
    }

    /// Every element as f32.
    pub fn to_f32(&self) -> Vec<f32> {
        self.to_f64().into_iter().map(|v| v as f32).collect()
    }

    /// The one value that every element has (compared by bits), if so.
    pub fn splat(&self) -> Option<f64> {
        let width = self.ty.dtype.bits() / 8;
        if width == 0 || self.bytes.is_empty() {
            return None;
        }
        let first = &self.bytes[..width];
        self.bytes.chunks(width).all(|c| c == first).then(|| self.float(0))
    }

    /// A hash of the bytes, stable within a run: the name of the blob in the text form.
    pub fn content_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        hasher.finish()
    }

    fn float(&self, i: usize) -> f64 {
        let b = &self.bytes;
        match self.ty.dtype {
            DType::F64 => f64::from_le_bytes(at(b, i)),
            DType::F32 => f64::from(f32::from_le_bytes(at(b, i))),
            DType::F16 => f16::from_le_bytes(at(b, i)).to_f64(),
            DType::BF16 => bf16::from_le_bytes(at(b, i)).to_f64(),
            DType::U64 => self.integer(i) as u64 as f64,
            _ => self.integer(i) as f64,
        }
    }

    fn integer(&self, i: usize) -> i64 {
        let b = &self.bytes;
        match self.ty.dtype {
            DType::I64 | DType::U64 => i64::from_le_bytes(at(b, i)),
            DType::I32 => i64::from(i32::from_le_bytes(at(b, i))),
            DType::I16 => i64::from(i16::from_le_bytes(at(b, i))),
            DType::I8 => i64::from(b[i] as i8),
            DType::U32 => i64::from(u32::from_le_bytes(at(b, i))),
            DType::U16 => i64::from(u16::from_le_bytes(at(b, i))),
            DType::U8 | DType::Bool => i64::from(b[i]),
            DType::U4 => i64::from(b[i / 2] >> (i % 2 * 4) & 15),
            DType::I4 => i64::from(((b[i / 2] >> (i % 2 * 4)) << 4) as i8 >> 4),
            DType::U1 => i64::from(b[i / 8] >> (i % 8) & 1),
            _ => self.float(i) as i64,
        }
    }
}

fn at<const N: usize>(bytes: &[u8], i: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[i * N..(i + 1) * N]);
    out
}

/// The least and the greatest number of an integer dtype. Of 64 bits f64 does not hold them, and casts saturate.
fn range(dtype: DType) -> (f64, f64) {
    let power = |bits: usize| 2f64.powi(bits as i32);
    match dtype {
        DType::I32 | DType::I16 | DType::I8 | DType::I4 => (-power(dtype.bits() - 1), power(dtype.bits() - 1) - 1.0),
        DType::U32 | DType::U16 | DType::U8 | DType::U4 | DType::U1 => (0.0, power(dtype.bits()) - 1.0),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

fn write_element(dtype: DType, bytes: &mut [u8], i: usize, f: f64, s: i64, u: u64) {
    let width = dtype.bits() / 8;
    let mut put = |value: &[u8]| bytes[i * width..(i + 1) * width].copy_from_slice(value);
    match dtype {
        DType::F64 => put(&f.to_le_bytes()),
        DType::F32 => put(&(f as f32).to_le_bytes()),
        DType::F16 => put(&f16::from_f64(f).to_le_bytes()),
        DType::BF16 => put(&bf16::from_f64(f).to_le_bytes()),
        DType::I64 => put(&s.to_le_bytes()),
        DType::I32 => put(&(s as i32).to_le_bytes()),
        DType::I16 => put(&(s as i16).to_le_bytes()),
        DType::I8 => put(&(s as i8).to_le_bytes()),
        DType::U64 => put(&u.to_le_bytes()),
        DType::U32 => put(&(u as u32).to_le_bytes()),
        DType::U16 => put(&(u as u16).to_le_bytes()),
        DType::U8 => put(&[u as u8]),
        DType::Bool => put(&[u8::from(f != 0.0)]),
        DType::I4 | DType::U4 => bytes[i / 2] |= ((s & 15) as u8) << (i % 2 * 4),
        DType::U1 => bytes[i / 8] |= ((s & 1) as u8) << (i % 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_range_of_an_integer_become_its_least_or_greatest() {
        let found = |dtype| Literal::from_f64(Type::new(dtype, [3]), &[-1e30, 1e30, f64::NAN]).to_i64();
        assert_eq!(found(DType::I64), [i64::MIN, i64::MAX, 0]);
        assert_eq!(found(DType::I32), [i64::from(i32::MIN), i64::from(i32::MAX), 0]);
        assert_eq!(found(DType::I16), [-32768, 32767, 0]);
        assert_eq!(found(DType::I8), [-128, 127, 0]);
        assert_eq!(found(DType::U64), [0, -1, 0]);
        assert_eq!(found(DType::U32), [0, 4294967295, 0]);
        assert_eq!(found(DType::U16), [0, 65535, 0]);
        assert_eq!(found(DType::U8), [0, 255, 0]);
    }
}
