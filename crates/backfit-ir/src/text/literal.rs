//! How constants are written.

use super::words;
use crate::literal::Literal;
use crate::shape::Type;
use std::sync::Arc;

/// Constants of more elements than this are written as blobs, unless all elements are the same.
const INLINE: usize = 64;

/// The elements by their bits: those of packed dtypes too.
fn elements(literal: &Literal, count: usize) -> Vec<u64> {
    let dtype = literal.ty().dtype;
    if dtype.is_packed() {
        let mask = (1 << dtype.bits()) - 1;
        return literal.to_i64().into_iter().take(count).map(|v| v as u64 & mask).collect();
    }
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &b| bits << 8 | u64::from(b));
    literal.bytes().chunks(dtype.bits() / 8).take(count).map(word).collect()
}

/// A literal from the bits of its elements, one per element.
fn from_elements(ty: Type, elements: &[u64]) -> Option<Literal> {
    if ty.dtype.is_packed() {
        let values: Vec<i64> = elements.iter().map(|&v| v as i64).collect();
        return (ty.shape.elements() == values.len()).then(|| Literal::from_i64(ty, &values));
    }
    let width = ty.dtype.bits() / 8;
    let bytes: Vec<u8> = elements.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect();
    Literal::from_bytes(ty, bytes)
}

/// The literal in words; `None` where it has to be a blob.
pub(super) fn words(literal: &Literal) -> Option<String> {
    let ty = literal.ty();
    let count = ty.shape.elements();
    let width = ty.dtype.bits() / 8;
    let word = |&bits: &u64| words::element(ty.dtype, bits);
    if ty.shape.rank() == 0 {
        let first = elements(literal, 1);
        return (from_elements(ty.clone(), &first).as_ref() == Some(literal)).then(|| word(first.first()?))?;
    }
    if count > 1 && width > 0 && literal.bytes().chunks(width).all(|c| *c == literal.bytes()[..width]) {
        return Some(format!("splat({})", word(elements(literal, 1).first()?)?));
    }
    if count > INLINE {
        return None;
    }
    let all = elements(literal, count);
    // Bits between the elements of packed dtypes are kept by a blob only.
    if from_elements(ty.clone(), &all).as_ref() != Some(literal) {
        return None;
    }
    let words: Option<Vec<String>> = all.iter().map(word).collect();
    Some(format!("[{}]", words?.join(", ")))
}

/// A constant as it was read, before its type is known.
pub(super) enum Written {
    /// One word, for a scalar.
    Scalar(String),
    /// A word per element.
    List(Vec<String>),
    /// One word for all elements.
    Splat(String),
    /// The bytes, and the name of the blob.
    Blob(Option<Arc<[u8]>>, u64),
}

impl Written {
    /// The literal of a type. A splat takes its bytes from `budget`.
    pub(super) fn literal(self, ty: &Type, budget: &mut usize) -> Result<Literal, String> {
        let bits = |word: &String| words::bits(ty.dtype, word);
        let elements = match self {
            Written::Blob(None, name) => return Err(format!("the text has no bytes for blob {name:#x}")),
            Written::Blob(Some(bytes), name) => {
                let size = bytes.len();
                let flaw = || format!("blob {name:#x} has {size} bytes, which is not the size of {ty}");
                return Literal::from_bytes(ty.clone(), bytes).ok_or_else(flaw);
            }
            Written::Scalar(word) if ty.shape.rank() == 0 => vec![bits(&word)?],
            Written::Scalar(_) => return Err(format!("a constant of type {ty} is written [a, b, …] or splat(a)")),
            Written::List(words) => words.iter().map(bits).collect::<Result<_, _>>()?,
            Written::Splat(word) => return splat(ty, bits(&word)?, budget),
        };
        let count = elements.len();
        from_elements(ty.clone(), &elements).ok_or_else(|| format!("{count} elements were given for {ty}"))
    }
}

fn splat(ty: &Type, bits: u64, budget: &mut usize) -> Result<Literal, String> {
    let count = ty.shape.checked_elements().unwrap_or(usize::MAX);
    let size = count.saturating_mul(ty.dtype.bits().div_ceil(8));
    *budget = budget.checked_sub(size).ok_or_else(|| format!("the constants are too large: {size} bytes for {ty}"))?;
    from_elements(ty.clone(), &vec![bits; count]).ok_or_else(|| format!("there is no {ty}"))
}
