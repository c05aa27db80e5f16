//! Reading indices from memory.

use crate::elem::Elem;

/// Whether elements of this type can be indices.
pub(crate) fn check_index_elem(elem: Elem) -> Result<(), String> {
    if elem.is_float() || elem == Elem::Bool {
        return Err(format!("indices of type {elem:?}; they are integers"));
    }
    Ok(())
}

/// Whether elements of this many bytes can be copied.
pub(crate) fn check_elem_bytes(bytes: usize) -> Result<(), String> {
    match bytes {
        1 | 2 | 4 | 8 => Ok(()),
        _ => Err(format!("elements of {bytes} bytes; they have 1, 2, 4 or 8")),
    }
}

/// Index `i` of an array; those past `i64::MAX` become `i64::MAX`.
///
/// # Safety
/// `from` is valid for element `i` of this integer type.
pub(crate) unsafe fn read_index(elem: Elem, from: *const u8, i: usize) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        match elem {
            Elem::I64 => *from.cast::<i64>().add(i),
            Elem::I32 => i64::from(*from.cast::<i32>().add(i)),
            Elem::I16 => i64::from(*from.cast::<i16>().add(i)),
            Elem::I8 => i64::from(*from.cast::<i8>().add(i)),
            Elem::U64 => i64::try_from(*from.cast::<u64>().add(i)).unwrap_or(i64::MAX),
            Elem::U32 => i64::from(*from.cast::<u32>().add(i)),
            Elem::U16 => i64::from(*from.cast::<u16>().add(i)),
            Elem::U8 => i64::from(*from.add(i)),
            Elem::F64 | Elem::F32 | Elem::F16 | Elem::BF16 | Elem::Bool => unreachable!("refused by `check`"),
        }
    }
}
