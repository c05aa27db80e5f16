//! One unit of work: some images × some rows of output × some output channels of one group.
//!
//! Either positions are the columns of the product and channels its rows, or the other way round. Columns are what
//! registers hold side by side; rows need not be adjacent in memory. So the padded image is read where it lies:
//! as rows always, as columns where neighbouring outputs read neighbouring inputs.

use super::Spatial;
use super::image::{Source, View};
use super::plan::{Plan, volume};
use crate::elem::Elem;
use crate::gemm::micro::{Engine, MAX_COLS};
use crate::gemm::number::{Number, Run};
use crate::gemm::pack::Tapped;
use crate::gemm::sweep::{Columns, Left, MAX_INNER, Target, blocks, row_tiles, sweep};
use std::ops::Range;

/// Positions whose offsets are listed at a time.
const LISTED: usize = 512;
/// Output channels and positions below which a whole register is not filled.
const FILLS_REGISTERS: usize = 16;

/// Kernel or output: the address of its first element in the unit, and strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub at: *mut u8,
    pub elem: Elem,
    /// From one image to the next (output), or from one in-channel to the next (kernel).
    pub outer: isize,
    /// From one output channel to the next.
    pub channel: isize,
}

/// A unit of work.
pub(super) struct Unit<'a> {
    pub plan: &'a Plan,
    /// The dimensions, cut to the unit's rows.
    pub spatial: [Spatial; 3],
    pub images: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub source: Source,
    pub kernel: Part,
    pub out: Part,
}

/// A thread's scratch.
pub(super) struct Scratch<T> {
    pub image: *mut T,
    pub kernel: *mut T,
    pub panel: *mut T,
    pub sums: *mut T,
}

/// One block of the inner dimension: offsets of its positions in image and kernel.
struct Taps {
    image: [isize; MAX_INNER],
    kernel: [isize; MAX_INNER],
    len: usize,
}

/// The one stride of a walk over nested axes (size, stride), outermost first, if it is uniform.
fn uniform(axes: &[(usize, isize)]) -> Option<isize> {
    let mut axes = axes.iter().rev().filter(|a| a.0 > 1);
    let &(mut size, stride) = axes.next()?;
    for &(outer, outer_stride) in axes {
        if outer_stride != stride * size as isize {
            return None;
        }
        size *= outer;
    }
    Some(stride)
}

