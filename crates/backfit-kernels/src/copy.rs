//! Strided copies and fills.

use crate::context::{Access, Addr, Context};
use crate::strided::{self, Axis, MAX_RANK, Walk};

/// Copies elements between two strided regions that do not overlap: transposition, broadcast, slice, reversal, interior padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Size of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output element at index 0 of every axis.
    pub output: Addr,
    /// The axes, in any order. No two output elements may have the same address.
    pub axes: Vec<Axis>,
}

/// Writes one value over a strided region.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// Size of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// The element, in the low bytes.
    pub bits: u64,
    /// Address of the element at index 0 of every axis.
    pub output: Addr,
    /// Size and stride in elements of each axis.
    pub axes: Vec<(usize, isize)>,
}

/// Elements of an innermost run that a thread takes at once.
const RUN: usize = 8192;
/// Side of a block of a transposition.
const BLOCK: usize = 16;

/// Runs the body with `$t` standing for an unsigned integer of that size.
macro_rules! with_bits {
    ($bytes:expr, $t:ident => $body:expr) => {
        match $bytes {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}

/// Axes in a good order for writing, merged where both sides allow: a loop nest whose last axis is the innermost.
struct Nest {
    rank: usize,
    axes: [Axis; MAX_RANK],
}

impl Nest {
    fn new(axes: &[Axis]) -> Nest {
        const UNIT: Axis = Axis { size: 1, input: 1, output: 1 };
        let mut nest = Nest { rank: 0, axes: [UNIT; MAX_RANK] };
        for &axis in axes.iter().filter(|axis| axis.size != 1) {
            // Insertion by output stride, the greatest first.
            let mut place = nest.rank;
            while place > 0 && nest.axes[place - 1].output.unsigned_abs() < axis.output.unsigned_abs() {
                nest.axes[place] = nest.axes[place - 1];
                place -= 1;
            }
            nest.axes[place] = axis;
            nest.rank += 1;
        }
        let mut kept = 0;
        for i in 1..nest.rank {
            let (outer, inner) = (nest.axes[kept], nest.axes[i]);
            let reach = |stride: isize| stride.checked_mul(inner.size as isize);
            if reach(inner.input) == Some(outer.input) && reach(inner.output) == Some(outer.output) {
                nest.axes[kept] = Axis { size: outer.size * inner.size, ..inner };
            } else {
                kept += 1;
                nest.axes[kept] = inner;
            }
        }
        nest.rank = nest.rank.min(kept + 1);
        nest
    }

    /// Takes the innermost axis out.
    fn pop(&mut self) -> Axis {
        self.take(self.rank.saturating_sub(1))
    }

    fn take(&mut self, place: usize) -> Axis {
        let axis = self.axes[place];
        self.axes.copy_within(place + 1.., place);
        self.rank = self.rank.saturating_sub(1);
        axis
    }

    /// Number of indices of the axes that are left, and a walk over them.
    fn walk(&self) -> (usize, Walk<2>) {
        let axes = &self.axes[..self.rank];
        let count = axes.iter().map(|axis| axis.size).product();
        (count, Walk::new(axes.iter().map(|axis| (axis.size, [axis.input, axis.output]))))
    }
}

/// Calls `visit(outer offsets, part of the inner range)` for this thread's share of `outer × inner`.
fn each_run(
    ctx: &Context,
    nest: &Nest,
    inner: usize,
    grain: usize,
    mut visit: impl FnMut([isize; 2], std::ops::Range<usize>),
) {
    let (outer, mut walk) = nest.walk();
    let runs = inner.div_ceil(grain);
    let share = ctx.share(outer * runs, 1);
    if share.is_empty() {
        return;
    }
    walk.seek(share.start / runs);
    for number in share {
        let start = number % runs * grain;
        visit(walk.offsets, start..inner.min(start + grain));
        if number % runs == runs - 1 {
            walk.advance();
        }
    }
}

impl Copy {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.regions().into_iter().flatten().for_each(push);
    }

    fn regions(&self) -> [Result<Access, String>; 2] {
        let input = self.axes.iter().map(|axis| (axis.size, axis.input));
        let output = self.axes.iter().map(|axis| (axis.size, axis.output));
        [
            strided::access(self.input, self.elem_bytes, input, false),
            strided::access(self.output, self.elem_bytes, output, true),
        ]
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        check(self.elem_bytes, self.axes.iter().map(|axis| axis.size))?;
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
        if self.axes.iter().any(|axis| axis.size == 0) {
            return;
        }
        with_bits!(self.elem_bytes, T => {
            // SAFETY: the accesses cover every index of the axes.
            unsafe { copy::<T>(ctx, ctx.pointer(self.input), ctx.pointer(self.output), Nest::new(&self.axes)) }
        });
    }
}

unsafe fn copy<T: std::marker::Copy>(ctx: &Context, input: *const T, output: *mut T, mut nest: Nest) {
    let inner = nest.pop();
    let crossing = nest.axes[..nest.rank].iter().position(|axis| axis.input == 1);
    if let (Some(place), true) = (crossing, inner.output == 1 && inner.input.unsigned_abs() > 1) {
        let across = nest.take(place);
        return each_run(ctx, &nest, across.size, BLOCK, |[from, to], range| {
            let (from, to) = (from + range.start as isize, to + range.start as isize * across.output);
            // SAFETY: the indices lie within the axes, whose regions were validated.
            unsafe { transpose(input.offset(from), output.offset(to), range.len(), across.output, inner) }
        });
    }
    each_run(ctx, &nest, inner.size, RUN, |[from, to], range| {
        // SAFETY: as above. `copy` allows for regions that overlap in spite of the contract.
        unsafe {
            let from = input.offset(from + range.start as isize * inner.input);
            let to = output.offset(to + range.start as isize * inner.output);
            match (inner.input, inner.output) {
                (1, 1) => std::ptr::copy(from, to, range.len()),
                (0, 1) => {
                    let value = *from;
                    std::slice::from_raw_parts_mut(to, range.len()).fill(value);
                }
                (i, o) => {
                    for k in 0..range.len() as isize {
                        *to.offset(k * o) = *from.offset(k * i);
                    }
                }
            }
        }
    });
}

/// Copies `rows × columns`: rows are neighbours in the input, columns in the output.
unsafe fn transpose<T: std::marker::Copy>(
    input: *const T,
    output: *mut T,
    rows: usize,
    row_stride: isize,
    columns: Axis,
) {
    let mut start = 0;
    while start < columns.size {
        let width = BLOCK.min(columns.size - start);
        for r in 0..rows {
            for c in start..start + width {
                // SAFETY: `r` and `c` lie within the axes.
                unsafe {
                    *output.offset(r as isize * row_stride + c as isize) =
                        *input.offset(r as isize + c as isize * columns.input);
                }
            }
        }
        start += width;
    }
}

impl Fill {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.region().into_iter().for_each(push);
    }

    fn region(&self) -> Result<Access, String> {
        strided::access(self.output, self.elem_bytes, self.axes.iter().copied(), true)
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        check(self.elem_bytes, self.axes.iter().map(|axis| axis.0))?;
        self.region().map(|_| ())
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
        if self.axes.iter().any(|axis| axis.0 == 0) {
            return;
        }
        let mut axes = [Axis { size: 1, input: 0, output: 0 }; MAX_RANK];
        for (axis, &(size, stride)) in axes.iter_mut().zip(&self.axes) {
            *axis = Axis { size, input: 0, output: stride };
        }
        let mut nest = Nest::new(&axes[..self.axes.len()]);
        let inner = nest.pop();
        with_bits!(self.elem_bytes, T => {
            let value = self.bits as T;
            // SAFETY: the access covers every index of the axes.
            let output = unsafe { ctx.pointer::<T>(self.output) };
            each_run(ctx, &nest, inner.size, RUN, |[_, to], range| {
                // SAFETY: as above.
                unsafe {
                    let to = output.offset(to + range.start as isize * inner.output);
                    if inner.output == 1 {
                        std::slice::from_raw_parts_mut(to, range.len()).fill(value);
                    } else {
                        (0..range.len() as isize).for_each(|k| *to.offset(k * inner.output) = value);
                    }
                }
            });
        });
    }
}

