//! Slices whose start is read from memory when the program runs.

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::gemm::check_distinct;
use crate::index::{check_elem_bytes, check_index_elem, read_index};
use crate::strided::{self, MAX_RANK, Walk};

/// One dimension of a dynamic slice. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDim {
    /// Extent of the whole array.
    pub whole: usize,
    /// Extent of the window, at most `whole`.
    pub window: usize,
    /// Elements between neighbours in the whole array.
    pub whole_stride: isize,
    /// Elements between neighbours in the window's dense or strided copy.
    pub window_stride: isize,
    /// Where the window starts: a scalar of the index type, clamped to `0..=whole − window`.
    pub start: Addr,
}

/// Copies the window of `whole` that starts at run-time indices into `window`.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSlice {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Integer type of the start indices.
    pub index_elem: Elem,
    /// The array that is read.
    pub whole: Addr,
    /// The copy that is written.
    pub window: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SliceDim>,
}

/// Copies `window` over the window of `whole` that starts at run-time indices; `whole` holds the operand already.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicUpdateSlice {
    /// Bytes of an element: 1, 2, 4 or 8.
    pub elem_bytes: usize,
    /// Integer type of the start indices.
    pub index_elem: Elem,
    /// The array that is written.
    pub whole: Addr,
    /// The update that is read.
    pub window: Addr,
    /// Dimensions, outermost first.
    pub dims: Vec<SliceDim>,
}

impl DynamicSlice {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.copy().accesses(push);
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        self.copy().check()
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Copies this thread's part.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise.
        unsafe { self.copy().run(ctx) }
    }

    fn copy(&self) -> Copying<'_> {
        let DynamicSlice { elem_bytes, index_elem, whole, window, ref dims } = *self;
        Copying { elem_bytes, index_elem, whole, window, dims, update: false }
    }
}

impl DynamicUpdateSlice {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        self.copy().accesses(push);
    }

    /// Whether the fields are consistent.
    pub fn check(&self) -> Result<(), String> {
        self.copy().check()
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Copies this thread's part.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise.
        unsafe { self.copy().run(ctx) }
    }

    fn copy(&self) -> Copying<'_> {
        let DynamicUpdateSlice { elem_bytes, index_elem, whole, window, ref dims } = *self;
        Copying { elem_bytes, index_elem, whole, window, dims, update: true }
    }
}

/// Either instruction.
struct Copying<'a> {
    elem_bytes: usize,
    index_elem: Elem,
    whole: Addr,
    window: Addr,
    dims: &'a [SliceDim],
    /// Whether the window is copied into the whole array.
    update: bool,
}

impl Copying<'_> {
    fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(arrays) = self.arrays() {
            arrays.into_iter().for_each(&mut *push);
        }
        let bytes = self.index_elem.size();
        for dim in self.dims {
            push(Access { addr: dim.start, bytes, align: bytes, write: false });
        }
    }

    fn check(&self) -> Result<(), String> {
        check_elem_bytes(self.elem_bytes)?;
        check_index_elem(self.index_elem)?;
        if self.dims.len() > MAX_RANK {
            return Err(format!("{} dimensions; at most {MAX_RANK}", self.dims.len()));
        }
        if self.dims.iter().any(|d| d.window > d.whole) {
            return Err("a dynamic slice is larger than its array".into());
        }
        self.arrays()?;
        let written = |d: &SliceDim| if self.update { (d.whole, d.whole_stride) } else { (d.window, d.window_stride) };
        check_distinct(self.dims.iter().map(written).collect())
    }

    fn arrays(&self) -> Result<[Access; 2], String> {
        strided::product(self.dims.iter().map(|d| d.whole))?;
        let whole = self.dims.iter().map(|d| (d.whole, d.whole_stride));
        let window = self.dims.iter().map(|d| (d.window, d.window_stride));
        Ok([
            strided::access(self.whole, self.elem_bytes, whole, self.update)?,
            strided::access(self.window, self.elem_bytes, window, !self.update)?,
        ])
    }

    unsafe fn run(&self, ctx: &Context) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.elem_bytes {
                1 => self.run_as::<u8>(ctx),
                2 => self.run_as::<u16>(ctx),
                4 => self.run_as::<u32>(ctx),
                _ => self.run_as::<u64>(ctx),
            }
        }
    }

    unsafe fn run_as<T: Copy>(&self, ctx: &Context) {
        let mut start = 0;
        for dim in self.dims {
            // SAFETY: the start is a declared access.
            let index = unsafe { read_index(self.index_elem, ctx.pointer(dim.start), 0) };
            start += index.clamp(0, (dim.whole - dim.window) as i64) as isize * dim.whole_stride;
        }
        let (row, outer) = match self.dims.split_last() {
            Some((last, outer)) => ((last.window, last.whole_stride, last.window_stride), outer),
            None => ((1, 1, 1), self.dims),
        };
        let rows: usize = outer.iter().map(|d| d.window).product();
        let (mine, cells) = if rows >= ctx.threads {
            (ctx.share(rows, 1), 0..row.0)
        } else {
            (0..rows, ctx.share(row.0, (64 / size_of::<T>()).max(1)))
        };
        let mut walk = Walk::new(outer.iter().map(|d| (d.window, [d.whole_stride, d.window_stride])));
        walk.seek(mine.start);
        for _ in mine {
            let whole = start + walk.offsets[0] + cells.start as isize * row.1;
            let window = walk.offsets[1] + cells.start as isize * row.2;
            // SAFETY: clamped windows lie inside the declared accesses, which do not overlap.
            unsafe {
                let whole = ctx.pointer::<T>(self.whole).offset(whole);
                let window = ctx.pointer::<T>(self.window).offset(window);
                if self.update {
                    copy_row((window, row.2), (whole, row.1), cells.len());
                } else {
                    copy_row((whole, row.1), (window, row.2), cells.len());
                }
            }
            walk.advance();
        }
    }
}

