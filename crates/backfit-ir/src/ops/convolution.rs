//! `convolution(lhs, rhs)`: the generalised convolution (a cross-correlation, as in every ML framework).
//!
//! y[b, f, o] = Σ over c, k of x[b, c, o·stride + k·rhs_dilation − pad_low] · w[f, c, k], where x is the input
//! with its elements `lhs_dilation` apart and zeros everywhere else; with `reverse` the kernel is read backwards.
//! Extent of the result: with d = (n − 1)·lhs_dilation + 1 and e = (k − 1)·rhs_dilation + 1 it is
//! ⌊(pad_low + d + pad_high − e) / stride⌋ + 1, and 0 where the kernel does not fit.
//!
//! `feature_groups` g: the kernel has C/g input features; group j of the output features reads group j of the
//! input's. `batch_groups` g: group j of the output features reads group j of the batch, which shrinks to B/g.
//! Numbers of one dtype; sums in the accumulator's dtype, integers wrap. Up to five spatial axes.
//! Errors: lists that have not one entry per spatial axis, layouts that do not name every axis once, extents
//! that groups do not divide, kernels without elements. Source: StableHLO `convolution`.

mod gradient;
mod samples;

use super::definition::{Derivative, Kind, OpDef, Primitive, Tolerance};
use super::elementwise::arity;
use super::structure::{LIMIT, dilated, extent, one_each, sized, windows};
use crate::attributes::{AttrResult, Attributes};
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::interp::{Array, Odometer};
use crate::op::{Keyword, Op, Precision};
use crate::shape::{MAX_RANK, Type};

/// Where batch, feature and spatial axes lie in an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Batch axis; for a kernel its output-feature axis.
    pub batch: usize,
    /// Feature axis; for a kernel its input-feature axis.
    pub feature: usize,
    /// Spatial axes, outermost first.
    pub spatial: Vec<usize>,
}

/// The attributes of `convolution`, as in StableHLO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Axes of the input.
    pub lhs: Layout,
    /// Axes of the kernel.
    pub rhs: Layout,
    /// Axes of the result.
    pub out: Layout,
    /// Step of the window, per spatial axis.
    pub stride: Vec<usize>,
    /// Padding before the first element, per spatial axis; negative cuts. Counted on the dilated input.
    pub pad_low: Vec<i64>,
    /// Padding after the last element, per spatial axis; negative cuts.
    pub pad_high: Vec<i64>,
    /// Elements of the input are this far apart (1 = dense): base dilation.
    pub lhs_dilation: Vec<usize>,
    /// Elements of the kernel are this far apart: window dilation.
    pub rhs_dilation: Vec<usize>,
    /// The kernel is applied reversed, per spatial axis.
    pub reverse: Vec<bool>,
    /// Input features and output features are split into this many groups.
    pub feature_groups: usize,
    /// The batch and the output features are split into this many groups (gradient of grouped kernels).
    pub batch_groups: usize,
    /// Dtype of the sums.
    pub accumulator: DType,
    /// Dtype of the result.
    pub result: DType,
    /// How exactly products are formed.
    pub precision: Precision,
}

impl Layout {
    /// Batch, feature, then the spatial axes: NCHW, and OIHW for kernels.
    pub fn features_first(spatial: usize) -> Self {
        Layout { batch: 0, feature: 1, spatial: (2..spatial + 2).collect() }
    }

    fn list(&self) -> Vec<usize> {
        [&[self.batch, self.feature], self.spatial.as_slice()].concat()
    }

    fn from_list(words: &str, list: &[usize]) -> AttrResult<Self> {
        match list {
            [batch, feature, spatial @ ..] => {
                Ok(Layout { batch: *batch, feature: *feature, spatial: spatial.to_vec() })
            }
            _ => Err(format!("'{words}' is {list:?}; it names the batch axis, the feature axis, then spatial axes")),
        }
    }

    /// Batch and feature exchanged.
    fn swapped(&self) -> Self {
        Layout { batch: self.feature, feature: self.batch, spatial: self.spatial.clone() }
    }

