//! Reductions over sliding windows.

use super::check_sizes;
use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::fold::{Combine, Max, Min, Product, Sum};
use crate::gemm::check_distinct;
use crate::stored::{Stored, with_stored};
use crate::strided::{self, MAX_RANK};

/// How a window's elements are joined. The start is the operation's neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOp {
    /// Sum (from 0).
    Sum,
    /// Product (from 1).
    Product,
    /// Maximum (from the least value, −∞ for floats); a NaN wins.
    Max,
    /// Minimum (from the greatest value, +∞ for floats); a NaN wins.
    Min,
}

/// One dimension of a windowed reduction; a dimension without windows has size, stride and dilations 1.
///
/// Window `o` holds the positions `o·stride + w·window_dilation − padding_low` of the dilated input, in which
/// `base_dilation − 1` holes lie between neighbours. Holes and padding contribute the neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// Extent of the input.
    pub input: usize,
    /// Extent of the output: the number of windows.
    pub output: usize,
    /// Elements of a window.
    pub size: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Positions before the first input element; negative crops. What lies behind follows from `output`.
    pub padding_low: isize,
    /// Positions between neighbouring input elements, at least 1.
    pub base_dilation: usize,
    /// Positions between neighbouring window elements, at least 1.
    pub window_dilation: usize,
    /// Elements between neighbours in the input.
    pub input_stride: isize,
    /// Elements between neighbours in the output.
    pub output_stride: isize,
}

/// `output[o] = op over the window of o`, elements of a window in row-major order. f16 and bf16 are joined in f32 and
/// rounded once; integers wrap.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceWindow {
    /// How elements are joined.
    pub op: WindowOp,
    /// How elements are stored, in input and output.
    pub elem: Elem,
    /// Input element 0.
    pub input: Addr,
    /// Output element 0.
    pub output: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<WindowDim>,
}

/// Outputs of a row that are folded at a time.
const RUN: usize = 256;

impl ReduceWindow {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(regions) = self.regions() {
            regions.into_iter().for_each(push);
        }
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        if self.dims.len() > MAX_RANK {
            return Err(format!("{} dimensions; at most {MAX_RANK}", self.dims.len()));
        }
        for d in &self.dims {
            if d.stride == 0 || d.base_dilation == 0 || d.window_dilation == 0 {
                return Err("strides and dilations of windows are at least 1".into());
            }
            check_sizes([d.input, d.output, d.size, d.stride, d.base_dilation, d.window_dilation], d.padding_low)?;
        }
        self.regions()?;
        check_distinct(self.dims.iter().map(|d| (d.output, d.output_stride)).collect())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    fn regions(&self) -> Result<[Access; 2], String> {
        strided::product(self.dims.iter().map(|d| d.output))?;
        let bytes = self.elem.size();
        let input = self.dims.iter().map(|d| (d.input, d.input_stride));
        let output = self.dims.iter().map(|d| (d.output, d.output_stride));
        Ok([strided::access(self.input, bytes, input, false)?, strided::access(self.output, bytes, output, true)?])
    }

