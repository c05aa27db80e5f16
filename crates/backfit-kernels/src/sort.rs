//! Stable sorting with payloads.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::index::check_elem_bytes;
use crate::stored::{Stored, with_stored};
use crate::strided;
use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// An array that is reordered as the keys are. `input` and `output` must not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Bytes of an element.
    pub elem_bytes: usize,
    /// Source, outer × len × inner.
    pub input: Addr,
    /// Result, of the same shape.
    pub output: Addr,
}

/// Sorts along the middle axis of dense outer × len × inner arrays. Equal keys keep their order, descending too;
/// NaNs come last, in their order; −0 equals +0.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// How keys are stored.
    pub elem: Elem,
    /// Product of the dimensions before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub len: usize,
    /// Product of the dimensions behind the axis.
    pub inner: usize,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Keys.
    pub keys: Addr,
    /// Sorted keys; must not overlap `keys`.
    pub sorted: Addr,
    /// What is reordered along.
    pub payloads: Vec<Payload>,
}

impl Sort {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        let arrays = self.payloads.iter().map(|p| (p.elem_bytes, p.input, p.output));
        for (bytes, input, output) in arrays.chain([(self.elem.size(), self.keys, self.sorted)]) {
            for (addr, write) in [(input, false), (output, true)] {
                if let Ok(access) = self.region(addr, bytes, write) {
                    push(access);
                }
            }
        }
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        if u32::try_from(self.len).is_err() {
            return Err(format!("an axis of {} elements is too long to sort", self.len));
        }
        let arrays = self.payloads.iter().map(|p| (p.elem_bytes, p.input, p.output));
        for (bytes, input, output) in arrays.chain([(self.elem.size(), self.keys, self.sorted)]) {
            check_elem_bytes(bytes)?;
            self.region(input, bytes, false)?;
            self.region(output, bytes, true)?;
        }
        Ok(())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        self.len * size_of::<u32>()
    }

    fn region(&self, addr: Addr, bytes: usize, write: bool) -> Result<Access, String> {
        let elements = strided::product([self.outer, self.len, self.inner].into_iter())?;
        strided::access(addr, bytes, [(elements, 1)].into_iter(), write)
    }

    /// Sorts this thread's lines.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        if self.len == 0 {
            return;
        }
        // SAFETY: the scratch is as long as `scratch_bytes` says, and aligned.
        let order = unsafe { std::slice::from_raw_parts_mut(ctx.scratch.cast::<MaybeUninit<u32>>(), self.len) };
        for line in ctx.share(self.outer * self.inner, 1) {
            let start = line / self.inner * self.len * self.inner + line % self.inner;
            let order = fill_ascending(order);
            // SAFETY: the line lies inside the declared accesses; lines of threads are disjoint.
            unsafe {
                with_stored!(self.elem, S => self.sort(order, ctx.pointer::<S>(self.keys).add(start)));
                self.reorder(ctx, self.elem.size(), self.keys, self.sorted, start, order);
                for payload in &self.payloads {
                    self.reorder(ctx, payload.elem_bytes, payload.input, payload.output, start, order);
                }
            }
        }
    }

    /// Sorts positions by their keys. Ties are broken by position, so no two are equal and any sort is stable.
    unsafe fn sort<S: Stored>(&self, order: &mut [u32], keys: *const S)
    where
        S::Lane: PartialOrd,
    {
        // SAFETY: positions lie inside the line.
        let key = |position: u32| unsafe { *keys.add(position as usize * self.inner) }.load();
        order.sort_unstable_by(|&a, &b| compare(key(a), key(b), self.descending).then(a.cmp(&b)));
    }

    /// Copies a line in the sorted order.
    unsafe fn reorder(&self, ctx: &Context, bytes: usize, input: Addr, output: Addr, start: usize, order: &[u32]) {
        for (i, &position) in order.iter().enumerate() {
            // SAFETY: both elements lie inside the declared accesses, which do not overlap.
            unsafe {
                let from = ctx.pointer::<u8>(input).add((start + position as usize * self.inner) * bytes);
                let to = ctx.pointer::<u8>(output).add((start + i * self.inner) * bytes);
                match bytes {
                    4 => to.cast::<u32>().write(from.cast::<u32>().read()),
                    8 => to.cast::<u64>().write(from.cast::<u64>().read()),
                    _ => std::ptr::copy_nonoverlapping(from, to, bytes),
                }
            }
        }
    }
}