fn check(elem_bytes: usize, sizes: impl ExactSizeIterator<Item = usize>) -> Result<(), String> {
    if ![1, 2, 4, 8].contains(&elem_bytes) {
        return Err(format!("elements of {elem_bytes} bytes"));
    }
    if sizes.len() > MAX_RANK {
        return Err(format!("{} axes, above {MAX_RANK}", sizes.len()));
    }
    strided::product(sizes).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Random, addr, run};

    fn naive(copy: &Copy, memory: &mut [u8]) {
        let count: usize = copy.axes.iter().map(|axis| axis.size).product();
        for number in 0..count {
            let (mut rest, mut from, mut to) = (number, 0, 0);
            for axis in copy.axes.iter().rev() {
                from += (rest % axis.size) as isize * axis.input;
                to += (rest % axis.size) as isize * axis.output;
                rest /= axis.size;
            }
            let bytes = copy.elem_bytes;
            let at = |addr: Addr, offset: isize| addr.offset.wrapping_add_signed(offset * bytes as isize);
            let from = at(copy.input, from);
            memory.copy_within(from..from + bytes, at(copy.output, to));
        }
    }

    #[test]
    fn copies_equal_a_loop_over_indices() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let rank = random.below(4);
            let sizes: Vec<usize> = (0..rank).map(|_| 1 + random.below(24)).collect();
            let elem_bytes = 1 << random.below(4);
            // A permuted contiguous input, with some axes broadcast or reversed; a contiguous output with gaps.
            let mut order: Vec<usize> = (0..rank).collect();
            (0..rank).for_each(|i| order.swap(i, random.below(i + 1)));
            let mut axes = vec![Axis { size: 1, input: 0, output: 0 }; rank];
            let (mut step, mut start) = (1, 0);
            for &i in &order {
                let kind = random.below(4);
                axes[i].input = [step, step, 0, -step][kind];
                start += if kind == 3 { (sizes[i] as isize - 1) * step } else { 0 };
                step *= sizes[i] as isize;
            }
            let mut out = 1 + random.below(2) as isize;
            for i in (0..rank).rev() {
                axes[i].size = sizes[i];
                axes[i].output = out;
                out *= (sizes[i] + random.below(2)) as isize;
            }
            let region = step as usize * elem_bytes;
            let output = region.next_multiple_of(8);
            let input = addr(start as usize * elem_bytes);
            let copy = Copy { elem_bytes, input, output: addr(output), axes };
            let mut memory = vec![0; output + out as usize * elem_bytes + 8];
            memory[..region].iter_mut().for_each(|b| *b = random.below(256) as u8);
            let got = run(vec![copy.clone().into()], &memory);
            naive(&copy, &mut memory);
            assert_eq!(got, memory, "{copy:?}");
        }
    }

    #[test]
    fn fills_write_every_index_and_nothing_else() {
        let fill = Fill { elem_bytes: 4, bits: 0x0403_0201, output: addr(8), axes: vec![(2, 5), (3, 1)] };
        let got = run(vec![fill.into()], &[0; 64]);
        let words: Vec<u32> = got.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        let x = 0x0403_0201;
        assert_eq!(words, [0, 0, x, x, x, 0, 0, x, x, x, 0, 0, 0, 0, 0, 0]);
    }
}
