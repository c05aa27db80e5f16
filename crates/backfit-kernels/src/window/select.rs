//! Select and scatter: the gradient of max-pooling.

use super::check_sizes;
use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::fold::{Combine, Sum};
use crate::gemm::check_distinct;
use crate::stored::{Stored, with_stored};
use crate::strided::{self, MAX_RANK, Walk};
use std::hint::select_unpredictable;

/// Which element of a window is selected. The first wins among equals; the first NaN wins over all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The first greatest (comparison `ge`).
    Max,
    /// The first least (comparison `le`).
    Min,
}

/// One dimension of a select-and-scatter; a dimension without windows has size and stride 1.
///
/// Window `s` holds the positions `s·stride + w − padding_low` of the operand; those outside are never selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectDim {
    /// Extent of operand and output.
    pub operand: usize,
    /// Extent of the source: the number of windows.
    pub source: usize,
    /// Elements of a window.
    pub size: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Positions before the first operand element; negative crops.
    pub padding_low: isize,
    /// Positions between neighbouring window elements, at least 1.
    pub window_dilation: usize,
    /// Elements between neighbours in the operand.
    pub operand_stride: isize,
    /// Elements between neighbours in the source.
    pub source_stride: isize,
    /// Elements between neighbours in the output.
    pub output_stride: isize,
}

/// Fills `output` with zeros, then, window by window in row-major order, adds the window's source element to the output
/// at the position of the operand element that the window selects. f16 and bf16 are rounded after each addition.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectAndScatter {
    /// Which element of a window is selected.
    pub select: Select,
    /// How elements are stored, in all three.
    pub elem: Elem,
    /// Operand element 0.
    pub operand: Addr,
    /// Source element 0.
    pub source: Addr,
    /// Output element 0. Its elements must not overlap.
    pub output: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SelectDim>,
}

/// Windowed dimensions that are offered.
const MAX_WINDOWED: usize = 3;

const ONE: SelectDim = SelectDim {
    operand: 1,
    source: 1,
    size: 1,
    stride: 1,
    padding_low: 0,
    window_dilation: 1,
    operand_stride: 0,
    source_stride: 0,
    output_stride: 0,
};

impl SelectDim {
    /// Whether windows hold one element each, their own.
    fn is_plain(&self) -> bool {
        self.size == 1 && self.stride == 1 && self.padding_low == 0 && self.operand == self.source
    }

    /// The operand positions of window `s`.
    fn window(&self, s: usize) -> Window {
        let start = (s * self.stride) as isize - self.padding_low;
        let step = self.window_dilation as isize;
        let last = start + (self.size as isize - 1) * step;
        if start >= 0 && last < self.operand as isize {
            return Window { start, count: self.size };
        }
        let skipped = (-start).max(0).unsigned_abs().div_ceil(self.window_dilation);
        let start = start + skipped as isize * step;
        let inside = (self.operand as isize - start).max(0).unsigned_abs().div_ceil(self.window_dilation);
        Window { start, count: inside.min(self.size.saturating_sub(skipped)) }
    }
}

/// Positions of a window's elements along a dimension, `window_dilation` apart.
#[derive(Clone, Copy)]
struct Window {
    start: isize,
    count: usize,
}

impl SelectAndScatter {
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
        if self.dims.iter().filter(|d| !d.is_plain()).count() > MAX_WINDOWED {
            return Err(format!("more than {MAX_WINDOWED} dimensions with windows"));
        }
        for d in &self.dims {
            if d.stride == 0 || d.window_dilation == 0 {
                return Err("strides and dilations of windows are at least 1".into());
            }
            check_sizes([d.operand, d.source, d.size.saturating_mul(d.window_dilation), d.stride], d.padding_low)?;
        }
        self.regions()?;
        check_distinct(self.dims.iter().map(|d| (d.operand, d.output_stride)).collect())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    fn regions(&self) -> Result<[Access; 3], String> {
        strided::product(self.dims.iter().map(|d| d.operand))?;
        strided::product(self.dims.iter().map(|d| d.source))?;
        let bytes = self.elem.size();
        let operand = self.dims.iter().map(|d| (d.operand, d.operand_stride));
        let source = self.dims.iter().map(|d| (d.source, d.source_stride));
        let output = self.dims.iter().map(|d| (d.operand, d.output_stride));
        Ok([
            strided::access(self.operand, bytes, operand, false)?,
            strided::access(self.source, bytes, source, false)?,
            strided::access(self.output, bytes, output, true)?,
        ])
    }