impl Unit<'_> {
    /// Computes the unit.
    ///
    /// # Safety
    /// The machine has the engine's instruction set; source, kernel and output are valid for the unit; the scratch is
    /// as long as the plan says.
    pub unsafe fn run<T: Number>(&self, engine: &Engine<T>, scratch: &Scratch<T>) {
        let channels_are_columns = self.channels_are_columns();
        let (direct, mut target) = self.target(scratch, channels_are_columns);
        let kernel = volume(&self.spatial, |s| s.kernel);
        let chunk = self.plan.chunk(self.images);
        let in_place = self.source.in_place::<T>(&self.spatial);
        // SAFETY: the caller's promise; a chunk fits the scratch, by the plan.
        unsafe {
            for chunk in blocks(self.in_channels, chunk) {
                let view = match in_place {
                    Some(view) => {
                        let skip = chunk.start as isize * view.strides.channel;
                        View { from: view.from.wrapping_offset(skip), ..view }
                    }
                    None => self.source.padded(&self.spatial, self.images, chunk.clone(), scratch.image),
                };
                for channels in blocks(chunk.len(), self.plan.channels) {
                    for taps in blocks(kernel, self.plan.taps) {
                        let taps = self.taps(&view, chunk.start, channels.clone(), taps);
                        if channels_are_columns {
                            self.positions_by_channels(engine, &view, &taps, scratch, target);
                        } else {
                            self.channels_by_positions(engine, &view, &taps, scratch, target);
                        }
                        target.add = true;
                    }
                }
            }
            if !direct {
                self.store(scratch.sums, channels_are_columns);
            }
        }
    }

    /// Which way round the product is: channels are columns where they are adjacent in the output, or where positions
    /// would have to be packed.
    fn channels_are_columns(&self) -> bool {
        let row = self.spatial[2];
        let positions_fill = row.stride == 1 && row.output >= FILLS_REGISTERS;
        self.out.channel == 1 && row.out_stride != 1 || self.out_channels >= FILLS_REGISTERS && !positions_fill
    }

    fn positions(&self) -> usize {
        volume(&self.spatial, |s| s.output)
    }

    /// The output itself, or sums in the scratch (where columns are not adjacent, or elements are of another type).
    fn target<T: Number>(&self, scratch: &Scratch<T>, channels_are_columns: bool) -> (bool, Target<T>) {
        let axes = self.spatial.map(|s| (s.output, s.out_stride));
        let row_stride = if channels_are_columns {
            let all = [(self.images, self.out.outer), axes[0], axes[1], axes[2]];
            let one = self.positions() * self.images == 1;
            uniform(&all).or(one.then_some(0)).filter(|_| self.out.channel == 1)
        } else {
            let adjacent = uniform(&axes) == Some(1) || self.positions() == 1;
            adjacent.then_some(self.out.channel)
        };
        match row_stride {
            Some(row_stride) if self.out.elem == T::ELEM => {
                (true, Target { to: self.out.at.cast::<T>(), row_stride, add: false })
            }
            _ => {
                let width = if channels_are_columns { self.out_channels } else { self.images * self.positions() };
                (false, Target { to: scratch.sums, row_stride: width as isize, add: false })
            }
        }
    }

    /// Offsets of the block's inner positions: in-channels, relative to the chunk, and kernel positions within them.
    fn taps<T>(&self, view: &View<T>, chunk: usize, channels: Range<usize>, taps: Range<usize>) -> Taps {
        let mut list = Taps { image: [0; MAX_INNER], kernel: [0; MAX_INNER], len: 0 };
        let [_, height, width] = self.spatial.map(|s| s.kernel);
        for channel in channels {
            for tap in taps.clone() {
                let index = [tap / width / height, tap / width % height, tap % width].map(|i| i as isize);
                let mut image = channel as isize * view.strides.channel;
                let mut kernel = (chunk + channel) as isize * self.kernel.outer;
                for (d, s) in self.spatial.iter().enumerate() {
                    image += index[d] * s.window_dilation as isize * view.strides.spatial[d];
                    kernel += index[d] * s.rhs_stride;
                }
                (list.image[list.len], list.kernel[list.len]) = (image, kernel);
                list.len += 1;
            }
        }
        list
    }

    /// Offsets in the view of the positions in `range`, images outermost.
    fn offsets<T>(&self, view: &View<T>, range: Range<usize>) -> [isize; LISTED] {
        let mut offsets = [0; LISTED];
        let [depth, height, width] = self.spatial.map(|s| s.output);
        let steps: [isize; 3] = std::array::from_fn(|d| self.spatial[d].stride as isize * view.strides.spatial[d]);
        let mut next = 0;
        let mut position = range.start;
        while position < range.end {
            let row = position / width;
            let index = [row / height / depth, row / height % depth, row % height].map(|i| i as isize);
            let first = position % width;
            let end = width.min(first + range.end - position);
            let start = index[0] * view.strides.image + index[1] * steps[0] + index[2] * steps[1];
            for x in first..end {
                offsets[next] = start + x as isize * steps[2];
                next += 1;
            }
            position += end - first;
        }
        offsets
    }

    /// Adds a block with positions as rows, read where they lie, and channels as columns, packed.
    unsafe fn positions_by_channels<T: Number>(
        &self,
        engine: &Engine<T>,
        view: &View<T>,
        taps: &Taps,
        scratch: &Scratch<T>,
        target: Target<T>,
    ) {
        let wide = 2 * engine.lanes;
        // SAFETY: the caller's promise; panels fit the scratch, by the plan.
        unsafe {
            for panel in blocks(self.out_channels, wide) {
                let width = panel.len().next_multiple_of(engine.lanes);
                self.pack_kernel(taps, panel.clone(), width, scratch.kernel.add(panel.start * taps.len));
            }
            for positions in blocks(self.images * self.positions(), LISTED) {
                let offsets = self.offsets(view, positions.clone());
                let left = Left::Taps(view.from, offsets.as_ptr(), taps.image.as_ptr());
                let to = target.to.offset(positions.start as isize * target.row_stride);
                for panel in blocks(self.out_channels, wide) {
                    let columns = Columns {
                        from: scratch.kernel.add(panel.start * taps.len).cast_const(),
                        inner_stride: panel.len().next_multiple_of(engine.lanes) as isize,
                        taps: std::ptr::null(),
                        count: panel.len(),
                    };
                    let target = Target { to: to.add(panel.start), ..target };
                    sweep(engine, &left, &columns, positions.len(), taps.len, target);
                }
            }
        }
    }

    /// Adds a block with channels as rows, packed, and positions as columns, read where they lie if they are adjacent.
    unsafe fn channels_by_positions<T: Number>(
        &self,
        engine: &Engine<T>,
        view: &View<T>,
        taps: &Taps,
        scratch: &Scratch<T>,
        target: Target<T>,
    ) {
        let wide = 2 * engine.lanes;
        let per_image = self.positions();
        // SAFETY: the caller's promise; tiles fit the scratch, by the plan.
        unsafe {
            for tile in row_tiles(self.out_channels, engine.rows) {
                self.pack_kernel(taps, tile.clone(), tile.len(), scratch.kernel.add(tile.start * taps.len));
            }
            let left = Left::Packed(scratch.kernel.cast_const());
            for image in 0..self.images {
                let to_image = if target.to == scratch.sums {
                    target.to.add(image * per_image)
                } else {
                    target.to.offset(image as isize * self.out.outer)
                };
                for positions in blocks(per_image, LISTED) {
                    let first = image * per_image + positions.start;
                    let offsets = self.offsets(view, first..first + positions.len());
                    for panel in blocks(positions.len(), wide) {
                        let to = to_image.add(positions.start + panel.start);
                        let columns = columns(engine, view, &offsets[panel], taps, scratch.panel);
                        let target = Target { to, ..target };
                        sweep(engine, &left, &columns, self.out_channels, taps.len, target);
                    }
                }
            }
        }
    }

    /// Packs the kernel for some output channels.
    unsafe fn pack_kernel<T: Number>(&self, taps: &Taps, channels: Range<usize>, width: usize, to: *mut T) {
        let offset = channels.start as isize * self.kernel.channel * self.kernel.elem.size() as isize;
        // SAFETY: the channels lie inside the kernel, the panel inside the scratch.
        unsafe {
            let panel = Tapped {
                from: self.kernel.at.offset(offset),
                outer: channels.len(),
                outer_stride: self.kernel.channel,
                taps: &taps.kernel[..taps.len],
                width,
            };
            T::pack_tapped(self.kernel.elem, &panel, to);
        }
    }

    /// Rounds and stores the sums.
    unsafe fn store<T: Number>(&self, sums: *mut T, channels_are_columns: bool) {
        let (images, channels, positions) = (self.images, self.out_channels, self.positions());
        let (channel, position) = if channels_are_columns { (1, channels) } else { (images * positions, 1) };
        let channel = (channels, channel, self.out.channel);
        let row = self.spatial[2];
        let row = (row.output, position, row.out_stride);
        let (outer, run) = if self.out.channel == 1 { (row, channel) } else { (channel, row) };
        let size = self.out.elem.size() as isize;
        let [depth, height, width] = self.spatial.map(|s| s.output);
        for line in 0..images * depth * height {
            let (image, z, y) = (line / height / depth, line / height % depth, line % height);
            let to = image as isize * self.out.outer
                + z as isize * self.spatial[0].out_stride
                + y as isize * self.spatial[1].out_stride;
            for i in 0..outer.0 {
                // SAFETY: the line lies inside sums and output.
                unsafe {
                    let from = sums.add(line * width * position + i * outer.1).cast_const();
                    let to = self.out.at.offset((to + i as isize * outer.2) * size);
                    let from = Run { start: from, stride: run.1 as isize };
                    T::store_run(self.out.elem, from, Run { start: to, stride: run.2 }, run.0);
                }
            }
        }
    }
}

/// A panel of positions: where it lies, if its positions are adjacent, else packed.
unsafe fn columns<T: Number>(
    engine: &Engine<T>,
    view: &View<T>,
    offsets: &[isize],
    taps: &Taps,
    packed: *mut T,
) -> Columns<T> {
    let count = offsets.len();
    let width = count.next_multiple_of(engine.lanes);
    let adjacent = offsets.windows(2).all(|pair| pair[1] - pair[0] == 1);
    if adjacent && (view.roomy || count == width) {
        let from = view.from.wrapping_offset(offsets[0]);
        return Columns { from, inner_stride: 0, taps: taps.image.as_ptr(), count };
    }
    debug_assert!(width <= MAX_COLS);
    for (p, &tap) in taps.image[..taps.len].iter().enumerate() {
        // SAFETY: taps of positions lie inside the view; the panel fits the scratch, by the plan.
        unsafe {
            let to = packed.add(p * width);
            for (j, &offset) in offsets.iter().enumerate() {
                *to.add(j) = *view.from.wrapping_offset(offset + tap);
            }
            for j in count..width {
                *to.add(j) = T::ZERO;
            }
        }
    }
    Columns { from: packed.cast_const(), inner_stride: width as isize, taps: std::ptr::null(), count }
}
