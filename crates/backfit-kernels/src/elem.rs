//! Element types that kernels read and write.

/// How an element is stored. Arithmetic on f16 and bf16 is done in f32 and rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Elem {
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
    /// One byte, 0 or 1.
    Bool,
}

impl Elem {
    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            Elem::F64 | Elem::I64 | Elem::U64 => 8,
            Elem::F32 | Elem::I32 | Elem::U32 => 4,
            Elem::F16 | Elem::BF16 | Elem::I16 | Elem::U16 => 2,
            Elem::I8 | Elem::U8 | Elem::Bool => 1,
        }
    }

    /// How values of this type are held in registers and tile slots.
    pub const fn lane(self) -> Lane {
        match self {
            Elem::F64 => Lane::F64,
            Elem::F32 | Elem::F16 | Elem::BF16 => Lane::F32,
            Elem::I64 | Elem::U64 => Lane::I64,
            Elem::I32 | Elem::I16 | Elem::I8 | Elem::U32 | Elem::U16 | Elem::U8 | Elem::Bool => Lane::I32,
        }
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Elem::F64 | Elem::F32 | Elem::F16 | Elem::BF16)
    }

    /// Whether it is an integer type with a sign.
    pub const fn is_signed(self) -> bool {
        matches!(self, Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8)
    }

    /// Whether stored bits and lane bits are the same.
    pub const fn fills_lane(self) -> bool {
        self.size() == self.lane().size()
    }
}

/// What arithmetic is done in: the type of a tile slot.
///
/// f16 and bf16 are computed in f32 and rounded after each operation. i8 and i16 are sign-extended into i32;
/// u8, u16 and bool are zero-extended; u32 and u64 keep their bits. Masks are i32, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Lane {
    F32,
    F64,
    I32,
    I64,
}

impl Lane {
    /// Size of one value in bytes.
    pub const fn size(self) -> usize {
        match self {
            Lane::F32 | Lane::I32 => 4,
            Lane::F64 | Lane::I64 => 8,
        }
    }
}
