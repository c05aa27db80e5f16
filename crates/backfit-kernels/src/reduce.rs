//! Reductions over any set of axes.

use crate::context::{Access, Addr, Context};
use crate::elem::{Elem, Lane};
use crate::fold::{self, BLOCK, Combine, Fold, LANES, fold_row, with_float_combine, with_integer_combine};
use crate::stored::{BF16, Bool, F16, Stored};
use crate::strided::{self, MAX_RANK, Walk};
pub use crate::tile::Reduction;
use crate::tile::write_lanes;

/// Combines elements along `reduced` axes for every index of the `kept` axes.
///
/// f16 and bf16 are accumulated in f32 and rounded at the end. The order is fixed by the number of reduced elements
/// (in the row-major order of `reduced`), whatever the strides.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// What to combine with.
    pub op: Reduction,
    /// Type of the input.
    pub elem: Elem,
    /// Type of the output: that of the input, or f32 for f16 and bf16.
    pub output_elem: Elem,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output, which is contiguous in the order of `kept`.
    pub output: Addr,
    /// Size and input stride in elements of the kept axes, outermost first.
    pub kept: Vec<(usize, isize)>,
    /// Size and input stride in elements of the reduced axes, outermost first.
    pub reduced: Vec<(usize, isize)>,
}

/// Columns that are reduced side by side.
const STRIP: usize = 64;

/// Merged axes: sizes and strides, outermost first.
struct Axes {
    rank: usize,
    axes: [(usize, isize); MAX_RANK],
}

impl Axes {
    fn merge(axes: &[(usize, isize)]) -> Axes {
        let mut merged = Axes { rank: 0, axes: [(1, 0); MAX_RANK] };
        for &(size, stride) in axes.iter().filter(|axis| axis.0 != 1) {
            if merged.rank > 0 {
                let last = &mut merged.axes[merged.rank - 1];
                if stride.checked_mul(size as isize) == Some(last.1) {
                    *last = (last.0 * size, stride);
                    continue;
                }
            }
            merged.axes[merged.rank] = (size, stride);
            merged.rank += 1;
        }
        merged
    }

    fn all(&self) -> &[(usize, isize)] {
        &self.axes[..self.rank]
    }

    fn count(&self) -> usize {
        self.all().iter().map(|axis| axis.0).product()
    }

    fn walk(&self) -> Walk<1> {
        Walk::new(self.all().iter().map(|&(size, stride)| (size, [stride])))
    }

    /// Offset of the element with this row-major number.
    #[inline(always)]
    fn offset(&self, mut number: usize) -> isize {
        if let [(_, stride)] = *self.all() {
            return number as isize * stride;
        }
        let mut offset = 0;
        for &(size, stride) in self.all().iter().rev() {
            offset += (number % size) as isize * stride;
            number /= size;
        }
        offset
    }
}

