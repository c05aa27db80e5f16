//! Convolutions: forward, and the gradients with respect to input and kernel, as one instruction.

mod image;
mod plan;
#[cfg(test)]
mod tests;
mod unit;

use crate::context::{Access, Addr, Context};
use crate::elem::Elem;
use crate::gemm::check_distinct;
use crate::gemm::number::{Number, check_elems, with_number};
use crate::strided;
use image::{Source, Strides};
use plan::{Plan, UNIT_CHANNELS};
use std::ops::Range;
use unit::{Part, Scratch, Unit};

/// One spatial dimension of a convolution. Strides are in elements.
///
/// Output position `o` and kernel position `k` meet at `o·stride + k·window_dilation − padding_low` of the dilated
/// input, in which `base_dilation − 1` zeros lie between neighbours and zeros lie all around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Extent of the input (before dilation).
    pub input: usize,
    /// Extent of the kernel (before dilation).
    pub kernel: usize,
    /// Extent of the output.
    pub output: usize,
    /// Positions between neighbouring windows, at least 1.
    pub stride: usize,
    /// Zeros before the first input element; negative crops.
    pub padding_low: isize,
    /// Positions between neighbouring input elements (lhs dilation), at least 1.
    pub base_dilation: usize,
    /// Positions between neighbouring kernel elements (rhs dilation), at least 1.
    pub window_dilation: usize,
    /// Elements between neighbours in the input.
    pub lhs_stride: isize,
    /// Elements between neighbours in the kernel. To reverse the kernel, negate and let `rhs` point at its last element.
    pub rhs_stride: isize,
    /// Elements between neighbours in the output.
    pub out_stride: isize,
}

/// An input or output image, or a kernel: where it starts and how elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its element at index 0 of every dimension.
    pub addr: Addr,
    /// How elements are stored.
    pub elem: Elem,
}

/// `out[g, b, o, y] = Σ_{i, k} lhs[g, b, i, y·stride + k·window_dilation − padding] · rhs[g, o, i, k]`
///
/// Every dimension has explicit strides (in elements), so that any layout, and both gradients, are this instruction:
/// * with respect to the input: base dilation = stride, kernel reversed by negative strides, its in and out swapped;
/// * with respect to the kernel: batch and features swapped in input and output gradient, window dilation = stride.
///
/// Groups of features have `lhs_group_stride = in_channels · lhs_feature_stride`; groups of the batch (StableHLO's
/// `batch_group_count`) have `lhs_group_stride = batch · lhs_batch_stride`. In both,
/// `rhs_group_stride = out_channels · rhs_out_stride` and `out_group_stride = out_channels · out_feature_stride`.
///
/// Sums run over (in-channel, kernel position), the last fastest, in blocks that depend on the shape alone; see
/// [`Gemm`](crate::gemm::Gemm) for what that promises. Padding takes part as zeros: zero times infinity is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Input (or what plays it).
    pub lhs: Tensor,
    /// Kernel.
    pub rhs: Tensor,
    /// Output. Its elements must not overlap.
    pub out: Tensor,
    /// What sums are held in: F32 (of F32, F16, BF16), F64 (of any float) or an integer type (wrapping).
    pub acc: Elem,
    /// Independent groups; at least 1.
    pub groups: usize,
    /// Images per group.
    pub batch: usize,
    /// Input channels per group.
    pub in_channels: usize,
    /// Output channels per group.
    pub out_channels: usize,
    /// From one group's input to the next.
    pub lhs_group_stride: isize,
    /// From one image to the next.
    pub lhs_batch_stride: isize,
    /// From one input channel to the next.
    pub lhs_feature_stride: isize,
    /// From one group's kernel to the next.
    pub rhs_group_stride: isize,
    /// From one output channel of the kernel to the next.
    pub rhs_out_stride: isize,
    /// From one input channel of the kernel to the next.
    pub rhs_in_stride: isize,
    /// From one group's output to the next.
    pub out_group_stride: isize,
    /// From one output image to the next.
    pub out_batch_stride: isize,
    /// From one output channel to the next.
    pub out_feature_stride: isize,
    /// Spatial dimensions, outermost first: 0 to 3 of them.
    pub spatial: Vec<Spatial>,
}