    /// Computes this thread's part: threads share the positions of the dimensions without windows.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        with_stored!(self.elem, S => {
            // SAFETY: the caller's promise.
            unsafe {
                match self.select {
                    Select::Max => self.run_as::<S>(ctx, |new, old| new > old),
                    Select::Min => self.run_as::<S>(ctx, |new, old| new < old),
                }
            }
        });
    }

    unsafe fn run_as<S: Stored>(&self, ctx: &Context, better: impl Fn(S::Lane, S::Lane) -> bool)
    where
        S::Lane: PartialOrd,
        Sum: Combine<S::Lane>,
    {
        let plain = || self.dims.iter().filter(|d| d.is_plain());
        let mut windowed = [ONE; MAX_WINDOWED];
        // The last dimension, whose neighbours are nearest, comes last, where the loops are innermost.
        for (slot, dim) in windowed.iter_mut().rev().zip(self.dims.iter().rev().filter(|d| !d.is_plain())) {
            *slot = *dim;
        }
        let planes: usize = plain().map(|d| d.operand).product();
        let mut walk = Walk::new(plain().map(|d| (d.operand, [d.operand_stride, d.source_stride, d.output_stride])));
        let mine = ctx.share(planes, 1);
        walk.seek(mine.start);
        for _ in mine {
            let [operand, source, output] = walk.offsets;
            // SAFETY: offsets of elements lie inside the declared accesses; planes of threads are disjoint.
            unsafe {
                let plane = Plane {
                    dims: &windowed,
                    operand: ctx.pointer::<S>(self.operand).offset(operand),
                    source: ctx.pointer::<S>(self.source).offset(source),
                    output: ctx.pointer::<S>(self.output).offset(output),
                };
                plane.clear();
                plane.scatter(&better);
            }
            walk.advance();
        }
    }
}

/// The windowed dimensions at one position of the others.
struct Plane<'a, S> {
    dims: &'a [SelectDim; MAX_WINDOWED],
    operand: *const S,
    source: *const S,
    output: *mut S,
}

impl<S: Stored> Plane<'_, S>
where
    S::Lane: PartialOrd,
    Sum: Combine<S::Lane>,
{
    /// Fills the output with zeros.
    unsafe fn clear(&self) {
        let [a, b, c] = self.dims;
        for z in 0..a.operand as isize {
            for y in 0..b.operand as isize {
                let row = z * a.output_stride + y * b.output_stride;
                for x in 0..c.operand as isize {
                    // SAFETY: the element lies inside the output.
                    unsafe { *self.output.offset(row + x * c.output_stride) = S::store(Sum::NEUTRAL) };
                }
            }
        }
    }

    /// Adds every source element where its window selects.
    unsafe fn scatter(&self, better: &impl Fn(S::Lane, S::Lane) -> bool) {
        let [a, b, c] = self.dims;
        for z in 0..a.source {
            let zs = a.window(z);
            for y in 0..b.source {
                let ys = b.window(y);
                let row = z as isize * a.source_stride + y as isize * b.source_stride;
                for x in 0..c.source {
                    let xs = c.window(x);
                    let start = [zs.start, ys.start, xs.start];
                    // SAFETY: windows are cut to the operand; the source element lies inside the source.
                    unsafe {
                        // Known numbers of elements let the compiler unroll the loops.
                        let selected = match [zs.count, ys.count, xs.count] {
                            [1, 2, 2] => self.select(start, [1, 2, 2], better),
                            [1, 3, 3] => self.select(start, [1, 3, 3], better),
                            counts if counts.contains(&0) => continue,
                            counts => self.select(start, counts, better),
                        };
                        let add = (*self.source.offset(row + x as isize * c.source_stride)).load();
                        let to = self.output.offset(selected);
                        *to = S::store(Sum::combine((*to).load(), add));
                    }
                }
            }
        }
    }

    /// Offset in the output of the element that a window, which must not be empty, selects.
    #[inline(always)]
    unsafe fn select(
        &self,
        start: [isize; 3],
        counts: [usize; 3],
        better: &impl Fn(S::Lane, S::Lane) -> bool,
    ) -> isize {
        let [a, b, c] = self.dims;
        let at = |strides: [isize; 3]| start[0] * strides[0] + start[1] * strides[1] + start[2] * strides[2];
        let operand = at([a.operand_stride, b.operand_stride, c.operand_stride]);
        let output = at([a.output_stride, b.output_stride, c.output_stride]);
        let step = |dim: &SelectDim, stride: isize, at: usize| (at * dim.window_dilation) as isize * stride;
        // SAFETY: the caller's windows lie inside the operand.
        let value = |at: isize| unsafe { *self.operand.offset(at) }.load();
        let (mut best, mut selected) = (value(operand), output);
        for z in 0..counts[0] {
            for y in 0..counts[1] {
                let from = operand + step(a, a.operand_stride, z) + step(b, b.operand_stride, y);
                let to = output + step(a, a.output_stride, z) + step(b, b.output_stride, y);
                for x in 0..counts[2] {
                    let (new, place) = (value(from + step(c, c.operand_stride, x)), to + step(c, c.output_stride, x));
                    let wins = better(new, best) | (is_nan(new) & !is_nan(best));
                    best = select_unpredictable(wins, new, best);
                    selected = select_unpredictable(wins, place, selected);
                }
            }
        }
        selected
    }
}

/// Whether a value differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
fn is_nan<T: PartialOrd>(value: T) -> bool {
    value != value
}