    fn check(&self, words: &str, ty: &Type) -> Result<(), String> {
        let mut axes = self.list();
        axes.sort_unstable();
        let whole = axes.into_iter().eq(0..ty.shape.rank());
        if whole { Ok(()) } else { Err(format!("the layout {:?} of the {words} is not the axes of {ty}", self.list())) }
    }
}

impl Convolution {
    /// Dense, without padding or groups, features first (NCHW · OIHW → NCHW), in a dtype with its usual accumulator.
    /// Change the fields that differ.
    pub fn dense(spatial: usize, dtype: DType) -> Self {
        let layout = Layout::features_first(spatial);
        Convolution {
            lhs: layout.clone(),
            rhs: layout.clone(),
            out: layout,
            stride: vec![1; spatial],
            pad_low: vec![0; spatial],
            pad_high: vec![0; spatial],
            lhs_dilation: vec![1; spatial],
            rhs_dilation: vec![1; spatial],
            reverse: vec![false; spatial],
            feature_groups: 1,
            batch_groups: 1,
            accumulator: dtype.accumulator(),
            result: dtype,
            precision: Precision::Full,
        }
    }
}

impl Tensor {
    /// The generalised convolution of this tensor with a kernel.
    #[track_caller]
    pub fn convolution(&self, kernel: &Tensor, attributes: Convolution) -> Tensor {
        self.graph().push1(Op::Convolution(attributes), &[self, kernel])
    }
}

fn attributes_of(op: &Op) -> &Convolution {
    match op {
        Op::Convolution(conv) => conv,
        _ => unreachable!("a rule of convolution"),
    }
}

fn attributes(op: &Op) -> Attributes {
    let conv = attributes_of(op);
    Attributes::new()
        .with("lhs", &conv.lhs.list())
        .with("rhs", &conv.rhs.list())
        .with("out", &conv.out.list())
        .with("stride", &conv.stride)
        .with("pad_low", conv.pad_low.clone())
        .with("pad_high", conv.pad_high.clone())
        .with("lhs_dilation", &conv.lhs_dilation)
        .with("rhs_dilation", &conv.rhs_dilation)
        .with("reverse", conv.reverse.iter().map(|&r| i64::from(r)).collect::<Vec<i64>>())
        .with("feature_groups", conv.feature_groups)
        .with("batch_groups", conv.batch_groups)
        .with("accumulator", conv.accumulator)
        .with("result", conv.result)
        .with("precision", conv.precision.word())
}

fn parse(a: &Attributes) -> AttrResult<Op> {
    let layout = |words| Layout::from_list(words, &a.sizes(words)?);
    let truth = |v: i64| match v {
        0 | 1 => Ok(v == 1),
        _ => Err(format!("'reverse' has an entry {v}; its entries are 0 and 1")),
    };
    Ok(Op::Convolution(Convolution {
        lhs: layout("lhs")?,
        rhs: layout("rhs")?,
        out: layout("out")?,
        stride: a.sizes("stride")?,
        pad_low: a.ints("pad_low")?,
        pad_high: a.ints("pad_high")?,
        lhs_dilation: a.sizes("lhs_dilation")?,
        rhs_dilation: a.sizes("rhs_dilation")?,
        reverse: a.ints("reverse")?.into_iter().map(truth).collect::<AttrResult<_>>()?,
        feature_groups: a.size("feature_groups")?,
        batch_groups: a.size("batch_groups")?,
        accumulator: a.dtype("accumulator")?,
        result: a.dtype("result")?,
        precision: Precision::from_word(a.str("precision")?)?,
    }))
}

fn check_dtypes(conv: &Convolution, lhs: &Type, rhs: &Type) -> Result<(), String> {
    if lhs.dtype != rhs.dtype {
        return Err(format!("the operands are {} and {}; cast one of them", lhs.dtype, rhs.dtype));
    }
    for (words, dtype) in [("operands", lhs.dtype), ("accumulator", conv.accumulator), ("result", conv.result)] {
        if dtype.class() == Class::Bool || dtype.is_packed() {
            return Err(format!("it takes numbers; the dtype of the {words} is {dtype}"));
        }
        if dtype.is_float() != lhs.dtype.is_float() {
            return Err(format!("the operands are {}, but the dtype of the {words} is {dtype}", lhs.dtype));
        }
    }
    Ok(())
}