/// Writes 0, 1, 2, ….
fn fill_ascending(order: &mut [MaybeUninit<u32>]) -> &mut [u32] {
    for (i, slot) in order.iter_mut().enumerate() {
        slot.write(i as u32);
    }
    // SAFETY: every element was written.
    unsafe { &mut *(std::ptr::from_mut(order) as *mut [u32]) }
}

/// The order of two keys: NaN last, whichever the direction.
fn compare<T: PartialOrd>(a: T, b: T, descending: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) if descending => order.reverse(),
        Some(order) => order,
        None => {
            let is_number = |x: &T| x.partial_cmp(x).is_some();
            is_number(&b).cmp(&is_number(&a))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Buffer, Random, at, outputs};

    #[test]
    fn lines_are_sorted_stably_and_payloads_follow() {
        let mut random = Random(51);
        for round in 0..80 {
            let elem = random.pick(&[Elem::F32, Elem::F16, Elem::I64, Elem::U8, Elem::I8, Elem::Bool]);
            let (outer, inner) = (random.below(4), 1 + random.below(3));
            let len = random.pick(&[0, 1, 2, 3, 17, 300]);
            let total = outer * len * inner;
            let sort = Sort {
                elem,
                outer,
                len,
                inner,
                descending: round % 2 == 1,
                keys: at(0, elem, 0),
                sorted: at(1, elem, 0),
                payloads: vec![
                    Payload { elem_bytes: 8, input: at(2, Elem::F64, 0), output: at(3, Elem::F64, 0) },
                    Payload { elem_bytes: 2, input: at(4, Elem::I16, 0), output: at(5, Elem::I16, 0) },
                ],
            };
            let mut keys = Buffer::random(elem, total, &mut random);
            for i in 0..if elem.is_float() { total / 7 } else { 0 } {
                keys.set(random.below(total), [f64::NAN, f64::INFINITY, -0.0][i % 3]);
            }
            let numbers: Vec<f64> = (0..total).map(|i| i as f64).collect();
            let (wide, narrow) = (Buffer::of(Elem::F64, &numbers), Buffer::of(Elem::I16, &numbers));
            let blank = Buffer::of(elem, &vec![1.0; total]);
            let before = [keys, blank, wide.clone(), wide, narrow.clone(), narrow];
            let after = outputs(&before, &sort);
            for line in 0..outer * inner {
                let at = |i: usize| line / inner * len * inner + line % inner + i * inner;
                let mut order: Vec<usize> = (0..len).map(at).collect();
                order.sort_by(|&a, &b| compare(before[0].get(a), before[0].get(b), sort.descending));
                for (i, &from) in order.iter().enumerate() {
                    assert_eq!(after[1].get(at(i)).to_bits(), before[0].get(from).to_bits());
                    assert_eq!(after[3].get(at(i)), from as f64);
                    assert_eq!(after[5].get(at(i)), from as f64);
                }
            }
        }
    }

    #[test]
    fn nan_is_last_in_either_direction() {
        assert_eq!(compare(f32::NAN, 1.0, false), Ordering::Greater);
        assert_eq!(compare(f32::NAN, 1.0, true), Ordering::Greater);
        assert_eq!(compare(2.0, f32::NAN, true), Ordering::Less);
        assert_eq!(compare(f32::NAN, f32::NAN, true), Ordering::Equal);
        assert_eq!(compare(2.0, 1.0, true), Ordering::Less);
    }
}
