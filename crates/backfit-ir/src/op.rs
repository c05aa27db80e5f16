//! The closed set of primitive operators. Every target matches it exhaustively.

use crate::dtype::DType;
use crate::graph::FuncId;
use crate::literal::Literal;
use crate::ops::convolution::Convolution;
use crate::ops::dot_general::DotGeneral;
use crate::ops::reduce_window::Window;
use crate::ops::scan::Scan;
use crate::shape::{Shape, Type};

/// Elementwise operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is documented in its own file under `ops`
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sqrt,
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
    IsFinite,
    Not,
}

/// Elementwise operators of two operands of equal type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is documented in its own file under `ops`
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
    ShiftRight,
}

/// The relation that `compare` tests.
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

/// The monoid of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Monoid {
    Sum,
    Product,
    Max,
    Min,
    And,
    Or,
}

/// Which extreme `arg_reduce` and `select_and_scatter` look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum Extreme {
    Max,
    Min,
}

/// How `scatter` combines an update with the old element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation
pub enum ScatterMode {
    Set,
    Add,
}

/// How exactly a contraction is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Products and sums in the accumulator's dtype.
    #[default]
    Full,
    /// Operands rounded to bf16, sums in the accumulator's dtype.
    Bf16,
    /// Three bf16 products for nearly f32 accuracy.
    Bf16x3,
}

/// A primitive operator with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A tensor baked into the program. No operands.
    Constant(Literal),
    /// Counts 0, 1, 2 … along an axis. No operands.
    Iota {
        /// Type of the result.
        ty: Type,
        /// The axis along which it counts.
        axis: usize,
    },
    /// Elementwise, one operand.
    Unary(Unary),
    /// Elementwise, two operands of equal type.
    Binary(Binary),
    /// Elementwise comparison; the result is bool.
    Compare(Comparison),
    /// `select(condition, on_true, on_false)`, elementwise; the condition is bool of the same shape.
    Select,
    /// `clamp(low, x, high)`, elementwise over equal types.
    Clamp,
    /// Conversion to another dtype.
    Cast(DType),
    /// Reinterpretation of the bits as a dtype of the same width.
    Bitcast(DType),
    /// Rounds floats to a format with fewer bits, keeping the dtype.
    ReducePrecision {
        /// Exponent bits kept.
        exponent: u32,
        /// Mantissa bits kept.
        mantissa: u32,
    },
    /// Reduction over axes, which vanish from the shape.
    Reduce {
        /// What is accumulated.
        monoid: Monoid,
        /// Distinct axes in increasing order.
        axes: Vec<usize>,
        /// Dtype of the accumulator.
        accumulator: DType,
    },
    /// Index of the first extreme along an axis, which vanishes. The result is i32.
    ArgReduce {
        /// Which extreme.
        extreme: Extreme,
        /// The axis.
        axis: usize,
    },
    /// Running reduction along an axis.
    Cumulative {
        /// What is accumulated.
        monoid: Monoid,
        /// The axis.
        axis: usize,
        /// From the end to the start.
        reverse: bool,
        /// Leaves the element itself out.
        exclusive: bool,
    },
    /// The same elements in another shape.
    Reshape(Shape),
    /// Permutes axes: result axis i is operand axis `permutation[i]`.
    Transpose(Vec<usize>),
    /// Repeats along new or unit axes: operand axis i becomes result axis `axes[i]`.
    Broadcast {
        /// Shape of the result.
        shape: Shape,
        /// Where each operand axis goes, strictly increasing.
        axes: Vec<usize>,
    },
    /// Every `stride`-th element of `start..limit` along each axis.
    Slice {
        /// First index per axis.
        starts: Vec<usize>,
        /// End (exclusive) per axis.
        limits: Vec<usize>,
        /// Step per axis, ≥ 1.
        strides: Vec<usize>,
    },
    /// `pad(x, value)`: adds `value` (a scalar) around and between elements; negative edges cut.
    Pad {
        /// Before the first element, per axis.
        low: Vec<i64>,
        /// After the last element, per axis.
        high: Vec<i64>,
        /// Between elements, per axis.
        interior: Vec<usize>,
    },
    /// Joins operands along an axis.
    Concatenate {
        /// The axis.
        axis: usize,
    },
    /// Reverses axes.
    Reverse(Vec<usize>),
    /// `dynamic_slice(x, start…)`: a window of fixed sizes at scalar start indices, clamped to stay inside.
    DynamicSlice {
        /// Extents of the window.
        sizes: Vec<usize>,
    },
    /// `dynamic_update_slice(x, update, start…)`: x with a window replaced, start indices clamped.
    DynamicUpdateSlice,
    /// `gather(x, indices)`: takes slices along an axis; indices are clamped to the axis.
    Gather {
        /// The axis, which is replaced by the axes of `indices`.
        axis: usize,
    },
    /// `scatter(x, indices, updates)`: the reverse of `gather`; indices outside the axis are dropped.
    Scatter {
        /// How updates combine.
        mode: ScatterMode,
        /// The axis.
        axis: usize,
    },
    /// `sort(keys, payload…)`: stable, along an axis; payloads are permuted with the keys; NaN last.
    Sort {
        /// The axis.
        axis: usize,
        /// Largest first.
        descending: bool,
    },
    /// Generalised matrix product.
    DotGeneral(DotGeneral),
    /// Generalised convolution.
    Convolution(Convolution),
    /// Reduction over sliding windows.
    ReduceWindow {
        /// What is accumulated.
        monoid: Monoid,
        /// The windows.
        window: Window,
    },
    /// `select_and_scatter(x, source)`: adds each source element at the first extreme of its window.
    SelectAndScatter {
        /// Which extreme.
        extreme: Extreme,
        /// The windows.
        window: Window,
    },
    /// `rng_bits(key)`: uniform u32 bits of a counter-based generator; the key is `u32[4]`.
    RngBits(Shape),
    /// Calls a function of the module.
    Call(FuncId),
    /// A loop with a static trip count.
    Scan(Scan),
    /// The identity on all operands; no pass moves computation across it or merges through it.
    Barrier,
}

