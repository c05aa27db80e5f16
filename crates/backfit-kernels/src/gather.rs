//! Gathering slices by index.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::index::{check_elem_bytes, check_index_elem, read_index};
use crate::strided;

/// `out[o, i, j] = src[o, clamp(indices[i]), j]`, all dense: an index below 0 reads slice 0, one past the end the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Bytes of an element.
    pub elem_bytes: usize,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis; at least 1 where anything is gathered.
    pub axis_len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Source, outer × axis_len × inner.
    pub src: Addr,
    /// Indices, dense.
    pub indices: Addr,
    /// Integer type of the indices.
    pub index_elem: Elem,
    /// Number of indices.
    pub count: usize,
    /// Result, outer × count × inner.
    pub out: Addr,
}

impl Gather {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(regions) = self.regions() {
            regions.into_iter().for_each(push);
        }
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        check_elem_bytes(self.elem_bytes)?;
        check_index_elem(self.index_elem)?;
        if self.axis_len == 0 && self.outer * self.count * self.inner > 0 {
            return Err("a gather from an axis of length 0".into());
        }
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
            dense(self.src, self.elem_bytes, [self.outer, self.axis_len, self.inner], false)?,
            dense(self.indices, self.index_elem.size(), [self.count, 1, 1], false)?,
            dense(self.out, self.elem_bytes, [self.outer, self.count, self.inner], true)?,
        ])
    }

    /// Gathers this thread's slices.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.inner * self.elem_bytes {
                1 => self.copy::<[u8; 1]>(ctx),
                2 => self.copy::<[u8; 2]>(ctx),
                4 => self.copy::<[u8; 4]>(ctx),
                8 => self.copy::<[u8; 8]>(ctx),
                16 => self.copy::<[u8; 16]>(ctx),
                32 => self.copy::<[u8; 32]>(ctx),
                64 => self.copy::<[u8; 64]>(ctx),
                _ => self.copy::<u8>(ctx),
            }
        }
    }

    /// Copies slices as arrays of bytes `B`.
    unsafe fn copy<B: Copy>(&self, ctx: &Context) {
        let bytes = self.inner * self.elem_bytes;
        let units = bytes / size_of::<B>();
        for slice in ctx.share(self.outer * self.count, (64 / bytes.max(1)).max(1)) {
            let (outer, i) = (slice / self.count, slice % self.count);
            // SAFETY: the slice lies inside the declared accesses, which do not overlap; the index is clamped.
            unsafe {
                let index = read_index(self.index_elem, ctx.pointer(self.indices), i);
                let index = index.clamp(0, self.axis_len as i64 - 1) as usize;
                let from = ctx.pointer::<u8>(self.src).add((outer * self.axis_len + index) * bytes);
                let to = ctx.pointer::<u8>(self.out).add(slice * bytes);
                std::ptr::copy_nonoverlapping(from.cast::<B>(), to.cast::<B>(), units);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Buffer, Random, at, outputs};

    #[test]
    fn slices_are_gathered_and_indices_clamped() {
        let mut random = Random(21);
        for _ in 0..60 {
            let elem = random.pick(&[Elem::F32, Elem::BF16, Elem::I64, Elem::U8]);
            let index_elem = random.pick(&[Elem::I64, Elem::I32, Elem::U32, Elem::I8, Elem::U16]);
            let size = |random: &mut Random| random.pick(&[0, 1, 2, 5, 16, 33]);
            let (outer, axis_len, inner) = (size(&mut random), 1 + random.below(9), size(&mut random));
            let count = size(&mut random);
            let gather = Gather {
                elem_bytes: elem.size(),
                outer,
                axis_len,
                inner,
                src: at(0, elem, 0),
                indices: at(1, index_elem, 0),
                index_elem,
                count,
                out: at(2, elem, 0),
            };
            let low = if index_elem.is_signed() { -3.0 } else { 0.0 };
            let indices: Vec<f64> = (0..count).map(|_| low + random.below(16) as f64).collect();
            let before = [
                Buffer::random(elem, outer * axis_len * inner, &mut random),
                Buffer::of(index_elem, &indices),
                Buffer::random(elem, outer * count * inner, &mut random),
            ];
            let after = outputs(&before, &gather);
            for o in 0..outer {
                for (i, &index) in indices.iter().enumerate() {
                    let index = index.clamp(0.0, axis_len as f64 - 1.0) as usize;
                    for j in 0..inner {
                        let want = before[0].get((o * axis_len + index) * inner + j);
                        assert_eq!(after[2].get((o * count + i) * inner + j), want);
                    }
                }
            }
        }
    }

    #[test]
    fn indices_beyond_all_bounds_are_clamped() {
        let index_elem = Elem::U64;
        let gather = Gather {
            elem_bytes: 4,
            outer: 1,
            axis_len: 3,
            inner: 1,
            src: at(0, Elem::F32, 0),
            indices: at(1, index_elem, 0),
            index_elem,
            count: 1,
            out: at(2, Elem::F32, 0),
        };
        let buffers = [
            Buffer::of(Elem::F32, &[1.0, 2.0, 3.0]),
            Buffer::of(index_elem, &[u64::MAX as f64]),
            Buffer::of(Elem::F32, &[0.0]),
        ];
        assert_eq!(outputs(&buffers, &gather)[2].get(0), 3.0);
        assert!(Gather { axis_len: 0, ..gather }.check().is_err());
        assert!(Gather { index_elem: Elem::F32, ..gather }.check().is_err());
    }
}
