//! Sliding windows.

use super::Located;
use crate::view::View;
use backfit_ir::Type;
use backfit_ir::op::{Extreme, Monoid};
use backfit_ir::ops::reduce_window::Window;
use backfit_kernels::context::Addr;
use backfit_kernels::program::Instruction;
use backfit_kernels::window::reduce::{ReduceWindow, WindowDim, WindowOp};
use backfit_kernels::window::select::{Select, SelectAndScatter, SelectDim};

pub(crate) fn reduce(monoid: Monoid, window: &Window, x: &Located, out: Addr, ty: &Type) -> Instruction {
    let op = match monoid {
        Monoid::Sum => WindowOp::Sum,
        Monoid::Product => WindowOp::Product,
        // Of truth values: false before true.
        Monoid::Max | Monoid::Or => WindowOp::Max,
        Monoid::Min | Monoid::And => WindowOp::Min,
    };
    let dense = View::dense(&ty.shape);
    let dim = |axis: usize| WindowDim {
        input: x.view.dims[axis],
        output: ty.shape[axis],
        size: window.size[axis],
        stride: window.stride[axis],
        padding_low: window.pad_low[axis] as isize,
        base_dilation: 1,
        window_dilation: window.dilation[axis],
        input_stride: x.view.strides[axis],
        output_stride: dense.strides[axis],
    };
    let dims = (0..ty.shape.rank()).map(dim).collect();
    ReduceWindow { op, elem: x.elem, input: x.addr, output: out, dims }.into()
}

pub(crate) fn select(
    extreme: Extreme,
    window: &Window,
    x: &[Located],
    out: Addr,
    ty: &Type,
) -> Result<Instruction, String> {
    let dense = View::dense(&ty.shape);
    let dim = |axis: usize| SelectDim {
        operand: ty.shape[axis],
        source: x[1].view.dims[axis],
        size: window.size[axis],
        stride: window.stride[axis],
        padding_low: window.pad_low[axis] as isize,
        window_dilation: window.dilation[axis],
        operand_stride: x[0].view.strides[axis],
        source_stride: x[1].view.strides[axis],
        output_stride: dense.strides[axis],
    };
    let select = match extreme {
        Extreme::Max => Select::Max,
        Extreme::Min => Select::Min,
    };
    let dims = (0..ty.shape.rank()).map(dim).collect();
    let scatter =
        SelectAndScatter { select, elem: x[0].elem, operand: x[0].addr, source: x[1].addr, output: out, dims };
    scatter.check()?;
    Ok(scatter.into())
}