/// Extents and offsets that a spatial dimension may have, so that arithmetic on positions cannot overflow.
const MOST: usize = 1 << 30;
/// Output channels are shared among threads in multiples of this.
const CHANNEL_GRAIN: usize = 16;

impl Convolution {
    /// The regions that a run touches.
    pub fn accesses(&self, push: &mut dyn FnMut(Access)) {
        if let Ok(regions) = self.regions() {
            regions.into_iter().for_each(push);
        }
    }

    /// Whether the fields are consistent: types are offered, regions can be counted, and the result does not overlap itself.
    pub fn check(&self) -> Result<(), String> {
        check_elems([self.lhs.elem, self.rhs.elem], self.out.elem, self.acc)?;
        if self.spatial.len() > 3 {
            return Err(format!("{} spatial dimensions; at most 3", self.spatial.len()));
        }
        for s in &self.spatial {
            if s.stride == 0 || s.base_dilation == 0 || s.window_dilation == 0 {
                return Err("strides and dilations of a convolution are at least 1".into());
            }
            let sizes = [s.input, s.output, s.kernel, s.stride, s.base_dilation, s.window_dilation];
            let reach = s.output as u128 * s.stride as u128 + s.kernel as u128 * s.window_dilation as u128;
            if sizes.into_iter().chain([s.padding_low.unsigned_abs()]).any(|size| size > MOST) || reach > MOST as u128 {
                return Err("a spatial dimension of a convolution is too large".into());
            }
        }
        self.regions()?;
        let outer = [
            (self.groups, self.out_group_stride),
            (self.batch, self.out_batch_stride),
            (self.out_channels, self.out_feature_stride),
        ];
        check_distinct(outer.into_iter().chain(self.spatial.iter().map(|s| (s.output, s.out_stride))).collect())
    }

    /// Bytes of private scratch that each thread needs.
    pub fn scratch_bytes(&self) -> usize {
        let numbers: usize = Plan::new(self).scratch(self.out_channels).iter().sum();
        numbers * with_number!(self.acc, T => size_of::<T>())
    }

    fn regions(&self) -> Result<[Access; 3], String> {
        let of = |tensor: &Tensor, outer: [(usize, isize); 3], spatial: fn(&Spatial) -> (usize, isize), write: bool| {
            let axes = outer.into_iter().chain(self.spatial.iter().map(spatial));
            strided::product(axes.clone().map(|a| a.0))?;
            strided::access(tensor.addr, tensor.elem.size(), axes, write)
        };
        let lhs = [
            (self.groups, self.lhs_group_stride),
            (self.batch, self.lhs_batch_stride),
            (self.in_channels, self.lhs_feature_stride),
        ];
        let rhs = [
            (self.groups, self.rhs_group_stride),
            (self.out_channels, self.rhs_out_stride),
            (self.in_channels, self.rhs_in_stride),
        ];
        let out = [
            (self.groups, self.out_group_stride),
            (self.batch, self.out_batch_stride),
            (self.out_channels, self.out_feature_stride),
        ];
        Ok([
            of(&self.lhs, lhs, |s| (s.input, s.lhs_stride), false)?,
            of(&self.rhs, rhs, |s| (s.kernel, s.rhs_stride), false)?,
            of(&self.out, out, |s| (s.output, s.out_stride), true)?,
        ])
    }

    /// Computes this thread's part of the output.
    ///
    /// # Safety
    /// The instruction passed `check`, and the context fulfils its invariant.
    pub unsafe fn run(&self, ctx: &Context) {
        let empty = self.groups * self.batch * self.out_channels == 0;
        if empty || self.spatial.iter().any(|s| s.output == 0) {
            return;
        }
        // SAFETY: the caller's promise.
        with_number!(self.acc, T => unsafe { self.run_as::<T>(ctx) });
    }

