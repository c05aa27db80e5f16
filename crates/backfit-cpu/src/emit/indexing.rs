//! Instructions whose addresses depend on data, sorting, and random bits.

use super::{Located, movement};
use crate::view::View;
use backfit_ir::Type;
use backfit_ir::op::ScatterMode;
use backfit_kernels::context::Addr;
use backfit_kernels::dynamic_copy::{DynamicSlice, DynamicUpdateSlice, SliceDim};
use backfit_kernels::elem::Elem;
use backfit_kernels::gather::Gather;
use backfit_kernels::program::Instruction;
use backfit_kernels::rng::RngBits;
use backfit_kernels::scatter::{Scatter, ScatterOp};
use backfit_kernels::sort::{Payload, Sort};

fn split(dims: &[usize], axis: usize) -> (usize, usize, usize) {
    (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product())
}

fn count(x: &Located) -> usize {
    x.view.dims.iter().product()
}

pub(crate) fn gather(axis: usize, x: &[Located], out: Addr, _: &Type) -> Instruction {
    let (outer, axis_len, inner) = split(&x[0].view.dims, axis);
    Gather {
        elem_bytes: x[0].elem.size(),
        outer,
        axis_len,
        inner,
        src: x[0].addr,
        indices: x[1].addr,
        index_elem: x[1].elem,
        count: count(&x[1]),
        out,
    }
    .into()
}

/// The operand is first copied to where the result is, unless it lies there already.
pub(crate) fn scatter(mode: ScatterMode, axis: usize, x: &[Located], out: Addr, ty: &Type) -> Vec<Instruction> {
    let mut instructions = start_from(&x[0], out);
    let (outer, axis_len, inner) = split(&ty.shape, axis);
    let op = match mode {
        ScatterMode::Set => ScatterOp::Set,
        ScatterMode::Add => ScatterOp::Add,
    };
    let scatter = Scatter {
        op,
        elem: x[0].elem,
        outer,
        axis_len,
        inner,
        indices: x[1].addr,
        index_elem: x[1].elem,
        count: count(&x[1]),
        updates: x[2].addr,
        out,
    };
    instructions.push(scatter.into());
    instructions
}

fn start_from(x: &Located, out: Addr) -> Vec<Instruction> {
    if x.addr == out && x.view.is_dense() { vec![] } else { movement::copy(x, out) }
}

/// Dimensions of a window that starts at run-time indices, one scalar operand per axis.
fn window_dims(whole: &View, window: &View, starts: &[Located]) -> Vec<SliceDim> {
    let dim = |(axis, start): (usize, &Located)| SliceDim {
        whole: whole.dims[axis],
        window: window.dims[axis],
        whole_stride: whole.strides[axis],
        window_stride: window.strides[axis],
        start: start.addr,
    };
    starts.iter().enumerate().map(dim).collect()
}

pub(crate) fn dynamic_slice(x: &[Located], out: Addr, ty: &Type) -> Instruction {
    let window = View::dense(&ty.shape);
    DynamicSlice {
        elem_bytes: x[0].elem.size(),
        index_elem: x.get(1).map_or(Elem::I32, |s| s.elem),
        whole: x[0].addr,
        window: out,
        dims: window_dims(&x[0].view, &window, &x[1..]),
    }
    .into()
}

pub(crate) fn dynamic_update_slice(x: &[Located], out: Addr, ty: &Type) -> Vec<Instruction> {
    let mut instructions = start_from(&x[0], out);
    let update = DynamicUpdateSlice {
        elem_bytes: x[0].elem.size(),
        index_elem: x.get(2).map_or(Elem::I32, |s| s.elem),
        whole: out,
        window: x[1].addr,
        dims: window_dims(&View::dense(&ty.shape), &x[1].view, &x[2..]),
    };
    instructions.push(update.into());
    instructions
}

pub(crate) fn sort(axis: usize, descending: bool, x: &[Located], outs: &[Addr]) -> Instruction {
    let (outer, len, inner) = split(&x[0].view.dims, axis);
    let payload = |(x, &output): (&Located, &Addr)| Payload { elem_bytes: x.elem.size(), input: x.addr, output };
    Sort {
        elem: x[0].elem,
        outer,
        len,
        inner,
        descending,
        keys: x[0].addr,
        sorted: outs[0],
        payloads: x[1..].iter().zip(&outs[1..]).map(payload).collect(),
    }
    .into()
}

pub(crate) fn rng_bits(key: &Located, out: Addr, count: usize) -> Instruction {
    RngBits { key: key.addr, output: out, count }.into()
}