impl Reduce {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.regions().into_iter().flatten().for_each(push);
    }

    fn regions(&self) -> [Result<Access, String>; 2] {
        let axes = self.kept.iter().chain(&self.reduced).copied();
        let count = strided::product(self.kept.iter().map(|k| k.0)).unwrap_or(usize::MAX);
        [
            strided::access(self.input, self.elem.size(), axes, false),
            strided::access(self.output, self.output_elem.size(), [(count, 1)].into_iter(), true),
        ]
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        let widens = self.output_elem == Elem::F32 && self.elem.lane() == Lane::F32;
        if self.output_elem != self.elem && !widens {
            return Err(format!("reduces {:?} to {:?}", self.elem, self.output_elem));
        }
        if self.elem.is_float() && fold::is_bitwise(self.op) {
            return Err("a bitwise reduction of floats".into());
        }
        if self.kept.len() > MAX_RANK || self.reduced.len() > MAX_RANK {
            return Err(format!("more than {MAX_RANK} axes"));
        }
        strided::product(self.kept.iter().chain(&self.reduced).map(|axis| axis.0))?;
        self.regions().into_iter().try_for_each(|region| region.map(|_| ()))
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Does this thread's part.
    ///
    /// # Safety
    /// As for [`Instruction::run`](crate::program::Instruction::run).
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise; the machine has `isa`.
        unsafe {
            match self.elem {
                Elem::F32 => with_float_combine!(self.op, C => reduce::<f32, C>(ctx.isa, self, ctx)),
                Elem::F16 => with_float_combine!(self.op, C => reduce::<F16, C>(ctx.isa, self, ctx)),
                Elem::BF16 => with_float_combine!(self.op, C => reduce::<BF16, C>(ctx.isa, self, ctx)),
                Elem::F64 => with_float_combine!(self.op, C => reduce_portable::<f64, C>(self, ctx)),
                Elem::I64 => with_integer_combine!(self.op, C => reduce_portable::<i64, C>(self, ctx)),
                Elem::U64 => with_integer_combine!(self.op, C => reduce_portable::<u64, C>(self, ctx)),
                Elem::I32 => with_integer_combine!(self.op, C => reduce_portable::<i32, C>(self, ctx)),
                Elem::U32 => with_integer_combine!(self.op, C => reduce_portable::<u32, C>(self, ctx)),
                Elem::I16 => with_integer_combine!(self.op, C => reduce_portable::<i16, C>(self, ctx)),
                Elem::U16 => with_integer_combine!(self.op, C => reduce_portable::<u16, C>(self, ctx)),
                Elem::I8 => with_integer_combine!(self.op, C => reduce_portable::<i8, C>(self, ctx)),
                Elem::U8 => with_integer_combine!(self.op, C => reduce_portable::<u8, C>(self, ctx)),
                Elem::Bool => {
                    with_integer_combine!(fold::of_bool(self.op), C => reduce_portable::<Bool, C>(self, ctx))
                }
            }
        }
    }

    /// Writes results from number `first` on.
    unsafe fn write<L>(&self, ctx: &Context, first: usize, values: &[L]) {
        // SAFETY: the caller has numbers of kept indices; the lanes are those of the type.
        unsafe {
            let output = ctx.pointer::<u8>(self.output).add(first * self.output_elem.size());
            write_lanes(ctx.isa, self.output_elem, values.as_ptr().cast(), output, values.len());
        }
    }
}

#[rustfmt::skip]
per_isa! { fn reduce<S: Stored, C: Combine<S::Lane>>(it: &Reduce, ctx: &Context) = reduce_body::<S, C> }

/// For types whose speed matters less. Each is a function of its own: inlined into one, they take the compiler minutes.
#[inline(never)]
unsafe fn reduce_portable<S: Stored, C: Combine<S::Lane>>(it: &Reduce, ctx: &Context) {
    // SAFETY: the caller's promise.
    unsafe { reduce_body::<S, C>(it, ctx) }
}

#[inline(always)]
unsafe fn reduce_body<S: Stored, C: Combine<S::Lane>>(it: &Reduce, ctx: &Context) {
    let (kept, reduced) = (Axes::merge(&it.kept), Axes::merge(&it.reduced));
    let beside = kept.all().last().is_some_and(|axis| axis.1 == 1);
    let in_line = reduced.all().last().is_none_or(|axis| axis.1 == 1);
    // SAFETY: the caller's promise.
    unsafe {
        if beside && !in_line {
            columns::<S, C>(it, ctx, &kept, &reduced);
        } else {
            rows::<S, C>(it, ctx, &kept, &reduced);
        }
    }
}

