//! How a convolution is cut: inner dimension, images, rows of output.

use super::{Convolution, Spatial};
use crate::gemm::micro::MAX_COLS;
use crate::gemm::sweep::{MAX_INNER, inner_block};

/// Output positions that a unit of work aims at.
const UNIT_POSITIONS: usize = 2048;
/// Numbers of padded image that a unit keeps, where one block of the inner dimension does not need more.
const IMAGE_NUMBERS: usize = 64 * 1024;
/// Output channels of a unit.
pub(super) const UNIT_CHANNELS: usize = 512;

/// Spatial dimensions filled up to three, and the sizes of a unit of work: some images × some rows of output.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Outermost first; those missing come first and have extent 1.
    pub spatial: [Spatial; 3],
    /// The outermost dimension with more than one output position; rows are cut along it.
    pub axis: usize,
    /// Positions of `axis` in a unit, at most.
    pub rows: usize,
    /// Images in a unit, at most.
    pub images: usize,
    /// In-channels in one block of the inner dimension.
    pub channels: usize,
    /// Kernel positions in one block of the inner dimension.
    pub taps: usize,
}

const UNIT_DIMENSION: Spatial = Spatial {
    input: 1,
    kernel: 1,
    output: 1,
    stride: 1,
    padding_low: 0,
    base_dilation: 1,
    window_dilation: 1,
    lhs_stride: 0,
    rhs_stride: 0,
    out_stride: 0,
};

impl Spatial {
    /// Positions of the dilated and padded input that the windows reach over.
    pub(super) fn extent(&self) -> usize {
        if self.output == 0 || self.kernel == 0 {
            return 0;
        }
        (self.output - 1) * self.stride + (self.kernel - 1) * self.window_dilation + 1
    }
}

/// The product of a property of all dimensions.
pub(super) fn volume(spatial: &[Spatial; 3], of: fn(&Spatial) -> usize) -> usize {
    spatial.iter().map(of).product()
}

impl Plan {
    /// The plan of a convolution: a matter of its shape alone.
    pub fn new(convolution: &Convolution) -> Plan {
        let mut spatial = [UNIT_DIMENSION; 3];
        spatial[3 - convolution.spatial.len()..].copy_from_slice(&convolution.spatial);
        let kernel = volume(&spatial, |s| s.kernel);
        let (channels, taps) = if kernel >= MAX_INNER {
            (1, inner_block(kernel))
        } else {
            let most = MAX_INNER / kernel.max(1);
            let blocks = convolution.in_channels.div_ceil(most).max(1);
            (convolution.in_channels.div_ceil(blocks).max(1), kernel.max(1))
        };
        let axis = spatial.iter().position(|s| s.output > 1).unwrap_or(2);
        let positions = volume(&spatial, |s| s.output).max(1);
        let row = (positions / spatial[axis].output.max(1)).max(1);
        let rows = (UNIT_POSITIONS / row).clamp(1, spatial[axis].output.max(1));
        let mut plan = Plan { spatial, axis, rows, images: 1, channels, taps };
        let block = (channels * plan.unit_extent()).max(1);
        let most = (UNIT_POSITIONS / (rows * row)).min(IMAGE_NUMBERS / block);
        plan.images = most.clamp(1, convolution.batch.max(1));
        plan
    }

    /// Numbers of one channel of one image in a unit.
    pub fn unit_extent(&self) -> usize {
        let mut spatial = self.spatial;
        spatial[self.axis].output = spatial[self.axis].output.min(self.rows);
        volume(&spatial, Spatial::extent)
    }

    /// Output positions of one image in a unit, at most.
    fn unit_positions(&self) -> usize {
        let mut spatial = self.spatial;
        spatial[self.axis].output = spatial[self.axis].output.min(self.rows);
        volume(&spatial, |s| s.output)
    }

    /// In-channels that are padded at a time for a unit of so many images: whole blocks.
    pub fn chunk(&self, images: usize) -> usize {
        let block = images * self.channels * self.unit_extent();
        (IMAGE_NUMBERS / block.max(1)).max(1) * self.channels
    }

    /// Longest block of the inner dimension.
    pub fn inner(&self) -> usize {
        self.channels * self.taps
    }

    /// Numbers of scratch: padded image, packed kernel, a packed panel of image, sums.
    pub fn scratch(&self, out_channels: usize) -> [usize; 4] {
        let block = self.images * self.channels * self.unit_extent();
        let channels = out_channels.min(UNIT_CHANNELS);
        [
            block.max(IMAGE_NUMBERS) + 2 * MAX_COLS,
            channels.next_multiple_of(MAX_COLS) * self.inner(),
            MAX_COLS * self.inner(),
            self.images * self.unit_positions() * channels,
        ]
    }
}