impl Op {
    /// The operator's name in the registry and the text form.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Constant(_) => "constant",
            Op::Iota { .. } => "iota",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(_) => "compare",
            Op::Select => "select",
            Op::Clamp => "clamp",
            Op::Cast(_) => "cast",
            Op::Bitcast(_) => "bitcast",
            Op::ReducePrecision { .. } => "reduce_precision",
            Op::Reduce { .. } => "reduce",
            Op::ArgReduce { .. } => "arg_reduce",
            Op::Cumulative { .. } => "cumulative",
            Op::Reshape(_) => "reshape",
            Op::Transpose(_) => "transpose",
            Op::Broadcast { .. } => "broadcast",
            Op::Slice { .. } => "slice",
            Op::Pad { .. } => "pad",
            Op::Concatenate { .. } => "concatenate",
            Op::Reverse(_) => "reverse",
            Op::DynamicSlice { .. } => "dynamic_slice",
            Op::DynamicUpdateSlice => "dynamic_update_slice",
            Op::Gather { .. } => "gather",
            Op::Scatter { .. } => "scatter",
            Op::Sort { .. } => "sort",
            Op::DotGeneral(_) => "dot_general",
            Op::Convolution(_) => "convolution",
            Op::ReduceWindow { .. } => "reduce_window",
            Op::SelectAndScatter { .. } => "select_and_scatter",
            Op::RngBits(_) => "rng_bits",
            Op::Call(_) => "call",
            Op::Scan(_) => "scan",
            Op::Barrier => "barrier",
        }
    }
}

impl Unary {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Unary::Neg => "neg",
            Unary::Abs => "abs",
            Unary::Sign => "sign",
            Unary::Exp => "exp",
            Unary::Expm1 => "expm1",
            Unary::Log => "log",
            Unary::Log1p => "log1p",
            Unary::Sqrt => "sqrt",
            Unary::Rsqrt => "rsqrt",
            Unary::Reciprocal => "reciprocal",
            Unary::Sin => "sin",
            Unary::Cos => "cos",
            Unary::Tan => "tan",
            Unary::Tanh => "tanh",
            Unary::Erf => "erf",
            Unary::Floor => "floor",
            Unary::Ceil => "ceil",
            Unary::RoundEven => "round_even",
            Unary::IsFinite => "is_finite",
            Unary::Not => "not",
        }
    }
}

impl Binary {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Rem => "rem",
            Binary::Pow => "pow",
            Binary::Atan2 => "atan2",
            Binary::Maximum => "maximum",
            Binary::Minimum => "minimum",
            Binary::And => "and",
            Binary::Or => "or",
            Binary::Xor => "xor",
            Binary::ShiftLeft => "shift_left",
            Binary::ShiftRight => "shift_right",
        }
    }
}

/// Enumerations that are written as a word in the text form.
pub trait Keyword: Copy + PartialEq + 'static {
    /// Every variant with its word.
    const WORDS: &'static [(Self, &'static str)];

    /// The word.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(v, _)| *v == self).map_or("?", |(_, w)| w)
    }

    /// The variant behind a word.
    fn from_word(word: &str) -> Result<Self, String> {
        let found = Self::WORDS.iter().find(|(_, w)| *w == word);
        found.map(|(v, _)| *v).ok_or_else(|| {
            let known: Vec<_> = Self::WORDS.iter().map(|(_, w)| *w).collect();
            format!("'{word}' is none of {}", known.join(", "))
        })
    }
}

impl Keyword for Comparison {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Comparison::Eq, "eq"),
        (Comparison::Ne, "ne"),
        (Comparison::Lt, "lt"),
        (Comparison::Le, "le"),
        (Comparison::Gt, "gt"),
        (Comparison::Ge, "ge"),
    ];
}

impl Keyword for Monoid {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Monoid::Sum, "sum"),
        (Monoid::Product, "product"),
        (Monoid::Max, "max"),
        (Monoid::Min, "min"),
        (Monoid::And, "and"),
        (Monoid::Or, "or"),
    ];
}

impl Keyword for Extreme {
    const WORDS: &'static [(Self, &'static str)] = &[(Extreme::Max, "max"), (Extreme::Min, "min")];
}

impl Keyword for ScatterMode {
    const WORDS: &'static [(Self, &'static str)] = &[(ScatterMode::Set, "set"), (ScatterMode::Add, "add")];
}

impl Keyword for Precision {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Precision::Full, "full"), (Precision::Bf16, "bf16"), (Precision::Bf16x3, "bf16x3")];
}