/// Each result by itself.
#[inline(always)]
unsafe fn rows<S: Stored, C: Combine<S::Lane>>(it: &Reduce, ctx: &Context, kept: &Axes, reduced: &Axes) {
    let share = ctx.share(kept.count(), 1);
    let count = reduced.count();
    if share.is_empty() {
        return;
    }
    let (mut line, mut walk) = (kept.walk(), reduced.walk());
    line.seek(share.start);
    let (length, stride) = reduced.all().last().copied().unwrap_or((1, 1));
    for number in share {
        // SAFETY: the access covers all indices; the walk stays within the reduced axes.
        unsafe {
            let start = ctx.pointer::<S>(it.input).offset(line.offsets[0]);
            let value = if count == 0 {
                C::NEUTRAL
            } else if stride == 1 && length == count {
                fold_row::<S, C>(std::slice::from_raw_parts(start, count))
            } else if stride == 1 {
                let mut fold = Fold::<S>::new::<C>();
                for row in (0..count).step_by(length) {
                    fold.extend::<C>(std::slice::from_raw_parts(start.offset(reduced.offset(row)), length));
                }
                fold.finish::<C>()
            } else {
                let mut fold = Fold::<S>::new::<C>();
                for _ in 0..count {
                    fold.push::<C>(*start.offset(walk.offsets[0]));
                    walk.advance();
                }
                fold.finish::<C>()
            };
            it.write(ctx, number, &[value]);
        }
        line.advance();
    }
}

/// Results whose inputs lie side by side, a strip of columns at a time.
#[inline(always)]
unsafe fn columns<S: Stored, C: Combine<S::Lane>>(it: &Reduce, ctx: &Context, kept: &Axes, reduced: &Axes) {
    let width = kept.axes[kept.rank - 1].0;
    let strips = width.div_ceil(STRIP);
    for number in ctx.share(kept.count() / width.max(1) * strips, 1) {
        let first = number / strips * width + number % strips * STRIP;
        let columns = STRIP.min(width - number % strips * STRIP);
        // SAFETY: the strip's columns lie within the last kept axis.
        unsafe {
            let start = ctx.pointer::<S>(it.input).offset(kept.offset(first));
            let values = if columns == STRIP {
                strip::<S, C>(start, reduced, STRIP)
            } else {
                strip::<S, C>(start, reduced, columns)
            };
            it.write(ctx, first, &values[..columns]);
        }
    }
}

