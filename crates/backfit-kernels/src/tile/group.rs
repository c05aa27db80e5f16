//! The plain data of a fused group: what the compiler writes.

use crate::context::Addr;
use crate::elem::{Elem, Lane};

/// The greatest number of columns of a group that reduces rows or reads whole rows at once.
pub const MAX_REDUCED_COLS: usize = 8192;

/// Elements of one tile, where rows need not be whole.
pub const TILE: usize = 512;

/// The greatest number of outer axes.
pub const MAX_OUTER: usize = 12;

/// Number of a slot.
pub type SlotId = u16;

/// A loop over the domain `outer × cols`: each tile of it is loaded, computed and stored.
///
/// A store may write the same addresses as a load (a tile's loads come before its stores), element for element.
/// Every operation must write a slot other than those it reads; a slot may be written any number of times.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Group {
    /// Sizes of the outer axes. The number of rows is their product.
    pub outer: Vec<usize>,
    /// Size of the innermost axis.
    pub cols: usize,
    /// The slots, by number.
    pub slots: Vec<Slot>,
    /// Values read from memory before the operations.
    pub loads: Vec<Load>,
    /// Operations, in order.
    pub ops: Vec<Op>,
    /// Values written to memory after the operations.
    pub stores: Vec<Store>,
}

/// One register of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Type of its values.
    pub lane: Lane,
    /// Whether it has one value per row, instead of one per element.
    pub row: bool,
}

/// Reads a slot from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Address of the element at index 0 of every axis.
    pub addr: Addr,
    /// How the elements are stored.
    pub elem: Elem,
    /// Elements between neighbours along each outer axis (0: the same).
    pub outer_strides: Vec<isize>,
    /// Elements between neighbouring columns: 1, 0 (one value per row), or any. 0 where the slot is a row slot.
    pub col_stride: isize,
    /// The slot to fill.
    pub slot: SlotId,
}

/// Writes a slot to memory. No two elements of the domain may have the same address.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// Address of the element at index 0 of every axis.
    pub addr: Addr,
    /// How the elements are stored. The slot's values are narrowed to it if need be.
    pub elem: Elem,
    /// Elements between neighbours along each outer axis.
    pub outer_strides: Vec<isize>,
    /// Elements between neighbouring columns. 0 where the slot is a row slot.
    pub col_stride: isize,
    /// The slot to write.
    pub slot: SlotId,
}

/// An operation on slots, all of one shape (full or row) unless said otherwise.
///
/// `elem` is the type that the operation works in: it tells the lane, the sign of integers, and that the
/// result is rounded (f16, bf16) or wrapped (narrow integers) to that type afterwards.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields: `a`, `b`, `from` are read, `to` is written
pub enum Op {
    /// One value. `bits` are those of the lane type, in the low bytes (a bf16 constant is given as f32 bits).
    Constant {
        bits: u64,
        to: SlotId,
    },
    /// The index along an axis of the domain: `0..outer.len()` are outer axes, `outer.len()` is the columns.
    Iota {
        axis: usize,
        elem: Elem,
        to: SlotId,
    },
    Unary {
        op: Unary,
        elem: Elem,
        from: SlotId,
        to: SlotId,
    },
    Binary {
        op: Binary,
        elem: Elem,
        a: SlotId,
        b: SlotId,
        to: SlotId,
    },
    /// To a mask: i32, 0 or 1. Comparisons with NaN are false, but for `Ne`.
    Compare {
        op: Comparison,
        elem: Elem,
        a: SlotId,
        b: SlotId,
        to: SlotId,
    },
    /// `mask ? on_true : on_false`. The mask is an i32 slot; any value but 0 is true.
    Select {
        mask: SlotId,
        on_true: SlotId,
        on_false: SlotId,
        to: SlotId,
    },
    /// `minimum(maximum(value, low), high)`
    Clamp {
        elem: Elem,
        low: SlotId,
        value: SlotId,
        high: SlotId,
        to: SlotId,
    },
    /// Between any two types: float to integer truncates and saturates, NaN gives 0; integer to integer wraps;
    /// anything to bool is `!= 0`.
    Cast {
        source: Elem,
        target: Elem,
        from: SlotId,
        to: SlotId,
    },
    /// Rounds to `exponent` and `mantissa` bits, ties to even (f32, f16, bf16 or f64 lanes).
    ReducePrecision {
        exponent: u32,
        mantissa: u32,
        elem: Elem,
        from: SlotId,
        to: SlotId,
    },
    /// The same bits as another type of the same size.
    Bitcast {
        source: Elem,
        target: Elem,
        from: SlotId,
        to: SlotId,
    },
    /// From a row slot to a full slot.
    Expand {
        from: SlotId,
        to: SlotId,
    },
    /// Over the columns: from a full slot to a row slot.
    RowReduce {
        op: Reduction,
        elem: Elem,
        from: SlotId,
        to: SlotId,
    },
}

/// Functions of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Exp,
    /// `exp(x) - 1`
    Expm1,
    Log,
    /// `log(1 + x)`
    Log1p,
    Sqrt,
    /// `1 / sqrt(x)`
    Rsqrt,
    Reciprocal,
    Sin,
    Cos,
    Tan,
    Tanh,
    Erf,
    Floor,
    Ceil,
    RoundEven,
    /// Bitwise for integers; 0 ↔ 1 for bool.
    Not,
    /// To a mask (i32).
    IsFinite,
}

/// Functions of two values.
///
/// Maximum and minimum propagate NaN, and order -0 before +0. Integer division truncates; `x / 0` has all bits set, `x rem 0` is x,
/// and the lowest value divided by -1 is itself. Shifts by the width of the type or more (or by a negative amount) give 0,
/// or the sign in an arithmetic right shift of a signed type. Integer powers wrap; a negative exponent gives the truncated quotient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    Atan2,
    Maximum,
    Minimum,
    And,
    Or,
    Xor,
    ShiftLeft,
    /// Arithmetic for signed types, logical for unsigned.
    ShiftRight,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// What a reduction combines elements with. For bool, `Sum` and `Max` are or, `Product` and `Min` are and.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Reduction {
    Sum,
    Product,
    /// NaN if there is one; the lowest value of the type (-∞) for nothing.
    Max,
    /// NaN if there is one; the highest value of the type (+∞) for nothing.
    Min,
    /// Integers and bool, bitwise.
    And,
    /// Integers and bool, bitwise.
    Or,
}
