//! The input as the micro-kernels read it: numbers at strides, padding and dilation included.

use super::Spatial;
use super::plan::volume;
use crate::elem::Elem;
use crate::gemm::number::{Number, Run};

/// Where an image's channels and positions lie, in elements.
#[derive(Clone, Copy)]
pub(super) struct Strides {
    pub image: isize,
    pub channel: isize,
    pub spatial: [isize; 3],
}

/// The input of one group, as stored.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub from: *const u8,
    pub elem: Elem,
    pub strides: Strides,
}

/// Padded and dilated images: position q of the view is position `q − padding_low` of the dilated input.
#[derive(Clone, Copy)]
pub(super) struct View<T> {
    pub from: *const T,
    pub strides: Strides,
    /// Whether a whole register may be read that begins inside.
    pub roomy: bool,
}

/// The part of an axis that holds input: `count` elements from `first` on, the first at position `at` of the view.
struct Valid {
    first: usize,
    count: usize,
    at: usize,
}

impl Valid {
    fn new(s: &Spatial) -> Valid {
        let (extent, dilation) = (s.extent() as isize, s.base_dilation as isize);
        let up = |position: isize| (position.max(0) as usize).div_ceil(s.base_dilation) as isize;
        let first = up(-s.padding_low);
        // The last element lies below `extent`: first·dilation + padding < extent.
        let end = up(extent - s.padding_low).min(s.input as isize);
        let count = (end - first).max(0) as usize;
        let at = (first * dilation + s.padding_low).max(0) as usize;
        Valid { first: first as usize, count, at }
    }
}

impl Source {
    /// The images where they lie, if no padding, dilation or conversion is needed.
    pub fn in_place<T: Number>(&self, spatial: &[Spatial; 3]) -> Option<View<T>> {
        let mut offset = 0;
        for (s, stride) in spatial.iter().zip(self.strides.spatial) {
            let end = s.extent() as isize - s.padding_low;
            if s.padding_low > 0 || s.base_dilation != 1 || end > s.input as isize {
                return None;
            }
            offset -= s.padding_low * stride;
        }
        if self.elem != T::ELEM {
            return None;
        }
        let from = self.from.cast::<T>().wrapping_offset(offset);
        Some(View { from, strides: self.strides, roomy: false })
    }

    /// Copies images (from the first on) and channels into `to`, with padding and dilation.
    ///
    /// # Safety
    /// The source is valid for the images and channels; `to` for `images · channels · extents` numbers and two
    /// registers more.
    pub unsafe fn padded<T: Number>(
        &self,
        spatial: &[Spatial; 3],
        images: usize,
        channels: std::ops::Range<usize>,
        to: *mut T,
    ) -> View<T> {
        let extents = spatial.map(|s| s.extent());
        let plane = volume(spatial, Spatial::extent);
        let count = channels.len();
        let last = channels.len() > 1 && self.strides.channel.unsigned_abs() < self.strides.spatial[2].unsigned_abs();
        let unit = if last { count } else { 1 };
        let strides = Strides {
            image: (count * plane) as isize,
            channel: if last { 1 } else { plane as isize },
            spatial: [extents[1] * extents[2] * unit, extents[2] * unit, unit].map(|s| s as isize),
        };
        let valid = [0, 1, 2].map(|d| Valid::new(&spatial[d]));
        if valid.iter().zip(extents).any(|(v, extent)| v.count != extent) {
            // SAFETY: `to` is valid for as many numbers; all bits zero is the number zero.
            unsafe { std::ptr::write_bytes(to, 0, images * count * plane) };
        }
        let base = |d: usize| spatial[d].base_dilation as isize;
        let mut start = [0, self.strides.channel * channels.start as isize];
        for (valid, (to, from)) in valid.iter().zip(strides.spatial.iter().zip(self.strides.spatial)) {
            start[0] += valid.at as isize * to;
            start[1] += valid.first as isize * from;
        }
        let axis = |d: usize| (valid[d].count, base(d) * strides.spatial[d], self.strides.spatial[d]);
        let channel = (count, strides.channel, self.strides.channel);
        let (middle, run) =
            if last { ([axis(0), axis(1), axis(2)], channel) } else { ([channel, axis(0), axis(1)], axis(2)) };
        let size = self.elem.size() as isize;
        for image in 0..images as isize {
            let [to_image, from_image] = [start[0] + image * strides.image, start[1] + image * self.strides.image];
            for_each(middle, |to_offset, from_offset| {
                // SAFETY: valid positions lie inside the source and inside the view.
                unsafe {
                    let from = self.from.offset((from_image + from_offset) * size);
                    let to = to.offset(to_image + to_offset);
                    let from = Run { start: from, stride: run.2 };
                    T::load_run(self.elem, from, Run { start: to, stride: run.1 }, run.0);
                }
            });
        }
        View { from: to, strides, roomy: true }
    }
}

/// Calls with both offsets of every position of three axes (size and two strides).
fn for_each(axes: [(usize, isize, isize); 3], mut call: impl FnMut(isize, isize)) {
    let [a, b, c] = axes;
    for i in 0..a.0 as isize {
        for j in 0..b.0 as isize {
            for k in 0..c.0 as isize {
                call(i * a.1 + j * b.1 + k * c.1, i * a.2 + j * b.2 + k * c.2);
            }
        }
    }
}