    /// Computes this thread's outputs.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        with_stored!(self.elem, S => {
            // SAFETY: the caller's promise.
            unsafe {
                match self.op {
                    WindowOp::Sum => self.run_as::<S, Sum>(ctx),
                    WindowOp::Product => self.run_as::<S, Product>(ctx),
                    WindowOp::Max => self.run_as::<S, Max>(ctx),
                    WindowOp::Min => self.run_as::<S, Min>(ctx),
                }
            }
        });
    }

    /// The neutral element, as stored: lanes of short integers are wider.
    fn start<S: Stored, C: Combine<S::Lane>>(&self) -> S::Lane {
        let bits: u16 = match (self.op, self.elem) {
            (WindowOp::Max, Elem::I8) => 0x80,
            (WindowOp::Min, Elem::I8) => 0x7f,
            (WindowOp::Max, Elem::I16) => 0x8000,
            (WindowOp::Min, Elem::I16) => 0x7fff,
            (WindowOp::Max, Elem::U8 | Elem::U16 | Elem::Bool) => 0,
            (WindowOp::Min, Elem::U8 | Elem::U16) => 0xffff,
            (WindowOp::Min, Elem::Bool) => 1,
            _ => return C::NEUTRAL,
        };
        // SAFETY: `S` is the stored type of one of the above; it has at most two bytes, and any bits are valid.
        unsafe { std::ptr::from_ref(&bits.to_le()).cast::<S>().read() }.load()
    }

    unsafe fn run_as<S: Stored, C: Combine<S::Lane>>(&self, ctx: &Context) {
        const ONE: WindowDim = WindowDim {
            input: 1,
            output: 1,
            size: 1,
            stride: 1,
            padding_low: 0,
            base_dilation: 1,
            window_dilation: 1,
            input_stride: 0,
            output_stride: 0,
        };
        let (row, outer) = match self.dims.split_last() {
            Some((row, outer)) => (*row, outer),
            None => (ONE, &self.dims[..]),
        };
        let start = self.start::<S, C>();
        let runs = row.output.div_ceil(RUN);
        let rows: usize = outer.iter().map(|d| d.output).product();
        for index in ctx.share(rows * runs, 1) {
            let first = index % runs * RUN;
            let len = RUN.min(row.output - first);
            let mut sums = [start; RUN];
            let mut position = [0; MAX_RANK];
            let mut output = first as isize * row.output_stride;
            let mut rest = index / runs;
            for (d, dim) in outer.iter().enumerate().rev() {
                position[d] = rest % dim.output;
                output += position[d] as isize * dim.output_stride;
                rest /= dim.output;
            }
            // SAFETY: rows of windows lie inside the declared accesses; runs of threads are disjoint.
            unsafe {
                let input = ctx.pointer::<S>(self.input).cast_const();
                for_each_window_row(outer, &position, &mut |offset| {
                    fold_row::<S, C>(&row, input.offset(offset), first, &mut sums[..len]);
                });
                let output = ctx.pointer::<S>(self.output).offset(output);
                for (i, &sum) in sums[..len].iter().enumerate() {
                    *output.offset(i as isize * row.output_stride) = S::store(sum);
                }
            }
        }
    }
}

/// Calls with the input offset of every window position of the outer dimensions that holds an element, in order.
fn for_each_window_row(outer: &[WindowDim], position: &[usize; MAX_RANK], call: &mut dyn FnMut(isize)) {
    fn descend(outer: &[WindowDim], position: &[usize], offset: isize, call: &mut dyn FnMut(isize)) {
        let Some((dim, inner)) = outer.split_first() else {
            return call(offset);
        };
        for w in 0..dim.size {
            let at = (position[0] * dim.stride + w * dim.window_dilation) as isize - dim.padding_low;
            let dilation = dim.base_dilation as isize;
            if at >= 0 && at % dilation == 0 && at / dilation < dim.input as isize {
                descend(inner, &position[1..], offset + at / dilation * dim.input_stride, call);
            }
        }
    }
    descend(outer, position, 0, call);
}

/// Folds one row of input into the windows from `first` on.
unsafe fn fold_row<S: Stored, C: Combine<S::Lane>>(
    row: &WindowDim,
    input: *const S,
    first: usize,
    sums: &mut [S::Lane],
) {
    for w in 0..row.size {
        // Window i of the run meets its element w at `start + i·stride` of the dilated input.
        let start = (first * row.stride + w * row.window_dilation) as isize - row.padding_low;
        let (stride, dilation) = (row.stride as isize, row.base_dilation as isize);
        let reach = (row.input as isize - 1) * dilation - start;
        let skip = (-start).max(0).unsigned_abs().div_ceil(row.stride).min(sums.len());
        let end = if reach < 0 { 0 } else { (reach / stride + 1) as usize };
        let valid = skip..end.clamp(skip, sums.len());
        if dilation == 1 {
            let step = stride * row.input_stride;
            let offset = (start + valid.start as isize * stride) * row.input_stride;
            let sums = &mut sums[valid];
            // SAFETY: valid windows meet elements inside the input.
            unsafe {
                match step {
                    1 => fold::<S, C>(input.offset(offset), 1, sums),
                    2 => fold::<S, C>(input.offset(offset), 2, sums),
                    _ => fold::<S, C>(input.offset(offset), step, sums),
                }
            }
        } else {
            for i in valid {
                let at = start + i as isize * stride;
                if at % dilation == 0 {
                    // SAFETY: as above.
                    let element = unsafe { *input.offset(at / dilation * row.input_stride) };
                    sums[i] = C::combine(sums[i], element.load());
                }
            }
        }
    }
}

/// Combines element `i · step` into sum `i`.
#[inline(always)]
unsafe fn fold<S: Stored, C: Combine<S::Lane>>(input: *const S, step: isize, sums: &mut [S::Lane]) {
    for (i, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's elements lie inside the input.
        *sum = C::combine(*sum, unsafe { *input.offset(i as isize * step) }.load());
    }
}
