//! Scattering slices by index.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::fold::{Combine, Sum};
use crate::index::{check_index_elem, read_index};
use crate::stored::{Stored, with_stored};
use crate::strided;

/// What a scatter does with an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterOp {
    /// It replaces what is there; the last of several wins.
    Set,
    /// It is added (integers wrap; f16 and bf16 are rounded after each addition).
    Add,
}

/// `out[o, indices[i], j] op= updates[o, i, j]`, in ascending `i`, all dense. Updates whose index is out of range are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// What happens to an update.
    pub op: ScatterOp,
    /// How elements are stored.
    pub elem: Elem,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub axis_len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Indices, dense.
    pub indices: Addr,
    /// Integer type of the indices.
    pub index_elem: Elem,
    /// Number of indices.
    pub count: usize,
    /// Updates, outer × count × inner.
    pub updates: Addr,
    /// Operand and result, outer × axis_len × inner; holds the operand already.
    pub out: Addr,
}

impl Scatter {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(regions) = self.regions() {
            regions.into_iter().for_each(push);
        }
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        check_index_elem(self.index_elem)?;
        self.regions().map(|_| ())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    fn regions(&self) -> Result<[Access; 3], String> {
        let dense = |addr, bytes, sizes: [usize; 3], write| {
            strided::access(addr, bytes, [(strided::product(sizes.into_iter())?, 1)].into_iter(), write)
        };
        Ok([
            dense(self.indices, self.index_elem.size(), [self.count, 1, 1], false)?,
            dense(self.updates, self.elem.size(), [self.outer, self.count, self.inner], false)?,
            dense(self.out, self.elem.size(), [self.outer, self.axis_len, self.inner], true)?,
        ])
    }

    /// Applies this thread's part of the updates. Parts are ranges of the outer, inner or scattered axis, so that every
    /// element sees its updates in order.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        let line = 64 / self.elem.size();
        let (mut outer, mut axis, mut inner) = (0..self.outer, 0..self.axis_len, 0..self.inner);
        if self.outer >= ctx.threads {
            outer = ctx.share(self.outer, 1);
        } else if self.inner >= ctx.threads * line {
            inner = ctx.share(self.inner, line);
        } else {
            axis = ctx.share(self.axis_len, 1);
        }
        for o in outer {
            for i in 0..self.count {
                // SAFETY: update i lies inside the declared accesses, and the index inside the axis.
                unsafe {
                    let index = read_index(self.index_elem, ctx.pointer(self.indices), i);
                    let Some(index) = usize::try_from(index).ok().filter(|index| axis.contains(index)) else {
                        continue;
                    };
                    let from = (o * self.count + i) * self.inner + inner.start;
                    let to = (o * self.axis_len + index) * self.inner + inner.start;
                    self.update(ctx, from, to, inner.len());
                }
            }
        }
    }

    /// Applies `len` adjacent elements of the updates, from element `from` on, to those of the result from `to` on.
    unsafe fn update(&self, ctx: &Context, from: usize, to: usize, len: usize) {
        with_stored!(self.elem, S => {
            // SAFETY: the caller's elements lie inside the declared accesses, which do not overlap.
            let (from, to) = unsafe {
                (ctx.pointer::<S>(self.updates).add(from).cast_const(), ctx.pointer::<S>(self.out).add(to))
            };
            match self.op {
                // SAFETY: as above.
                ScatterOp::Set => unsafe { std::ptr::copy_nonoverlapping(from, to, len) },
                ScatterOp::Add => {
                    for j in 0..len {
                        // SAFETY: as above.
                        unsafe {
                            let sum = Sum::combine((*to.add(j)).load(), (*from.add(j)).load());
                            *to.add(j) = S::store(sum);
                        }
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Buffer, Random, at, outputs};

    /// Runs a random scatter of these sizes and compares with the definition.
    fn verify(op: ScatterOp, elem: Elem, [outer, axis_len, inner, count]: [usize; 4], random: &mut Random) {
        let index_elem = random.pick(&[Elem::I64, Elem::I32, Elem::I8]);
        let scatter = Scatter {
            op,
            elem,
            outer,
            axis_len,
            inner,
            indices: at(0, index_elem, 0),
            index_elem,
            count,
            updates: at(1, elem, 0),
            out: at(2, elem, 0),
        };
        let indices: Vec<f64> = (0..count).map(|_| random.below(axis_len + 3) as f64 - 1.0).collect();
        let before = [
            Buffer::of(index_elem, &indices),
            Buffer::random(elem, outer * count * inner, random),
            Buffer::random(elem, outer * axis_len * inner, random),
        ];
        let after = outputs(&before, &scatter);
        let mut want = before[2].clone();
        for o in 0..outer {
            for (i, &index) in indices.iter().enumerate() {
                if index < 0.0 || index >= axis_len as f64 {
                    continue;
                }
                for j in 0..inner {
                    let to = (o * axis_len + index as usize) * inner + j;
                    let update = before[1].get((o * count + i) * inner + j);
                    let old = if op == ScatterOp::Add { want.get(to) } else { 0.0 };
                    want.set(to, old + update);
                }
            }
        }
        assert!(after[2] == want, "{scatter:?}");
    }

    #[test]
    fn updates_are_applied_in_order_and_dropped_out_of_range() {
        let mut random = Random(22);
        for op in [ScatterOp::Set, ScatterOp::Add] {
            for elem in [Elem::F32, Elem::F64, Elem::BF16, Elem::F16, Elem::I32, Elem::I64, Elem::I8] {
                for sizes in [[1, 4, 1, 20], [1, 5, 100, 9], [7, 3, 2, 8], [0, 3, 3, 3], [2, 0, 3, 3], [2, 3, 3, 0]] {
                    verify(op, elem, sizes, &mut random);
                }
            }
        }
    }
}
