//! Element types.

use std::fmt;
use std::str::FromStr;

/// The type of one element of a tensor.
///
/// The packed types `I4`, `U4` and `U1` may only be the type of a constant and the operand of a `cast`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the documentation
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
    I4,
    U4,
    U1,
}

/// What arithmetic a [`DType`] obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// IEEE 754 binary floating point (bf16 is binary32 cut to 16 bits).
    Float,
    /// Two's complement; overflow wraps.
    Signed,
    /// Modulo 2ⁿ.
    Unsigned,
    /// `false` or `true`; stored as one byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every dtype a computed value may have: all but the packed ones.
    pub const COMPUTED: [DType; 13] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    const NAMES: [(DType, &'static str); 16] = [
        (DType::F64, "f64"),
        (DType::F32, "f32"),
        (DType::F16, "f16"),
        (DType::BF16, "bf16"),
        (DType::I64, "i64"),
        (DType::I32, "i32"),
        (DType::I16, "i16"),
        (DType::I8, "i8"),
        (DType::U64, "u64"),
        (DType::U32, "u32"),
        (DType::U16, "u16"),
        (DType::U8, "u8"),
        (DType::Bool, "bool"),
        (DType::I4, "i4"),
        (DType::U4, "u4"),
        (DType::U1, "u1"),
    ];

    /// Bits of one element in storage (`Bool` takes a byte).
    pub const fn bits(self) -> usize {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 64,
            DType::F32 | DType::I32 | DType::U32 => 32,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 16,
            DType::I8 | DType::U8 | DType::Bool => 8,
            DType::I4 | DType::U4 => 4,
            DType::U1 => 1,
        }
    }

    /// Bytes of `elements` elements, packed types densely with the first element in the low bits.
    pub const fn bytes(self, elements: usize) -> usize {
        (elements * self.bits()).div_ceil(8)
    }

    /// The arithmetic this type obeys.
    pub const fn class(self) -> Class {
        match self {
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => Class::Float,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::I4 => Class::Signed,
            DType::U64 | DType::U32 | DType::U16 | DType::U8 | DType::U4 | DType::U1 => Class::Unsigned,
            DType::Bool => Class::Bool,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// Whether this is a signed or unsigned integer type.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// Whether elements share bytes (`I4`, `U4`, `U1`).
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// The type in which sums of this type are accumulated unless an operator says otherwise:
    /// f32 for half precision, itself for everything else.
    pub const fn accumulator(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The lowercase name, as in `f32`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(d, _)| *d == self).map_or("?", |(_, n)| n)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, n)| *n == s);
        found.map(|(d, _)| *d).ok_or_else(|| format!("'{s}' is not a dtype"))
    }
}
