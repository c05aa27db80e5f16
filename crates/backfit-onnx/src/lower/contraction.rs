//! Products of matrices and convolutions.

use crate::builder::{Builder, Val};
use crate::proto::AttributeProto;
use backfit_ir::op::Precision;
use backfit_ir::ops::convolution::{Convolution, Layout};
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::{DType, Type};

/// `dot_general`: both operands as stacks of matrices.
pub fn dot_general(b: &mut Builder, dot: &DotGeneral, lhs: &Val, rhs: &Val) -> Val {
    let lhs_free = DotGeneral::free(lhs.shape().rank(), &dot.lhs_batch, &dot.lhs_contract);
    let rhs_free = DotGeneral::free(rhs.shape().rank(), &dot.rhs_batch, &dot.rhs_contract);
    let extents = |v: &Val, axes: &[usize]| axes.iter().map(|&a| v.shape()[a]).collect::<Vec<_>>();
    let size = |v: &Val, axes: &[usize]| extents(v, axes).iter().product::<usize>();
    let stack = extents(lhs, &dot.lhs_batch);
    let (rows, columns, inner) = (size(lhs, &lhs_free), size(rhs, &rhs_free), size(lhs, &dot.lhs_contract));
    let result = [stack.clone(), extents(lhs, &lhs_free), extents(rhs, &rhs_free)].concat();
    if inner == 0 {
        return b.zeros(&Type::new(dot.result, result));
    }
    let left = b.transpose(lhs, &[&dot.lhs_batch[..], &lhs_free, &dot.lhs_contract].concat());
    let right = b.transpose(rhs, &[&dot.rhs_batch[..], &dot.rhs_contract, &rhs_free].concat());
    let left = b.reshape(&left, &[&stack[..], &[rows, inner]].concat());
    let right = b.reshape(&right, &[&stack[..], &[inner, columns]].concat());
    let y = product(b, dot.accumulator, dot.precision, [&left, &right], &mut |b, x, y| {
        let shape = [&stack[..], &[rows, columns]].concat();
        b.node("MatMul", &[x, y], vec![], x.ty.with_shape(shape))
    });
    let y = b.cast(&y, dot.result);
    b.reshape(&y, &result)
}

/// A bilinear operator in the accumulator's dtype, with operands as exact as the precision asks.
fn product(
    b: &mut Builder,
    accumulator: DType,
    precision: Precision,
    operands: [&Val; 2],
    multiply: &mut dyn FnMut(&mut Builder, &Val, &Val) -> Val,
) -> Val {
    let [x, y] = operands;
    // onnxruntime multiplies matrices in f64, f32 and integers of 32 and 64 bits. Narrower ones wrap at the end.
    let dtype = match accumulator {
        DType::F16 | DType::BF16 => DType::F32,
        DType::I8 | DType::I16 => DType::I32,
        DType::U8 | DType::U16 => DType::U32,
        other => other,
    };
    let (x, y) = (b.cast(x, dtype), b.cast(y, dtype));
    match precision {
        Precision::Full => multiply(b, &x, &y),
        Precision::Bf16 => {
            let (x, y) = (rounded(b, &x), rounded(b, &y));
            multiply(b, &x, &y)
        }
        Precision::Bf16x3 => {
            let ([x, x_rest], [y, y_rest]) = (parts(b, &x), parts(b, &y));
            let mixed = multiply(b, &x, &y_rest);
            let other = multiply(b, &x_rest, &y);
            let small = b.binary("Add", &mixed, &other);
            let large = multiply(b, &x, &y);
            b.binary("Add", &large, &small)
        }
    }
}

/// Rounded to bf16.
fn rounded(b: &mut Builder, x: &Val) -> Val {
    let half = b.cast(x, DType::BF16);
    b.cast(&half, x.dtype())
}

/// Rounded to bf16, and what that leaves, rounded to bf16.
fn parts(b: &mut Builder, x: &Val) -> [Val; 2] {
    let high = rounded(b, x);
    let rest = b.binary("Sub", x, &high);
    let low = rounded(b, &rest);
    [high, low]
}

/// The axes of a layout in the order batch, feature, spatial.
fn order(layout: &Layout) -> Vec<usize> {
    [&[layout.batch, layout.feature], layout.spatial.as_slice()].concat()
}

