//! What the poolings have in common: windows over images `[N, C, H, W]`.

use super::composite::{accepted, float, pair, rank};
use super::definition::{OpDef, Sample, values};
use super::elementwise::arity;
use super::reduce_window::Window;
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::shape::Type;

/// One float image batch.
pub fn check_images(types: &[Type]) -> Result<(), String> {
    arity(types, 1)?;
    float("x", &types[0])?;
    rank("x", &types[0], 4, "[N, C, H, W]")
}

fn parse(a: &Attributes) -> Result<[[usize; 2]; 3], String> {
    let [kernel, stride, padding] = [pair(a, "kernel")?, pair(a, "stride")?, pair(a, "padding")?];
    if kernel.contains(&0) || stride.contains(&0) {
        return Err(format!("kernel {kernel:?} and stride {stride:?} must be at least 1"));
    }
    if kernel.iter().chain(&stride).any(|&v| v > 1 << 32) {
        return Err(format!("kernel {kernel:?} or stride {stride:?} is too large to address"));
    }
    if padding[0] > kernel[0] / 2 || padding[1] > kernel[1] / 2 {
        return Err(format!("padding {padding:?} is more than half of the kernel {kernel:?}"));
    }
    Ok([kernel, stride, padding])
}

/// Images, and windows that hold at least one of their elements each.
pub fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    check_images(types)?;
    parse(attributes).map(drop)
}

/// The windows, and how many elements each has.
pub fn window(attributes: &Attributes) -> (Window, usize) {
    let [kernel, stride, padding] = accepted(parse(attributes));
    let axes = |first: usize, [height, width]: [usize; 2]| vec![first, first, height, width];
    let window = Window {
        stride: axes(1, stride),
        pad_low: axes(0, padding),
        pad_high: axes(0, padding),
        ..Window::dense(&axes(1, kernel))
    };
    (window, kernel[0] * kernel[1])
}

impl Tensor {
    /// Calls a pooling.
    #[track_caller]
    pub(crate) fn pool(&self, def: &'static OpDef, windows: [[usize; 2]; 3]) -> Tensor {
        let [kernel, stride, padding] = &windows;
        let attributes =
            Attributes::new().with("kernel", &kernel[..]).with("stride", &stride[..]).with("padding", &padding[..]);
        self.compose(def, &[], attributes)
    }
}

/// Cases for a pooling.
pub fn samples(pool: fn(&Tensor, [usize; 2], [usize; 2], [usize; 2]) -> Tensor) -> Vec<Sample> {
    let with = move |kernel, stride, padding| move |_: &_, x: &[Tensor]| vec![pool(&x[0], kernel, stride, padding)];
    let images = |shape: &[usize]| vec![values::tensor(shape, -4.0, 4.0, 1)];
    vec![
        Sample::floats("windows apart", images(&[2, 2, 4, 6]), with([2, 3], [2, 3], [0, 0])),
        Sample::floats("windows overlap, padding", images(&[1, 2, 5, 6]), with([3, 2], [2, 1], [1, 1])),
        Sample::floats("rest that fills no window", images(&[1, 1, 5, 5]), with([2, 2], [2, 2], [0, 0])),
        Sample::floats("one window", images(&[1, 2, 3, 3]), with([3, 3], [1, 1], [0, 0])),
    ]
}
