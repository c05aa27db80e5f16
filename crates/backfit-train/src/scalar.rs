//! Scalars in and out of bytes, without allocation.

use backfit_ir::DType;
use half::{bf16, f16};

/// The number that the little-endian bytes of one element hold; NaN where they are too few or packed.
pub(crate) fn read(dtype: DType, bytes: &[u8]) -> f64 {
    fn of<const N: usize>(bytes: &[u8], make: impl Fn([u8; N]) -> f64) -> f64 {
        bytes.first_chunk().map_or(f64::NAN, |b| make(*b))
    }
    match dtype {
        DType::F64 => of(bytes, f64::from_le_bytes),
        DType::F32 => of(bytes, |b| f32::from_le_bytes(b).into()),
        DType::F16 => of(bytes, |b| f16::from_le_bytes(b).into()),
        DType::BF16 => of(bytes, |b| bf16::from_le_bytes(b).into()),
        DType::I64 => of(bytes, |b| i64::from_le_bytes(b) as f64),
        DType::I32 => of(bytes, |b| i32::from_le_bytes(b).into()),
        DType::I16 => of(bytes, |b| i16::from_le_bytes(b).into()),
        DType::I8 => of(bytes, |b| i8::from_le_bytes(b).into()),
        DType::U64 => of(bytes, |b| u64::from_le_bytes(b) as f64),
        DType::U32 => of(bytes, |b| u32::from_le_bytes(b).into()),
        DType::U16 => of(bytes, |b| u16::from_le_bytes(b).into()),
        DType::U8 | DType::Bool => of(bytes, |b: [u8; 1]| b[0].into()),
        DType::I4 | DType::U4 | DType::U1 => f64::NAN,
    }
}

/// Writes a number as one element, rounded or saturated as its dtype has it; packed dtypes are left alone.
pub(crate) fn write(dtype: DType, bytes: &mut [u8], value: f64) {
    let mut put = |element: &[u8]| bytes.iter_mut().zip(element).for_each(|(out, b)| *out = *b);
    match dtype {
        DType::F64 => put(&value.to_le_bytes()),
        DType::F32 => put(&(value as f32).to_le_bytes()),
        DType::F16 => put(&f16::from_f64(value).to_le_bytes()),
        DType::BF16 => put(&bf16::from_f64(value).to_le_bytes()),
        DType::I64 => put(&(value as i64).to_le_bytes()),
        DType::I32 => put(&(value as i32).to_le_bytes()),
        DType::I16 => put(&(value as i16).to_le_bytes()),
        DType::I8 => put(&(value as i8).to_le_bytes()),
        DType::U64 => put(&(value as u64).to_le_bytes()),
        DType::U32 => put(&(value as u32).to_le_bytes()),
        DType::U16 => put(&(value as u16).to_le_bytes()),
        DType::U8 => put(&[value as u8]),
        DType::Bool => put(&[u8::from(value != 0.0)]),
        DType::I4 | DType::U4 | DType::U1 => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::Literal;

    #[test]
    fn every_dtype_agrees_with_literals() {
        for dtype in DType::COMPUTED {
            for value in [0.0, 1.0, 3.0, 0.3, -2.0] {
                let literal = Literal::scalar(dtype, value);
                assert_eq!(read(dtype, literal.bytes()), literal.to_f64()[0], "{dtype}");
                let mut bytes = vec![0; dtype.bytes(1)];
                write(dtype, &mut bytes, value);
                assert_eq!(bytes, literal.bytes(), "{dtype} {value}");
            }
        }
        assert!(read(DType::F32, &[0]).is_nan());
    }
}
