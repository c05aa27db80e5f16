//! Matrix products and convolutions.

use super::{Located, elem, line};
use crate::view::View;
use backfit_ir::Type;
use backfit_ir::op::Precision;
use backfit_ir::ops::convolution::{Convolution, Layout};
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_kernels::context::Addr;
use backfit_kernels::convolution::{self as kernel, Spatial};
use backfit_kernels::gemm::{Batch, Gemm, Matrix};
use backfit_kernels::program::Instruction;

fn check_precision(precision: Precision) -> Result<(), String> {
    if precision == Precision::Full { Ok(()) } else { Err("only full precision is offered".to_owned()) }
}

/// A product: batch axes stay axes, free and contracted axes are lines.
pub(crate) fn dot(dot: &DotGeneral, x: &[Located], out: Addr, ty: &Type) -> Result<Instruction, String> {
    check_precision(dot.precision)?;
    let (a, b) = (&x[0], &x[1]);
    let a_free = DotGeneral::free(a.view.dims.len(), &dot.lhs_batch, &dot.lhs_contract);
    let b_free = DotGeneral::free(b.view.dims.len(), &dot.rhs_batch, &dot.rhs_contract);
    let along =
        |view: &View, axes: &[usize]| line(view, axes).ok_or("an operand's axes are on no common line".to_owned());
    let (m, a_row) = along(&a.view, &a_free)?;
    let (k, a_col) = along(&a.view, &dot.lhs_contract)?;
    let (n, b_col) = along(&b.view, &b_free)?;
    let (_, b_row) = along(&b.view, &dot.rhs_contract)?;
    let c_strides = View::dense(&ty.shape).strides;
    let pairs = dot.lhs_batch.iter().zip(&dot.rhs_batch).enumerate();
    let batch = pairs.map(|(i, (&l, &r))| Batch {
        size: a.view.dims[l],
        a_stride: a.view.strides[l],
        b_stride: b.view.strides[r],
        c_stride: c_strides[i],
    });
    Ok(Gemm {
        m,
        n,
        k,
        batch: batch.collect(),
        a: Matrix { addr: a.addr, elem: a.elem, row_stride: a_row, col_stride: a_col },
        b: Matrix { addr: b.addr, elem: b.elem, row_stride: b_row, col_stride: b_col },
        c: Matrix { addr: out, elem: elem(ty.dtype), row_stride: n as isize, col_stride: 1 },
        acc: elem(dot.accumulator),
        accumulate: false,
    }
    .into())
}

/// A convolution. Feature groups and batch groups are both the kernel's groups: they differ in which axes they cut.
pub(crate) fn convolution(c: &Convolution, x: &[Located], out: Addr, ty: &Type) -> Result<Instruction, String> {
    check_precision(c.precision)?;
    let (lhs, rhs) = (&x[0], &x[1]);
    let dense = View::dense(&ty.shape);
    let groups = c.feature_groups.max(c.batch_groups);
    if c.feature_groups > 1 && c.batch_groups > 1 {
        return Err("feature groups and batch groups at once".to_owned());
    }
    let extent = |view: &View, axis: usize| (view.dims[axis], view.strides[axis]);
    let (images, lhs_batch_stride) = extent(&lhs.view, c.lhs.batch);
    let (features, lhs_feature_stride) = extent(&lhs.view, c.lhs.feature);
    let (out_features, rhs_out_stride) = extent(&rhs.view, c.rhs.batch);
    let rhs_in_stride = rhs.view.strides[c.rhs.feature];
    let batch = images / c.batch_groups;
    let (in_channels, out_channels) = (features / c.feature_groups, out_features / groups);
    let lhs_group_stride =
        if c.batch_groups > 1 { lhs_batch_stride * batch as isize } else { lhs_feature_stride * in_channels as isize };
    let (spatial, rhs_offset) = spatial(c, lhs, rhs, &dense, ty);
    let mut rhs_addr = rhs.addr;
    rhs_addr.offset = rhs_addr.offset.wrapping_add_signed(rhs_offset * rhs.elem.size() as isize);
    let Layout { batch: out_batch, feature: out_feature, .. } = c.out;
    Ok(kernel::Convolution {
        lhs: kernel::Tensor { addr: lhs.addr, elem: lhs.elem },
        rhs: kernel::Tensor { addr: rhs_addr, elem: rhs.elem },
        out: kernel::Tensor { addr: out, elem: elem(ty.dtype) },
        acc: elem(c.accumulator),
        groups,
        batch,
        in_channels,
        out_channels,
        lhs_group_stride,
        lhs_batch_stride,
        lhs_feature_stride,
        rhs_group_stride: rhs_out_stride * out_channels as isize,
        rhs_out_stride,
        rhs_in_stride,
        out_group_stride: dense.strides[out_feature] * out_channels as isize,
        out_batch_stride: dense.strides[out_batch],
        out_feature_stride: dense.strides[out_feature],
        spatial,
    }
    .into())
}

/// Spatial dimensions, and how many elements a reversed kernel starts further on.
fn spatial(c: &Convolution, lhs: &Located, rhs: &Located, out: &View, ty: &Type) -> (Vec<Spatial>, isize) {
    let mut offset = 0;
    let mut dims = Vec::new();
    for i in 0..c.stride.len() {
        let (l, r, o) = (c.lhs.spatial[i], c.rhs.spatial[i], c.out.spatial[i]);
        let kernel = rhs.view.dims[r];
        let mut rhs_stride = rhs.view.strides[r];
        if c.reverse[i] {
            offset += rhs_stride * (kernel as isize - 1);
            rhs_stride = -rhs_stride;
        }
        dims.push(Spatial {
            input: lhs.view.dims[l],
            kernel,
            output: ty.shape[o],
            stride: c.stride[i],
            padding_low: c.pad_low[i] as isize,
            base_dilation: c.lhs_dilation[i],
            window_dilation: c.rhs_dilation[i],
            lhs_stride: lhs.view.strides[l],
            rhs_stride,
            out_stride: out.strides[o],
        });
    }
    (dims, offset)
}
