//! Two-dimensional convolutions.

use backfit_ir::ops::conv2d::Conv2d as Options;
use backfit_ir::{Graph, Init, Tensor, Type};

/// The convolution of images `[N, C, H, W]` with a bias, stride 1 and no padding: `[N, out, H − kh + 1, W − kw + 1]`.
/// Weight `[out, C, kh, kw]` and bias start at U(−1/√fan, 1/√fan) with fan = C · kh · kw.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 1, 28, 28]);
/// assert_eq!(nn::conv2d(&g, "conv1", &x, 16, [3, 3]).ty().to_string(), "f32[8,16,26,26]");
/// ```
#[track_caller]
pub fn conv2d(g: &Graph, name: &str, x: &Tensor, out_channels: usize, kernel: [usize; 2]) -> Tensor {
    Conv2d::new(name, out_channels, kernel).apply(g, x)
}

/// [`conv2d`] with options; extents are height, then width.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 16, 28, 28]);
/// let y = nn::Conv2d::new("conv1", 32, [3, 3]).padding([1, 1]).stride([2, 2]).groups(4).apply(&g, &x);
/// assert_eq!(y.ty().to_string(), "f32[8,32,14,14]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    name: String,
    out_channels: usize,
    kernel: [usize; 2],
    options: Options,
    bias: bool,
    init: Option<Init>,
}

impl Conv2d {
    /// A layer with a bias, stride 1, no padding.
    pub fn new(name: &str, out_channels: usize, kernel: [usize; 2]) -> Self {
        Conv2d { name: name.to_owned(), out_channels, kernel, options: Options::default(), bias: true, init: None }
    }

    /// Step of the kernel.
    pub fn stride(mut self, stride: [usize; 2]) -> Self {
        self.options.stride = stride;
        self
    }

    /// Zeros around the image.
    pub fn padding(mut self, padding: [usize; 2]) -> Self {
        self.options.padding = padding;
        self
    }

    /// Distance of the kernel's elements.
    pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
        self.options.dilation = dilation;
        self
    }

    /// Input and output channels are split into this many groups; as many as input channels make it depthwise.
    pub fn groups(mut self, groups: usize) -> Self {
        self.options.groups = groups;
        self
    }

    /// With or without a bias.
    pub fn bias(self, bias: bool) -> Self {
        Conv2d { bias, ..self }
    }

    /// Another start of the weight.
    pub fn init(self, init: Init) -> Self {
        Conv2d { init: Some(init), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let ([kh, kw], dtype) = (self.kernel, x.dtype());
        let channels = x.shape().get(1).copied().unwrap_or(1) / self.options.groups.max(1);
        let default = Init::fan_in_uniform(channels.saturating_mul(kh).saturating_mul(kw));
        let init = self.init.clone().unwrap_or_else(|| default.clone());
        let weight = g.weight("weight", Type::new(dtype, [self.out_channels, channels, kh, kw]), init);
        let bias =
            if self.bias { Some(g.weight("bias", Type::new(dtype, [self.out_channels]), default)) } else { None };
        x.conv2d(&weight, bias.as_ref(), self.options)
    }
}