/// Copies elements between two strided rows (start and stride).
unsafe fn copy_row<T: Copy>(from: (*mut T, isize), to: (*mut T, isize), len: usize) {
    // SAFETY: both rows are valid for `len` elements and do not overlap.
    unsafe {
        if from.1 == 1 && to.1 == 1 {
            return std::ptr::copy_nonoverlapping(from.0, to.0, len);
        }
        for i in 0..len as isize {
            *to.0.offset(i * to.1) = *from.0.offset(i * from.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Buffer, Random, at, outputs};

    /// Random dimensions, and the starts that are stored at base 2.
    fn random_dims(random: &mut Random, index_elem: Elem) -> (Vec<SliceDim>, Vec<f64>, [usize; 2]) {
        let (mut dims, mut starts, mut lengths) = (Vec::new(), Vec::new(), [1, 1]);
        for d in 0..random.below(4) {
            let whole = 1 + random.below(20);
            let window = random.below(whole + 1);
            let [whole_stride, window_stride] = lengths.map(|l| l as isize);
            let start = at(2, index_elem, d);
            dims.insert(0, SliceDim { whole, window, whole_stride, window_stride, start });
            starts.push(random.below(24) as f64 - 2.0);
            lengths = [lengths[0] * whole, lengths[1] * window.max(1)];
        }
        (dims, starts, lengths)
    }

    #[test]
    fn windows_are_copied_at_clamped_starts() {
        let mut random = Random(31);
        for round in 0..120 {
            let elem = random.pick(&[Elem::F32, Elem::BF16, Elem::I64, Elem::U8]);
            let index_elem = random.pick(&[Elem::I64, Elem::I32, Elem::I8]);
            let (dims, starts, lengths) = random_dims(&mut random, index_elem);
            let before = [
                Buffer::random(elem, lengths[0], &mut random),
                Buffer::random(elem, lengths[1], &mut random),
                Buffer::of(index_elem, &starts),
            ];
            let (whole, window) = (at(0, elem, 0), at(1, elem, 0));
            let update = round % 2 == 1;
            let elem_bytes = elem.size();
            let after = if update {
                outputs(&before, &DynamicUpdateSlice { elem_bytes, index_elem, whole, window, dims: dims.clone() })
            } else {
                outputs(&before, &DynamicSlice { elem_bytes, index_elem, whole, window, dims: dims.clone() })
            };
            let mut want = before.to_vec();
            for mut number in 0..dims.iter().map(|d| d.window).product() {
                let (mut from, mut to) = (0, 0);
                for d in dims.iter().rev() {
                    let start = starts[d.start.offset / index_elem.size()].clamp(0.0, (d.whole - d.window) as f64);
                    from += (start as usize + number % d.window) * d.whole_stride as usize;
                    to += number % d.window * d.window_stride as usize;
                    number /= d.window;
                }
                if update {
                    want[0].set(from, before[1].get(to));
                } else {
                    want[1].set(to, before[0].get(from));
                }
            }
            assert!(after == want, "{dims:?}");
        }
    }

    #[test]
    fn windows_larger_than_the_array_are_refused() {
        let dim = |window| SliceDim { whole: 3, window, whole_stride: 1, window_stride: 1, start: at(2, Elem::I32, 0) };
        let slice = |window| DynamicSlice {
            elem_bytes: 4,
            index_elem: Elem::I32,
            whole: at(0, Elem::F32, 0),
            window: at(1, Elem::F32, 0),
            dims: vec![dim(window)],
        };
        assert!(slice(3).check().is_ok());
        assert!(slice(4).check().is_err());
    }
}
