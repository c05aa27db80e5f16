//! How names, texts and numbers are written.

use crate::attributes::{Attr, AttrResult, Attributes};
use crate::dtype::{Class, DType};
use crate::graph::{FuncId, Role};
use crate::ops::scan::Scan;
use half::{bf16, f16};
use std::borrow::Cow;
use std::fmt::Write;

/// The word that begins a parameter of each role.
pub(super) const ROLES: [(Role, &str); 5] = [
    (Role::Input, "input"),
    (Role::Weight { trainable: true }, "weight"),
    (Role::Weight { trainable: false }, "frozen"),
    (Role::State, "state"),
    (Role::Hyper, "hyper"),
];

/// The attributes of a scan, but for its body.
pub(super) fn scan_attributes(scan: &Scan) -> Attributes {
    Attributes::new()
        .with("carries", scan.carries)
        .with("constants", scan.constants)
        .with("trip_count", scan.trip_count)
        .with("reverse", scan.reverse)
}

/// A scan from its attributes and body.
pub(super) fn scan(attributes: &Attributes, body: FuncId) -> AttrResult<Scan> {
    Ok(Scan {
        body,
        carries: attributes.size("carries")?,
        constants: attributes.size("constants")?,
        trip_count: attributes.size("trip_count")?,
        reverse: attributes.bool("reverse")?,
    })
}

/// Whether a character may stand in a word, after its first.
pub(super) fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Whether a character may begin a word.
pub(super) fn begins_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// A name: bare where it is a word, in quotes otherwise.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let word = name.starts_with(begins_word) && name.chars().all(in_word);
    if word { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Attributes as `{axis=-1, epsilon=1e-5}`.
pub(super) fn attributes(attributes: &Attributes) -> String {
    let words: Vec<String> = attributes.iter().map(|(key, attr)| format!("{}={}", name(key), value(attr))).collect();
    format!("{{{}}}", words.join(", "))
}

fn value(attr: &Attr) -> String {
    match attr {
        Attr::Float(v) => float(*v),
        Attr::Str(v) => quoted(v),
        Attr::Int(_) | Attr::Bool(_) | Attr::Ints(_) | Attr::DType(_) => attr.to_string(),
    }
}

/// An f64, exactly.
pub(super) fn float(v: f64) -> String {
    if v.is_nan() { format!("{:#x}", v.to_bits()) } else { format!("{v:?}") }
}

/// An element of a tensor by its bits, exactly; `None` for a bool that is neither 0 nor 1.
pub(super) fn element(dtype: DType, bits: u64) -> Option<String> {
    let half = match dtype {
        DType::F64 => return Some(float(f64::from_bits(bits))),
        DType::F32 => f32::from_bits(bits as u32),
        DType::F16 => f16::from_bits(bits as u16).to_f32(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f32(),
        DType::Bool => return (bits <= 1).then(|| (bits == 1).to_string()),
        _ if dtype.class() == Class::Signed => return Some(sign_extended(dtype, bits).to_string()),
        _ => return Some(bits.to_string()),
    };
    Some(if half.is_nan() { format!("{bits:#x}") } else { format!("{half:?}") })
}

fn sign_extended(dtype: DType, bits: u64) -> i64 {
    let unused = 64 - dtype.bits() as u32;
    (bits << unused) as i64 >> unused
}

/// The bits of an element, from its word.
pub(super) fn bits(dtype: DType, word: &str) -> Result<u64, String> {
    let flaw = || format!("'{word}' is no {dtype}");
    let fits = |bits: u64, finite: bool| if finite || word.ends_with("inf") { Ok(bits) } else { Err(flaw()) };
    if let Some(hex) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| flaw())?;
        let unused = 64 - dtype.bits() as u32;
        return if dtype.is_float() && bits << unused >> unused == bits { Ok(bits) } else { Err(flaw()) };
    }
    match dtype {
        DType::F64 => word.parse().map_err(|_| flaw()).and_then(|v: f64| fits(v.to_bits(), v.is_finite())),
        DType::F32 => word.parse().map_err(|_| flaw()).and_then(|v: f32| fits(v.to_bits().into(), v.is_finite())),
        DType::F16 | DType::BF16 => {
            let v: f64 = word.parse().map_err(|_| flaw())?;
            let (half, brain) = (f16::from_f64(v), bf16::from_f64(v));
            let f16 = dtype == DType::F16;
            let (bits, finite) =
                if f16 { (half.to_bits(), half.is_finite()) } else { (brain.to_bits(), brain.is_finite()) };
            fits(bits.into(), finite)
        }
        DType::Bool => word.parse().map(|v: bool| v.into()).map_err(|_| flaw()),
        _ => integer(dtype, word).ok_or_else(flaw),
    }
}

fn integer(dtype: DType, word: &str) -> Option<u64> {
    let v: i128 = word.parse().ok()?;
    let size = 1i128 << dtype.bits();
    let range = if dtype.class() == Class::Signed { -size / 2..size / 2 } else { 0..size };
    range.contains(&v).then_some((v & (size - 1)) as u64)
}
