//! What an operator's file says about it.

use crate::attributes::{AttrResult, Attributes};
use crate::builder::{Graph, Tensor};
use crate::dtype::DType;
use crate::interp::Array;
use crate::literal::Literal;
use crate::op::Op;
use crate::shape::Type;

/// The definition of an operator. Users make their own and call it with [`Graph::composite`].
pub struct OpDef {
    /// The name in the text form: snake case, the field's usual word.
    pub name: &'static str,
    /// The formula in one line.
    pub formula: &'static str,
    /// Primitive or composite.
    pub kind: Kind,
    /// How gradients pass through it.
    pub derivative: Derivative,
    /// How near a target has to come to the reference.
    pub tolerance: Tolerance,
    /// Names of the ONNX operators that mean exactly this, if any.
    pub onnx: &'static [&'static str],
    /// Cases that exercise it: ordinary, edge shapes, dangerous values.
    pub samples: fn() -> Vec<Sample>,
}

/// What makes up an operator.
pub enum Kind {
    /// One of the closed set that every target knows.
    Primitive(Primitive),
    /// A function of primitives and other composites.
    Composite(Composite),
}

/// The rules of a primitive.
pub struct Primitive {
    /// Its attributes, for the text form.
    pub attributes: fn(&Op) -> Attributes,
    /// The operator from its attributes.
    pub parse: fn(&Attributes) -> AttrResult<Op>,
    /// Result types from operand types, or what is wrong with them.
    pub infer: fn(&Op, &[Type]) -> Result<Vec<Type>, String>,
    /// Reference evaluation. Float arithmetic is done in f64; the interpreter rounds the results.
    pub eval: fn(&Op, &[&Array], &[Type]) -> Vec<Array>,
    /// Arithmetic operations, from operand and result types.
    pub flops: fn(&Op, &[Type], &[Type]) -> u64,
}

/// The rules of a composite.
pub struct Composite {
    /// How many results it has, with all that are optional; where a call fails, poison stands for as many.
    pub results: usize,
    /// What is wrong with these operands and attributes, in the user's words. The body is built only where this passes.
    pub check: fn(&[Type], &Attributes) -> Result<(), String>,
    /// The body.
    pub body: fn(&Body) -> Vec<Tensor>,
    /// The body outside training, where it differs (dropout, batch norm).
    pub inference: Option<fn(&Body) -> Vec<Tensor>>,
}

/// What a composite's body is built from.
pub struct Body<'a> {
    /// The function under construction.
    pub graph: &'a Graph,
    /// Its parameters.
    pub operands: &'a [Tensor],
    /// The attributes of the call.
    pub attributes: &'a Attributes,
}

/// How gradients pass through an operator.
#[derive(Clone, Copy)]
pub enum Derivative {
    /// A rule that builds the operands' cotangents.
    Rule(fn(&Vjp) -> Vec<Option<Tensor>>),
    /// A composite's default: the derivative of its body.
    Body,
    /// Calls and scans: differentiated by `backfit-grad` itself.
    Structural,
    /// The results are constants to derivatives: nothing flows, and nothing that only they need is computed.
    Zero,
    /// There is none, and why.
    NotDifferentiable(&'static str),
}

/// What a derivative rule is given. It returns one cotangent per operand, `None` where nothing flows.
pub struct Vjp<'a> {
    /// Where to build.
    pub graph: &'a Graph,
    /// The operator.
    pub op: &'a Op,
    /// The attributes of a composite; empty for primitives.
    pub attributes: &'a Attributes,
    /// The operands' values.
    pub operands: &'a [Tensor],
    /// The results' values.
    pub results: &'a [Tensor],
    /// Cotangents of the results; `None` is zero, at least one is given.
    pub cotangents: &'a [Option<Tensor>],
    /// Which operands' cotangents are asked for. Others may be `None`.
    pub wanted: &'a [bool],
}

impl Vjp<'_> {
    /// The cotangent of the first result, which single-result rules need.
    ///
    /// # Panics
    /// Where it was not given; the driver calls a rule only with at least one cotangent.
    pub fn cotangent(&self) -> &Tensor {
        self.cotangents[0].as_ref().expect("a single-result rule is called with its cotangent")
    }

    /// Builds an operand's cotangent only where it is asked for.
    pub fn when(&self, operand: usize, build: impl FnOnce() -> Tensor) -> Option<Tensor> {
        self.wanted[operand].then(build)
    }
}

