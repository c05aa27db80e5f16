//! Index of the greatest or least element along an axis.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::stored::{Stored, with_stored};
use crate::strided::{self, MAX_RANK, Walk};

/// For every index of the `kept` axes, the first position of the greatest (or least) element along an axis; the first NaN wins.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgReduce {
    /// Greatest instead of least.
    pub max: bool,
    /// Type of the input.
    pub elem: Elem,
    /// Type of the output: I32 or I64.
    pub index: Elem,
    /// Address of the input element at index 0 of every axis.
    pub input: Addr,
    /// Address of the output, which is contiguous in the order of `kept`.
    pub output: Addr,
    /// Size and input stride in elements of the kept axes, outermost first.
    pub kept: Vec<(usize, isize)>,
    /// Size of the searched axis, at least 1.
    pub size: usize,
    /// Input stride of the searched axis, in elements.
    pub stride: isize,
}

impl ArgReduce {
    /// Declares what it touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.regions().into_iter().flatten().for_each(push);
    }

    fn regions(&self) -> [Result<Access, String>; 2] {
        let axes = self.kept.iter().copied().chain([(self.size, self.stride)]);
        let count = strided::product(self.kept.iter().map(|k| k.0)).unwrap_or(usize::MAX);
        [
            strided::access(self.input, self.elem.size(), axes, false),
            strided::access(self.output, self.index.size(), [(count, 1)].into_iter(), true),
        ]
    }

    /// Checks that it is consistent in itself.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.index, Elem::I32 | Elem::I64) {
            return Err(format!("indices of {:?}", self.index));
        }
        if self.size == 0 || (self.index == Elem::I32 && self.size > i32::MAX as usize) {
            return Err(format!("an axis of {} to search", self.size));
        }
        if self.kept.len() > MAX_RANK {
            return Err(format!("{} axes, above {MAX_RANK}", self.kept.len()));
        }
        strided::product(self.kept.iter().map(|k| k.0).chain([self.size]))?;
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
        let share = ctx.share(self.kept.iter().map(|k| k.0).product(), 8);
        let mut walk = Walk::new(self.kept.iter().map(|&(size, stride)| (size, [stride])));
        if share.is_empty() {
            return;
        }
        walk.seek(share.start);
        for number in share {
            // SAFETY: the accesses cover every line, and the output every number.
            unsafe {
                let best = with_stored!(self.elem, S => {
                    self.search::<S>(ctx.pointer::<S>(self.input).offset(walk.offsets[0]))
                });
                if self.index == Elem::I32 {
                    *ctx.pointer::<i32>(self.output).add(number) = best as i32;
                } else {
                    *ctx.pointer::<i64>(self.output).add(number) = best as i64;
                }
            }
            walk.advance();
        }
    }

    unsafe fn search<S: Stored<Lane: PartialOrd>>(&self, line: *const S) -> usize {
        // SAFETY: the caller promises a line of the searched axis.
        let at = |i: usize| unsafe { (*line.offset(i as isize * self.stride)).load() };
        let is_nan = |x: &S::Lane| x.partial_cmp(x).is_none();
        let (mut best, mut value) = (0, at(0));
        for i in 1..self.size {
            if is_nan(&value) {
                break;
            }
            let x = at(i);
            if is_nan(&x) || (if self.max { x > value } else { x < value }) {
                (best, value) = (i, x);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{addr, bytes_of, run, values_of};

    #[test]
    fn the_first_of_equals_and_the_first_nan_win() {
        let nan = f32::NAN;
        let x = [1.0f32, 5.0, 5.0, -2.0, 0.0, nan, 7.0, nan, -1.0, -1.0, 3.0, 3.0];
        let mut memory = bytes_of!(x);
        memory.resize(48 + 24, 0);
        for (max, want) in [(true, [1i64, 1, 2]), (false, [3, 1, 0])] {
            let kept = vec![(3, 4)];
            let arg = ArgReduce {
                max,
                elem: Elem::F32,
                index: Elem::I64,
                input: addr(0),
                output: addr(48),
                kept,
                size: 4,
                stride: 1,
            };
            assert_eq!(values_of!(i64, run(vec![arg.into()], &memory)[48..]), want);
        }
        // Along the columns, into i32.
        let kept = vec![(4, 1)];
        let arg = ArgReduce {
            max: true,
            elem: Elem::F32,
            index: Elem::I32,
            input: addr(0),
            output: addr(48),
            kept,
            size: 3,
            stride: 4,
        };
        assert_eq!(values_of!(i32, run(vec![arg.into()], &memory)[48..64]), [0, 1, 1, 1]);
    }

    #[test]
    fn unsigned_types_are_compared_without_sign() {
        let x = [1u32, 0xffff_ffff, 3, 4];
        let mut memory = bytes_of!(x);
        memory.resize(24, 0);
        let arg = ArgReduce {
            max: true,
            elem: Elem::U32,
            index: Elem::I32,
            input: addr(0),
            output: addr(16),
            kept: vec![],
            size: 4,
            stride: 1,
        };
        assert_eq!(values_of!(i32, run(vec![arg.into()], &memory)[16..20]), [1]);
    }
}
