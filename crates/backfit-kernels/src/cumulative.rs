//! Running sums, products, maxima and minima.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::fold::{Combine, is_bitwise, of_bool, with_float_combine, with_integer_combine};
use crate::stored::{Stored, with_stored};
use crate::strided::{self, Axis, MAX_RANK, Walk};
use crate::tile::Reduction;

/// Combines along an axis, keeping every intermediate result. The order is that of the axis (or against it, if `reverse`).
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulative {
    /// Sum, Product, Max or Min.
    pub op: Reduction,
    /// Type of input and output. f16 and bf16 are accumulated in f32 and rounded when written.
    pub elem: Elem,
    /// From the last element to the first.
    pub reverse: bool,
    /// Each result leaves out its own element; the first is the operation's neutral value.
    pub exclusive: bool,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output element at index 0 of every axis; it may be that of the input, with the same strides.
    pub output: Addr,
    /// The other axes.
    pub outer: Vec<Axis>,
    /// The axis to combine along.
    pub axis: Axis,
}

impl Cumulative {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.regions().into_iter().flatten().for_each(push);
    }

    fn regions(&self) -> [Result<Access, String>; 2] {
        let axes = self.outer.iter().chain([&self.axis]);
        let size = self.elem.size();
        [
            strided::access(self.input, size, axes.clone().map(|a| (a.size, a.input)), false),
            strided::access(self.output, size, axes.map(|a| (a.size, a.output)), true),
        ]
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        if is_bitwise(self.op) && self.elem.is_float() || self.outer.len() > MAX_RANK {
            return Err("a running bitwise operation on floats, or too many axes".into());
        }
        strided::product(self.outer.iter().map(|a| a.size).chain([self.axis.size]))?;
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
        let lines: usize = self.outer.iter().map(|a| a.size).product();
        let share = ctx.share(lines, 1);
        if share.is_empty() || self.axis.size == 0 {
            return;
        }
        let mut walk = Walk::new(self.outer.iter().map(|a| (a.size, [a.input, a.output])));
        walk.seek(share.start);
        for _ in share {
            // SAFETY: the accesses cover every line.
            unsafe {
                if self.elem == Elem::Bool {
                    let op = of_bool(self.op);
                    with_integer_combine!(op, C => self.line::<crate::stored::Bool, C>(ctx, walk.offsets));
                } else if is_bitwise(self.op) {
                    // Bits are bits: the sign does not matter.
                    match self.elem.size() {
                        1 => with_integer_combine!(self.op, C => self.line::<u8, C>(ctx, walk.offsets)),
                        2 => with_integer_combine!(self.op, C => self.line::<u16, C>(ctx, walk.offsets)),
                        4 => with_integer_combine!(self.op, C => self.line::<u32, C>(ctx, walk.offsets)),
                        _ => with_integer_combine!(self.op, C => self.line::<u64, C>(ctx, walk.offsets)),
                    }
                } else {
                    with_stored!(self.elem, S => with_float_combine!(self.op, C => self.line::<S, C>(ctx, walk.offsets)));
                }
            }
            walk.advance();
        }
    }

    /// The neutral element as it is stored: the lane of a narrow integer reaches further than the integer itself.
    fn neutral<S: Stored>(&self, lane: S::Lane) -> S {
        let extreme: Option<i64> = match (self.op, self.elem) {
            (Reduction::Max, Elem::I8) => Some(i8::MIN.into()),
            (Reduction::Min, Elem::I8) => Some(i8::MAX.into()),
            (Reduction::Max, Elem::I16) => Some(i16::MIN.into()),
            (Reduction::Min, Elem::I16) => Some(i16::MAX.into()),
            (Reduction::Max, Elem::U8 | Elem::U16) => Some(0),
            (Reduction::Min, Elem::U8 | Elem::U16) => Some(-1),
            _ => None,
        };
        match extreme {
            // SAFETY: these element types are plain integers as wide as `size_of::<S>()` says, at most 8 bytes.
            Some(bits) => unsafe { std::ptr::from_ref(&bits.to_le()).cast::<S>().read_unaligned() },
            None => S::store(lane),
        }
    }

    unsafe fn line<S: Stored, C: Combine<S::Lane>>(&self, ctx: &Context, [from, to]: [isize; 2]) {
        let neutral = self.neutral::<S>(C::NEUTRAL);
        let mut running = C::NEUTRAL;
        for step in 0..self.axis.size as isize {
            let i = if self.reverse { self.axis.size as isize - 1 - step } else { step };
            // SAFETY: the index lies in the axis. Each element is read before its place is written.
            unsafe {
                let x = (*ctx.pointer::<S>(self.input).offset(from + i * self.axis.input)).load();
                let with = C::combine(running, x);
                let out = ctx.pointer::<S>(self.output).offset(to + i * self.axis.output);
                *out = match (self.exclusive, step) {
                    (true, 0) => neutral,
                    (true, _) => S::store(running),
                    (false, _) => S::store(with),
                };
                running = with;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{addr, bytes_of, run, values_of};

    #[test]
    fn running_results_equal_a_loop() {
        // Three rows of four, along the rows or the columns.
        let x: Vec<f32> = vec![1.0, -2.0, 3.5, 0.25, 4.0, 4.0, -1.0, 2.0, 0.5, f32::NAN, 1.0, 1.0];
        let axes = [Axis { size: 3, input: 4, output: 4 }, Axis { size: 4, input: 1, output: 1 }];
        for (reverse, exclusive, along, op) in [
            (false, false, 1, Reduction::Sum),
            (true, false, 0, Reduction::Product),
            (false, true, 1, Reduction::Max),
            (true, true, 0, Reduction::Min),
        ] {
            let mut memory = bytes_of!(x);
            memory.resize(96, 0);
            let c = Cumulative {
                op,
                elem: Elem::F32,
                reverse,
                exclusive,
                input: addr(0),
                output: addr(48),
                outer: vec![axes[1 - along]],
                axis: axes[along],
            };
            let got = values_of!(f32, run(vec![c.into()], &memory)[48..]);
            for line in 0..axes[1 - along].size {
                let mut running = match op {
                    Reduction::Sum => 0.0,
                    Reduction::Product => 1.0,
                    Reduction::Max => f32::NEG_INFINITY,
                    _ => f32::INFINITY,
                };
                let size = axes[along].size;
                for i in 0..size {
                    let i = if reverse { size - 1 - i } else { i };
                    let at = if along == 1 { line * 4 + i } else { i * 4 + line };
                    let with = match op {
                        Reduction::Sum => running + x[at],
                        Reduction::Product => running * x[at],
                        Reduction::Max if x[at].is_nan() => f32::NAN,
                        Reduction::Max if !running.is_nan() => running.max(x[at]),
                        Reduction::Min if x[at].is_nan() => f32::NAN,
                        Reduction::Min if !running.is_nan() => running.min(x[at]),
                        _ => running,
                    };
                    let want = if exclusive { running } else { with };
                    assert!(got[at] == want || got[at].is_nan() && want.is_nan(), "{op:?} at {at}");
                    running = with;
                }
            }
        }
    }
}