/// How near a target has to come to the reference, in units of the dtype's epsilon.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// The same bits.
    Exact,
    /// Relative to each element.
    Element(f64),
    /// Relative to the largest element of the result.
    Norm(f64),
}

/// The function of a sample: builds results from inputs.
pub type Build = Box<dyn Fn(&Graph, &[Tensor]) -> Vec<Tensor> + Send + Sync>;

/// A case for the audit: inputs and how to call the operator on them.
pub struct Sample {
    /// What is special about it.
    pub label: String,
    /// The inputs. Those given as f64 are also tried in every dtype of `dtypes`.
    pub inputs: Vec<Literal>,
    /// The dtypes to which f64 inputs are converted (i64 inputs where these are integers).
    pub dtypes: &'static [DType],
    /// Whether its derivative is compared with central differences at these inputs (false at kinks and poles).
    pub smooth: bool,
    /// Calls the operator.
    pub build: Build,
}

/// The float dtypes.
pub const FLOATS: &[DType] = &[DType::F64, DType::F32, DType::F16, DType::BF16];
/// The integer dtypes.
pub const INTEGERS: &[DType] =
    &[DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8];
/// Only the boolean dtype.
pub const BOOLS: &[DType] = &[DType::Bool];

impl Sample {
    /// A sample of float inputs, in all float dtypes, at smooth points.
    pub fn floats(
        label: &str,
        inputs: Vec<Literal>,
        build: impl Fn(&Graph, &[Tensor]) -> Vec<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Sample { label: label.to_owned(), inputs, dtypes: FLOATS, smooth: true, build: Box::new(build) }
    }

    /// A sample whose i64 inputs are tried in every integer dtype.
    pub fn integers(
        label: &str,
        inputs: Vec<Literal>,
        build: impl Fn(&Graph, &[Tensor]) -> Vec<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Sample { dtypes: INTEGERS, smooth: false, ..Self::floats(label, inputs, build) }
    }

    /// Says that the derivative is not to be checked here (a kink, a pole, a danger value).
    pub fn not_smooth(mut self) -> Self {
        self.smooth = false;
        self
    }

    /// Restricts the dtypes.
    pub fn with_dtypes(mut self, dtypes: &'static [DType]) -> Self {
        self.dtypes = dtypes;
        self
    }
}

/// Deterministic numbers for samples.
pub mod values {
    use crate::dtype::DType;
    use crate::literal::Literal;
    use crate::shape::{Shape, Type};

    /// `count` numbers in `[low, high)` that repeat for the same `seed` (SplitMix64).
    pub fn uniform(count: usize, low: f64, high: f64, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        (0..count).map(|_| low + (high - low) * (next() >> 11) as f64 / (1u64 << 53) as f64).collect()
    }

    /// An f64 tensor of such numbers, rounded to multiples of 1/256 so that every float dtype but bf16 holds them exactly.
    pub fn tensor(shape: impl Into<Shape>, low: f64, high: f64, seed: u64) -> Literal {
        let ty = Type::new(DType::F64, shape);
        let values = uniform(ty.shape.elements(), low, high, seed);
        let rounded: Vec<f64> = values.iter().map(|v| (v * 256.0).round() / 256.0).collect();
        Literal::from_f64(ty, &rounded)
    }

    /// An f64 tensor of these values.
    pub fn floats(shape: impl Into<Shape>, values: &[f64]) -> Literal {
        Literal::from_f64(Type::new(DType::F64, shape), values)
    }

    /// An i64 tensor of these values.
    pub fn integers(shape: impl Into<Shape>, values: &[i64]) -> Literal {
        Literal::from_i64(Type::new(DType::I64, shape), values)
    }

    /// An i32 tensor (index operands keep their dtype).
    pub fn indices(shape: impl Into<Shape>, values: &[i32]) -> Literal {
        Literal::from_i32(shape, values)
    }

    /// Not-a-number, infinities, signed zeros, and numbers near the ends of f16's and f32's range.
    pub fn danger() -> Literal {
        let v = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 65504.0, -65504.0, 6.2e-5];
        floats([v.len()], &v)
    }
}