fn check_lists(conv: &Convolution, lhs: &Type, rhs: &Type) -> Result<(), String> {
    if lhs.shape.rank() != rhs.shape.rank() || !(2..MAX_RANK).contains(&lhs.shape.rank()) {
        return Err(format!("the operands are {lhs} and {rhs}; they must be of one rank, 2 to {}", MAX_RANK - 1));
    }
    conv.lhs.check("input", lhs)?;
    conv.rhs.check("kernel", rhs)?;
    conv.out.check("result", lhs)?;
    let lists = [
        ("stride", conv.stride.len()),
        ("pad_low", conv.pad_low.len()),
        ("pad_high", conv.pad_high.len()),
        ("lhs_dilation", conv.lhs_dilation.len()),
        ("rhs_dilation", conv.rhs_dilation.len()),
        ("reverse", conv.reverse.len()),
    ];
    lists.into_iter().try_for_each(|(words, entries)| one_each(words, entries, conv.lhs.spatial.len()))?;
    let steps = [("stride", &conv.stride), ("lhs_dilation", &conv.lhs_dilation), ("rhs_dilation", &conv.rhs_dilation)];
    for (words, list) in steps {
        if let Some(v) = list.iter().find(|v| !(1..=LIMIT).contains(*v)) {
            return Err(format!("'{words}' has an entry {v}; it must be at least 1 and addressable"));
        }
    }
    match conv.pad_low.iter().chain(&conv.pad_high).find(|v| v.unsigned_abs() > LIMIT as u64) {
        Some(v) => Err(format!("a padding of {v} is too large to address")),
        None => Ok(()),
    }
}

fn check_groups(conv: &Convolution, lhs: &Type, rhs: &Type) -> Result<(), String> {
    let (features, batches) = (conv.feature_groups, conv.batch_groups);
    if features == 0 || batches == 0 || (features > 1 && batches > 1) {
        return Err(format!("{features} feature groups and {batches} batch groups; at least one of them must be 1"));
    }
    let (batch, input) = (lhs.shape[conv.lhs.batch], lhs.shape[conv.lhs.feature]);
    let (output, per_group) = (rhs.shape[conv.rhs.batch], rhs.shape[conv.rhs.feature]);
    for (words, count, groups) in [
        ("input features", input, features),
        ("output features", output, features),
        ("batch elements", batch, batches),
        ("output features", output, batches),
    ] {
        if count % groups != 0 {
            return Err(format!("{count} {words} are not divided by {groups} groups"));
        }
    }
    if input / features != per_group {
        return Err(format!("the kernel reads {per_group} features, the input has {} per group", input / features));
    }
    Ok(())
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 2)?;
    let (conv, lhs, rhs) = (attributes_of(op), &types[0], &types[1]);
    check_dtypes(conv, lhs, rhs)?;
    check_lists(conv, lhs, rhs)?;
    check_groups(conv, lhs, rhs)?;
    let mut dims = vec![0; lhs.shape.rank()];
    dims[conv.out.batch] = lhs.shape[conv.lhs.batch] / conv.batch_groups;
    dims[conv.out.feature] = rhs.shape[conv.rhs.batch];
    for s in 0..conv.stride.len() {
        let (n, k) = (lhs.shape[conv.lhs.spatial[s]], rhs.shape[conv.rhs.spatial[s]]);
        if k == 0 {
            return Err(format!("the kernel {rhs} has no elements along axis {}", conv.rhs.spatial[s]));
        }
        let input = dilated(n, conv.lhs_dilation[s]);
        let padded = i128::from(conv.pad_low[s]) + input + i128::from(conv.pad_high[s]);
        if padded > LIMIT as i128 {
            return Err(format!("the padded input is too large to address along axis {}", conv.lhs.spatial[s]));
        }
        let axis = conv.out.spatial[s];
        dims[axis] = extent(windows(padded, dilated(k, conv.rhs_dilation[s]), conv.stride[s]), axis)?;
    }
    sized(Type::new(conv.result, dims))
}