    unsafe fn run_as<T: Number>(&self, ctx: &Context) {
        let plan = Plan::new(self);
        let [image, kernel, panel, _] = plan.scratch(self.out_channels);
        let start = ctx.scratch.cast::<T>();
        // SAFETY: the scratch is as long as `scratch_bytes` says.
        let scratch = unsafe {
            let kernel_at = start.add(image);
            let panel_at = kernel_at.add(kernel);
            Scratch { image: start, kernel: kernel_at, panel: panel_at, sums: panel_at.add(panel) }
        };
        let row_blocks = plan.spatial[plan.axis].output.div_ceil(plan.rows);
        let image_blocks = self.batch.div_ceil(plan.images).next_multiple_of(ctx.threads).min(self.batch);
        let units = self.groups * image_blocks * row_blocks;
        let uneven = !units.is_multiple_of(ctx.threads) && units < 4 * ctx.threads;
        let wide = self.out_channels >= ctx.threads * CHANNEL_GRAIN;
        let parts = self.out_channels.div_ceil(UNIT_CHANNELS).max(if uneven && wide { ctx.threads } else { 1 });
        for index in ctx.share(units * parts, 1) {
            let (unit, part) = (index / parts, index % parts);
            let (group, unit) = (unit / (image_blocks * row_blocks), unit % (image_blocks * row_blocks));
            let (block, row) = (unit / row_blocks, unit % row_blocks);
            let images = cut(self.batch, 1, image_blocks, block);
            let channels = cut(self.out_channels, CHANNEL_GRAIN, parts, part);
            let rows = cut(plan.spatial[plan.axis].output, 1, row_blocks, row);
            if !channels.is_empty() {
                // SAFETY: the unit lies inside the convolution; units of different threads are disjoint.
                unsafe { self.unit(ctx, &plan, group, images, channels, rows).run(T::engine(ctx.isa), &scratch) };
            }
        }
    }

    /// The unit for some images, output channels and rows of a group.
    unsafe fn unit<'a>(
        &self,
        ctx: &Context,
        plan: &'a Plan,
        group: usize,
        images: Range<usize>,
        channels: Range<usize>,
        rows: Range<usize>,
    ) -> Unit<'a> {
        let mut spatial = plan.spatial;
        let axis = &mut spatial[plan.axis];
        axis.output = rows.len();
        axis.padding_low -= (rows.start * axis.stride) as isize;
        let (group, image, channel) = (group as isize, images.start as isize, channels.start as isize);
        let lhs = group * self.lhs_group_stride + image * self.lhs_batch_stride;
        let rhs = group * self.rhs_group_stride + channel * self.rhs_out_stride;
        let out = group * self.out_group_stride
            + image * self.out_batch_stride
            + channel * self.out_feature_stride
            + rows.start as isize * axis.out_stride;
        let at = |tensor: &Tensor, offset: isize| {
            // SAFETY: the offset stays inside the declared access.
            unsafe { ctx.pointer::<u8>(tensor.addr).offset(offset * tensor.elem.size() as isize) }
        };
        let strides = Strides {
            image: self.lhs_batch_stride,
            channel: self.lhs_feature_stride,
            spatial: spatial.map(|s| s.lhs_stride),
        };
        Unit {
            plan,
            spatial,
            images: images.len(),
            in_channels: self.in_channels,
            out_channels: channels.len(),
            source: Source { from: at(&self.lhs, lhs), elem: self.lhs.elem, strides },
            kernel: Part {
                at: at(&self.rhs, rhs),
                elem: self.rhs.elem,
                outer: self.rhs_in_stride,
                channel: self.rhs_out_stride,
            },
            out: Part {
                at: at(&self.out, out),
                elem: self.out.elem,
                outer: self.out_batch_stride,
                channel: self.out_feature_stride,
            },
        }
    }
}

/// Part `index` of `0..total`, cut into `parts` at multiples of `grain`.
fn cut(total: usize, grain: usize, parts: usize, index: usize) -> Range<usize> {
    let grains = total.div_ceil(grain);
    let at = |i: usize| (grains * i / parts * grain).min(total);
    at(index)..at(index + 1)
}
