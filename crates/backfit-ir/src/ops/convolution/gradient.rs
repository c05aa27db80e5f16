//! The derivative of `convolution`: two convolutions.
//!
//! Along a spatial axis, with X the dilated input, y[o] = Σₖ X[o·s + k·d − low] w[k]. Hence
//! dx[i] = Σₖ G[i·l + low − k·d] w[k], G being g dilated by the stride s: a convolution of g by the kernel read
//! backwards, with stride l and input dilation s; and dw[k] = Σₒ g[o] X[k·d + o·s − low]: a convolution of x by
//! g, with stride d and kernel dilation s. Paddings follow from the extents that have to come out.

use super::super::definition::Vjp;
use super::super::structure::dilated;
use super::{Convolution, Layout, attributes_of};
use crate::builder::Tensor;
use crate::shape::Shape;

/// Both gradients.
pub(super) fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let conv = attributes_of(vjp.op);
    let (lhs, rhs, g) = (&vjp.operands[0], &vjp.operands[1], vjp.cotangent());
    if [lhs, rhs, g].iter().any(|t| t.shape().elements() == 0) {
        return vec![Some(lhs.like(0.0)), Some(rhs.like(0.0))];
    }
    vec![vjp.when(0, || input(conv, lhs, rhs, g)), vjp.when(1, || kernel(conv, lhs, rhs, g))]
}

fn extents(shape: &Shape, layout: &Layout, dilation: &[usize]) -> Vec<i64> {
    layout.spatial.iter().zip(dilation).map(|(&a, &d)| dilated(shape[a], d) as i64).collect()
}

/// Both operands must be of one dtype: where the result is wider than the operands, they are widened.
fn widened(x: &Tensor, g: &Tensor) -> Tensor {
    if x.dtype() == g.dtype() { x.clone() } else { x.cast(g.dtype()) }
}

fn input(conv: &Convolution, lhs: &Tensor, rhs: &Tensor, g: &Tensor) -> Tensor {
    let groups = conv.feature_groups * conv.batch_groups;
    let x = extents(lhs.shape(), &conv.lhs, &conv.lhs_dilation);
    let w = extents(rhs.shape(), &conv.rhs, &conv.rhs_dilation);
    let y = extents(g.shape(), &conv.out, &conv.stride);
    let pad_low: Vec<i64> = w.iter().zip(&conv.pad_low).map(|(w, low)| w - 1 - low).collect();
    let kernel = regrouped(&widened(rhs, g), conv.rhs.batch, conv.rhs.feature, groups);
    let gradient = g.convolution(
        &kernel,
        Convolution {
            lhs: conv.out.clone(),
            rhs: conv.rhs.swapped(),
            out: conv.lhs.clone(),
            stride: conv.lhs_dilation.clone(),
            pad_high: (0..x.len()).map(|s| x[s] + w[s] - 1 - y[s] - pad_low[s]).collect(),
            pad_low,
            lhs_dilation: conv.stride.clone(),
            reverse: conv.reverse.iter().map(|r| !r).collect(),
            feature_groups: groups,
            batch_groups: 1,
            result: lhs.dtype(),
            ..conv.clone()
        },
    );
    // With batch groups, the features that come out are (group, feature); the groups belong to the batch.
    regrouped(&gradient, conv.lhs.feature, conv.lhs.batch, conv.batch_groups)
}

fn kernel(conv: &Convolution, lhs: &Tensor, rhs: &Tensor, g: &Tensor) -> Tensor {
    let x = extents(lhs.shape(), &conv.lhs, &conv.lhs_dilation);
    let w = extents(rhs.shape(), &conv.rhs, &conv.rhs_dilation);
    let y = extents(g.shape(), &conv.out, &conv.stride);
    let gradient = widened(lhs, g).convolution(
        g,
        Convolution {
            lhs: conv.lhs.swapped(),
            rhs: conv.out.swapped(),
            out: conv.rhs.swapped(),
            stride: conv.rhs_dilation.clone(),
            pad_high: (0..x.len()).map(|s| w[s] + y[s] - 1 - x[s] - conv.pad_low[s]).collect(),
            rhs_dilation: conv.stride.clone(),
            reverse: vec![false; x.len()],
            feature_groups: conv.batch_groups,
            batch_groups: conv.feature_groups,
            result: rhs.dtype(),
            ..conv.clone()
        },
    );
    let reversed = conv.rhs.spatial.iter().zip(&conv.reverse).filter(|(_, r)| **r);
    gradient.reverse(&reversed.map(|(&axis, _)| axis as i64).collect::<Vec<_>>())
}

/// Splits axis `from` into (group, rest) and joins the group to axis `to`, as (group, to).
fn regrouped(x: &Tensor, from: usize, to: usize, groups: usize) -> Tensor {
    if groups == 1 {
        return x.clone();
    }
    let mut split = x.shape().to_vec();
    split.splice(from..=from, [groups, x.shape()[from] / groups]);
    let after = |axis: usize| if axis > from { axis + 1 } else { axis };
    let mut order: Vec<usize> = (0..split.len()).filter(|&a| a != from).collect();
    let to_place = order.iter().position(|&a| a == after(to)).unwrap_or(0);
    order.insert(to_place, from);
    let mut joined = x.shape().to_vec();
    joined[from] /= groups;
    joined[to] *= groups;
    x.reshape(split).transpose(&order).reshape(joined)
}