/// `convolution`: operands with features first, holes and padding made explicit, then ONNX's `Conv`, or patches and a
/// matrix product where it has no kernel.
pub fn convolution(b: &mut Builder, conv: &Convolution, lhs: &Val, rhs: &Val, result: &Type) -> Val {
    if lhs.elements() == 0 || rhs.elements() == 0 {
        return b.zeros(result);
    }
    let mut x = b.transpose(lhs, &order(&conv.lhs));
    let w = b.transpose(rhs, &order(&conv.rhs));
    let turned: Vec<usize> = (0..conv.reverse.len()).filter(|&s| conv.reverse[s]).map(|s| s + 2).collect();
    let w = b.reverse(&w, &turned);
    if conv.batch_groups > 1 {
        x = batch_to_features(b, &x, conv.batch_groups);
    }
    // Holes between elements of the input, and edges that cut, as padding of its own; the rest is left to `Conv`.
    let edges = |list: &[i64]| [&[0, 0], list].concat();
    let holes: Vec<usize> = [1, 1].iter().chain(&conv.lhs_dilation).map(|d| d - 1).collect();
    let cuts = conv.pad_low.iter().chain(&conv.pad_high).any(|&p| p < 0);
    let (mut low, mut high) = (conv.pad_low.clone(), conv.pad_high.clone());
    if cuts || holes.iter().any(|&h| h > 0) {
        let zero = b.zero(x.dtype());
        x = b.pad(&x, &edges(&low), &edges(&high), &holes, &zero);
        low.fill(0);
        high.fill(0);
    }
    let spatial: Vec<usize> = conv.out.spatial.iter().map(|&a| result.shape[a]).collect();
    let shape = [&[result.shape[conv.out.batch], result.shape[conv.out.feature]], &spatial[..]].concat();
    let sizes = Sizes { conv, low, high, groups: conv.feature_groups.max(conv.batch_groups), shape };
    let native = matches!(conv.accumulator, DType::F32) && !spatial.is_empty() && spatial.len() <= 3;
    let y = if native { sizes.native(b, &x, &w) } else { sizes.patches(b, &x, &w) };
    let y = b.cast(&y, result.dtype);
    let mut back = vec![0; result.shape.rank()];
    order(&conv.out).iter().enumerate().for_each(|(from, &to)| back[to] = from);
    b.transpose(&y, &back)
}

/// `[g·B, C, …]` as `[B, g·C, …]`: each group of the batch becomes a group of features.
fn batch_to_features(b: &mut Builder, x: &Val, groups: usize) -> Val {
    let (batch, features, spatial) = (x.shape()[0] / groups, x.shape()[1], x.shape()[2..].to_vec());
    let apart = b.reshape(x, &[&[groups, batch, features], &spatial[..]].concat());
    let order: Vec<usize> = [1, 0].into_iter().chain(2..apart.shape().rank()).collect();
    let moved = b.transpose(&apart, &order);
    b.reshape(&moved, &[&[batch, groups * features], &spatial[..]].concat())
}

/// A convolution with features first.
struct Sizes<'a> {
    conv: &'a Convolution,
    low: Vec<i64>,
    high: Vec<i64>,
    groups: usize,
    /// Of the result.
    shape: Vec<usize>,
}

impl Sizes<'_> {
    fn native(&self, b: &mut Builder, x: &Val, w: &Val) -> Val {
        let list = |name: &str, values: &[usize]| AttributeProto::ints(name, values.iter().map(|&v| v as i64));
        let attributes = vec![
            list("dilations", &self.conv.rhs_dilation),
            AttributeProto::int("group", self.groups as i64),
            list("kernel_shape", &w.shape()[2..]),
            AttributeProto::ints("pads", self.low.iter().chain(&self.high).copied()),
            list("strides", &self.conv.stride),
        ];
        product(b, self.conv.accumulator, self.conv.precision, [x, w], &mut |b, x, w| {
            b.node("Conv", &[x, w], attributes.clone(), x.ty.with_shape(&self.shape[..]))
        })
    }

    /// Every patch of the input as a row, times the kernel.
    fn patches(&self, b: &mut Builder, x: &Val, w: &Val) -> Val {
        let zero = b.zero(x.dtype());
        let edge = |list: &[i64]| [0, 0].into_iter().chain(list.iter().map(|&v| v as usize)).collect::<Vec<_>>();
        let mut rows = b.surround(x, &edge(&self.low), &edge(&self.high), &zero);
        // Each spatial axis becomes two: places of the result, and elements of the kernel.
        let spatial = self.shape.len() - 2;
        for s in 0..spatial {
            let (out, size) = (self.shape[s + 2], w.shape()[s + 2]);
            let at = |i: usize| (i / size * self.conv.stride[s] + i % size * self.conv.rhs_dilation[s]) as i64;
            let places = b.table(&[out, size], &(0..out * size).map(at).collect::<Vec<_>>());
            rows = b.gather(&rows, &places, 2 + 2 * s);
        }
        let (batch, groups) = (self.shape[0], self.groups);
        let features = x.shape()[1] / groups;
        let apart = [&[batch, groups, features], &rows.shape()[2..]].concat();
        let apart = b.reshape(&rows, &apart);
        // Group, batch, places; features, kernel.
        let places = (0..spatial).map(|s| 3 + 2 * s);
        let kernel = (0..spatial).map(|s| 4 + 2 * s);
        let order: Vec<usize> = [1, 0].into_iter().chain(places).chain([2]).chain(kernel).collect();
        let moved = b.transpose(&apart, &order);
        let inner: usize = w.shape()[1..].iter().product();
        let count: usize = self.shape[2..].iter().product();
        let left = b.reshape(&moved, &[groups, batch * count, inner]);
        let right = b.reshape(w, &[groups, self.shape[1] / groups, inner]);
        let right = b.transpose(&right, &[0, 2, 1]);
        let columns = self.shape[1] / groups;
        let y = product(b, self.conv.accumulator, self.conv.precision, [&left, &right], &mut |b, x, y| {
            b.node("MatMul", &[x, y], vec![], x.ty.with_shape([groups, batch * count, columns]))
        });
        let y = b.reshape(&y, &[groups, batch, count, columns]);
        let y = b.transpose(&y, &[1, 0, 3, 2]);
        b.reshape(&y, &self.shape)
    }
}
