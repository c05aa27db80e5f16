//! Instructions that move data: copies, padding, concatenation.

use super::{Located, at};
use crate::view::View;
use backfit_ir::Type;
use backfit_kernels::context::Addr;
use backfit_kernels::copy::Copy;
use backfit_kernels::program::Instruction;
use backfit_kernels::strided::Axis;

/// Copies a view into a dense buffer.
pub(crate) fn copy(from: &Located, to: Addr) -> Vec<Instruction> {
    let dense = View::dense(&from.view.dims.clone().into());
    copy_region(from, to, &dense.strides)
}

/// Copies bytes from one dense buffer to another; nothing where they are the same.
pub(crate) fn copy_bytes(from: Addr, to: Addr, bytes: usize) -> Vec<Instruction> {
    if from == to || bytes == 0 {
        return vec![];
    }
    let axes = vec![Axis { size: bytes, input: 1, output: 1 }];
    vec![Copy { elem_bytes: 1, input: from, output: to, axes }.into()]
}

fn copy_region(from: &Located, to: Addr, strides: &[isize]) -> Vec<Instruction> {
    if from.view.dims.contains(&0) {
        return vec![];
    }
    let sizes = from.view.dims.iter().zip(from.view.strides.iter().zip(strides));
    let axes = sizes.map(|(&size, (&input, &output))| Axis { size, input, output }).collect();
    vec![Copy { elem_bytes: from.elem.size(), input: from.addr, output: to, axes }.into()]
}

/// One copy per operand, side by side along an axis.
pub(crate) fn concatenate(axis: usize, x: &[Located], out: Addr, ty: &Type) -> Vec<Instruction> {
    let strides = View::dense(&ty.shape).strides;
    let mut instructions = Vec::new();
    let mut position = 0;
    for part in x {
        let to = at(out, position * strides[axis] as usize * part.elem.size());
        instructions.extend(copy_region(part, to, &strides));
        position += part.view.dims[axis];
    }
    instructions
}

/// Repeats the padding value everywhere, then copies what negative edges leave of the operand.
pub(crate) fn pad(low: &[i64], interior: &[usize], x: &[Located], out: Addr, ty: &Type) -> Vec<Instruction> {
    let (body, value) = (&x[0], &x[1]);
    if ty.shape.elements() == 0 {
        return vec![];
    }
    let everywhere = View { dims: ty.shape.to_vec(), strides: vec![0; ty.shape.rank()], offset: 0 };
    let mut instructions = copy(&Located { addr: value.addr, view: everywhere, elem: value.elem }, out);
    let dense = View::dense(&ty.shape);
    let mut kept = body.clone();
    let mut strides = Vec::new();
    let (mut skip_in, mut skip_out) = (0isize, 0usize);
    for axis in 0..low.len() {
        let step = interior[axis] as i64 + 1;
        // Element i lands at low + i · step; keep those in 0..extent.
        let first = if low[axis] < 0 { (-low[axis] + step - 1) / step } else { 0 };
        let extent = ty.shape[axis] as i64;
        let end =
            (body.view.dims[axis] as i64).min(if extent > low[axis] { (extent - 1 - low[axis]) / step + 1 } else { 0 });
        kept.view.dims[axis] = (end - first).max(0) as usize;
        skip_in += first as isize * body.view.strides[axis];
        skip_out += (low[axis] + first * step).max(0) as usize * dense.strides[axis] as usize;
        strides.push(dense.strides[axis] * step as isize);
    }
    if kept.view.dims.contains(&0) {
        return instructions;
    }
    let width = body.elem.size() as isize;
    kept.addr.offset = kept.addr.offset.wrapping_add_signed(skip_in * width);
    instructions.extend(copy_region(&kept, at(out, skip_out * body.elem.size()), &strides));
    instructions
}
