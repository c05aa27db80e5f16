//! Reductions, running reductions and searches along axes.

use super::{Located, elem};
use crate::view::View;
use backfit_ir::op::{Extreme, Monoid};
use backfit_ir::{DType, Type};
use backfit_kernels::arg_reduce::ArgReduce;
use backfit_kernels::context::Addr;
use backfit_kernels::cumulative::Cumulative;
use backfit_kernels::elem::{Elem, Lane};
use backfit_kernels::program::Instruction;
use backfit_kernels::reduce::Reduce;
use backfit_kernels::strided::Axis;
use backfit_kernels::tile::Reduction;

/// The machine's name for a monoid.
pub(crate) fn reduction(monoid: Monoid) -> Reduction {
    match monoid {
        Monoid::Sum => Reduction::Sum,
        Monoid::Product => Reduction::Product,
        Monoid::Max => Reduction::Max,
        Monoid::Min => Reduction::Min,
        Monoid::And => Reduction::And,
        Monoid::Or => Reduction::Or,
    }
}

/// Kernels accumulate in the lane of the element type; other accumulators are refused.
pub(crate) fn check_accumulator(elem: Elem, accumulator: DType) -> Result<(), String> {
    let fits = match elem.lane() {
        Lane::F32 => accumulator == DType::F32,
        _ => super::elem(accumulator) == elem || !elem.is_float(),
    };
    if fits { Ok(()) } else { Err(format!("sums of {elem:?} are accumulated in its own lane, not in {accumulator}")) }
}

fn axes(view: &View, chosen: &[usize]) -> Vec<(usize, isize)> {
    chosen.iter().map(|&a| (view.dims[a], view.strides[a])).collect()
}

pub(crate) fn reduce(
    monoid: Monoid,
    reduced: &[usize],
    accumulator: DType,
    x: &Located,
    out: Addr,
) -> Result<Instruction, String> {
    check_accumulator(x.elem, accumulator)?;
    let kept: Vec<usize> = (0..x.view.dims.len()).filter(|a| !reduced.contains(a)).collect();
    Ok(Reduce {
        op: reduction(monoid),
        elem: x.elem,
        output_elem: x.elem,
        input: x.addr,
        output: out,
        kept: axes(&x.view, &kept),
        reduced: axes(&x.view, reduced),
    }
    .into())
}

pub(crate) fn arg_reduce(extreme: Extreme, axis: usize, x: &Located, out: Addr) -> Instruction {
    let kept: Vec<usize> = (0..x.view.dims.len()).filter(|&a| a != axis).collect();
    ArgReduce {
        max: extreme == Extreme::Max,
        elem: x.elem,
        index: elem(DType::I32),
        input: x.addr,
        output: out,
        kept: axes(&x.view, &kept),
        size: x.view.dims[axis],
        stride: x.view.strides[axis],
    }
    .into()
}

pub(crate) fn cumulative(
    monoid: Monoid,
    axis: usize,
    reverse: bool,
    exclusive: bool,
    x: &Located,
    out: Addr,
    ty: &Type,
) -> Instruction {
    let dense = View::dense(&ty.shape);
    let line = |a: usize| Axis { size: x.view.dims[a], input: x.view.strides[a], output: dense.strides[a] };
    Cumulative {
        op: reduction(monoid),
        elem: x.elem,
        reverse,
        exclusive,
        input: x.addr,
        output: out,
        outer: (0..x.view.dims.len()).filter(|&a| a != axis).map(line).collect(),
        axis: line(axis),
    }
    .into()
}