/// Offsets into input and kernel of the products that one spatial position of the result sums.
fn taps(conv: &Convolution, lhs: &Type, rhs: &Type, out: &[usize]) -> Vec<(usize, usize)> {
    let (lhs_strides, rhs_strides) = (lhs.shape.strides(), rhs.shape.strides());
    let kernel: Vec<usize> = conv.rhs.spatial.iter().map(|&a| rhs.shape[a]).collect();
    let input = |s: usize, k: usize| {
        let spread = (out[s] * conv.stride[s]) as i64 + (k * conv.rhs_dilation[s]) as i64 - conv.pad_low[s];
        let spread = usize::try_from(spread).ok().filter(|p| p % conv.lhs_dilation[s] == 0)?;
        let i = spread / conv.lhs_dilation[s];
        (i < lhs.shape[conv.lhs.spatial[s]]).then(|| i * lhs_strides[conv.lhs.spatial[s]])
    };
    let tap = |index: Vec<usize>| {
        let (mut l, mut r) = (0, 0);
        for (s, &k) in index.iter().enumerate() {
            l += input(s, k)?;
            r += rhs_strides[conv.rhs.spatial[s]] * if conv.reverse[s] { kernel[s] - 1 - k } else { k };
        }
        Some((l, r))
    };
    Odometer::new(&kernel).filter_map(tap).collect()
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let conv = attributes_of(op);
    let (lhs, rhs, out) = (&x[0].ty, &x[1].ty, &results[0]);
    let (l, r, o) = (lhs.shape.strides(), rhs.shape.strides(), out.shape.strides());
    let (batch, features, inputs) =
        (out.shape[conv.out.batch], out.shape[conv.out.feature], rhs.shape[conv.rhs.feature]);
    let is_float = out.dtype.is_float();
    let mut floats = vec![0.0; if is_float { out.shape.elements() } else { 0 }];
    let mut ints = vec![0; if is_float { 0 } else { out.shape.elements() }];
    let spatial: Vec<usize> = conv.out.spatial.iter().map(|&a| out.shape[a]).collect();
    for position in Odometer::new(&spatial) {
        let taps = taps(conv, lhs, rhs, &position);
        let place: usize = position.iter().zip(&conv.out.spatial).map(|(i, &a)| i * o[a]).sum();
        for (b, f) in (0..batch).flat_map(|b| (0..features).map(move |f| (b, f))) {
            let first_input = f / (features / conv.feature_groups) * inputs;
            let row = f / (features / conv.batch_groups) * batch + b;
            let lhs_at = row * l[conv.lhs.batch] + first_input * l[conv.lhs.feature];
            let rhs_at = f * r[conv.rhs.batch];
            let terms = (0..inputs).flat_map(|c| taps.iter().map(move |&(i, k)| (c, i, k)));
            let terms =
                terms.map(|(c, i, k)| (lhs_at + c * l[conv.lhs.feature] + i, rhs_at + c * r[conv.rhs.feature] + k));
            let target = b * o[conv.out.batch] + f * o[conv.out.feature] + place;
            if is_float {
                floats[target] = terms.map(|(p, q)| x[0].as_floats()[p] * x[1].as_floats()[q]).sum();
            } else {
                let product = |(p, q): (usize, usize)| x[0].as_ints()[p].wrapping_mul(x[1].as_ints()[q]);
                ints[target] = terms.map(product).fold(0, i64::wrapping_add);
            }
        }
    }
    let ty = out.clone();
    vec![if is_float { Array::floats(ty, floats) } else { Array::ints(ty, ints) }]
}

/// Two operations for every product of the dense sum; products with padding and holes are counted too.
fn flops(op: &Op, types: &[Type], results: &[Type]) -> u64 {
    let rhs = &attributes_of(op).rhs;
    let per_output = rhs.spatial.iter().chain([&rhs.feature]).map(|&a| types[1].shape[a] as u64);
    per_output.fold(2 * results[0].shape.elements() as u64, u64::saturating_mul)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "convolution",
    formula: "y[b,f,o] = Σ x[b,c,o·stride + k·dilation − pad] · w[f,c,k] over c, k",
    kind: Kind::Primitive(Primitive { attributes, parse, infer, eval, flops }),
    derivative: Derivative::Rule(gradient::vjp),
    tolerance: Tolerance::Norm(16.0),
    onnx: &[],
    samples: samples::samples,
};