/// The tree of [`fold`](crate::fold), for `width` columns at once.
#[inline(always)]
unsafe fn strip<S: Stored, C: Combine<S::Lane>>(start: *const S, reduced: &Axes, width: usize) -> [S::Lane; STRIP] {
    let count = reduced.count();
    let mut totals = [[C::NEUTRAL; STRIP]; LANES];
    for block in (0..count).step_by(BLOCK) {
        let end = count.min(block + BLOCK);
        for (lane, total) in totals.iter_mut().enumerate() {
            let mut sums = [C::NEUTRAL; STRIP];
            for row in (block + lane..end).step_by(LANES) {
                // SAFETY: the row is an index of the reduced axes, and `width` columns of it lie in the input.
                let row = unsafe { std::slice::from_raw_parts(start.offset(reduced.offset(row)), width) };
                for (sum, x) in sums[..width].iter_mut().zip(row) {
                    *sum = C::combine(*sum, x.load());
                }
            }
            for (total, sum) in total.iter_mut().zip(sums) {
                *total = C::combine(*total, sum);
            }
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = totals.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            for (a, b) in a.iter_mut().zip(b) {
                *a = C::combine(*a, *b);
            }
        }
        half /= 2;
    }
    totals[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Random, addr, bytes_of, run, values_of};

    /// Sum in f64, and the sum of magnitudes.
    fn exact(x: &[f32]) -> (f64, f64) {
        x.iter().fold((0.0, 0.0), |(s, m), &x| (s + f64::from(x), m + f64::from(x.abs())))
    }

    fn reduce(kept: Vec<(usize, isize)>, reduced: Vec<(usize, isize)>, output: usize) -> Reduce {
        let op = Reduction::Sum;
        Reduce { op, elem: Elem::F32, output_elem: Elem::F32, input: addr(0), output: addr(output), kept, reduced }
    }

    #[test]
    fn sums_of_rows_and_of_columns_have_the_same_bits_and_are_exact_enough() {
        let mut random = Random::new(3);
        for (rows, cols) in [(1, 1), (5, 33), (70, 16), (129, 2), (3, 2500), (17, 1024), (64, 300)] {
            let x: Vec<f32> = (0..rows * cols).map(|_| random.unit()).collect();
            let turned: Vec<f32> = (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect();
            let bytes = rows * cols * 4;
            let (r, c) = (rows as isize, cols as isize);
            let mut results = Vec::new();
            for (data, kept, reduced) in [(&x, (rows, c), (cols, 1)), (&turned, (rows, 1), (cols, r))] {
                let mut memory = bytes_of!(data);
                memory.resize(bytes + rows * 4, 0);
                let it = reduce(vec![kept], vec![reduced], bytes);
                results.push(values_of!(f32, run(vec![it.into()], &memory)[bytes..]));
            }
            for i in 0..rows {
                assert_eq!(results[0][i].to_bits(), results[1][i].to_bits());
                let (sum, magnitude) = exact(&x[i * cols..(i + 1) * cols]);
                assert!((f64::from(results[0][i]) - sum).abs() <= magnitude * 80.0 * 6e-8);
            }
        }
    }

    #[test]
    fn several_reduced_axes_are_one_in_row_major_order() {
        let mut random = Random::new(5);
        let (n, c, hw) = (5usize, 3usize, 70usize);
        let x: Vec<f32> = (0..n * c * hw).map(|_| random.unit()).collect();
        let bytes = x.len() * 4;
        let mut memory = bytes_of!(x);
        memory.resize(bytes + c * 4, 0);
        let (ci, hi) = (c as isize, hw as isize);
        let it = reduce(vec![(c, hi)], vec![(n, ci * hi), (hw, 1)], bytes);
        let got = values_of!(f32, run(vec![it.into()], &memory)[bytes..]);
        for channel in 0..c {
            let gathered: Vec<f32> = (0..n * hw).map(|i| x[i / hw * c * hw + channel * hw + i % hw]).collect();
            let mut memory = bytes_of!(gathered);
            memory.resize(n * hw * 4 + 4, 0);
            let it = reduce(vec![], vec![(n * hw, 1)], n * hw * 4);
            let one = values_of!(f32, run(vec![it.into()], &memory)[n * hw * 4..]);
            assert_eq!(one[0].to_bits(), got[channel].to_bits());
        }
    }

    #[test]
    fn nothing_gives_the_neutral_value_and_nan_wins() {
        let it = |op, reduced| Reduce { op, ..reduce(vec![], reduced, 16) };
        let memory = bytes_of!([1.0f32, f32::NAN, 3.0, 2.0, 9.0]);
        let value = |it: Reduce| values_of!(f32, run(vec![it.into()], &memory))[4];
        assert_eq!(value(it(Reduction::Max, vec![(0, 1)])), f32::NEG_INFINITY);
        assert_eq!(value(it(Reduction::Product, vec![(0, 1)])), 1.0);
        assert!(value(it(Reduction::Max, vec![(4, 1)])).is_nan());
        assert!(value(it(Reduction::Min, vec![(4, 1)])).is_nan());
        assert_eq!(value(it(Reduction::Min, vec![(2, 2)])), 1.0);
    }

    #[test]
    fn narrow_types_wrap_and_bools_combine_logically() {
        let memory: Vec<u8> = vec![200, 100, 0, 1, 0, 1, 0, 0];
        let it = |op, elem, at: usize, n| Reduce {
            op,
            elem,
            output_elem: elem,
            input: addr(at),
            ..reduce(vec![], vec![(n, 1)], 7)
        };
        let value = |it: Reduce| run(vec![it.into()], &memory)[7];
        assert_eq!(value(it(Reduction::Sum, Elem::U8, 0, 2)), 44);
        assert_eq!(value(it(Reduction::Max, Elem::I8, 0, 2)), 100);
        assert_eq!(value(it(Reduction::Sum, Elem::Bool, 2, 4)), 1);
        assert_eq!(value(it(Reduction::Product, Elem::Bool, 2, 4)), 0);
        assert_eq!(value(it(Reduction::Or, Elem::U8, 0, 2)), 236);
    }
}
