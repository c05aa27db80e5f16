//! Transposed two-dimensional convolutions.

use backfit_ir::ops::conv_transpose2d::ConvTranspose2d as Options;
use backfit_ir::{Graph, Init, Tensor, Type};

/// The transposed convolution of images `[N, C, H, W]` with a bias, stride 1 and no padding:
/// `[N, out, H + kh − 1, W + kw − 1]`. Weight `[C, out, kh, kw]` and bias start at U(−1/√fan, 1/√fan) with
/// fan = out · kh · kw, as in PyTorch.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 16, 7, 7]);
/// assert_eq!(nn::conv_transpose2d(&g, "up", &x, 8, [3, 3]).ty().to_string(), "f32[8,8,9,9]");
/// ```
#[track_caller]
pub fn conv_transpose2d(g: &Graph, name: &str, x: &Tensor, out_channels: usize, kernel: [usize; 2]) -> Tensor {
    ConvTranspose2d::new(name, out_channels, kernel).apply(g, x)
}

/// [`conv_transpose2d`] with options; extents are height, then width.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 16, 7, 7]);
/// let y = nn::ConvTranspose2d::new("up", 8, [2, 2]).stride([2, 2]).apply(&g, &x);
/// assert_eq!(y.ty().to_string(), "f32[8,8,14,14]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose2d {
    name: String,
    out_channels: usize,
    kernel: [usize; 2],
    options: Options,
    bias: bool,
    init: Option<Init>,
}

impl ConvTranspose2d {
    /// A layer with a bias, stride 1, no padding.
    pub fn new(name: &str, out_channels: usize, kernel: [usize; 2]) -> Self {
        let (name, options) = (name.to_owned(), Options::default());
        ConvTranspose2d { name, out_channels, kernel, options, bias: true, init: None }
    }

    /// Distance of the input's elements in the result.
    pub fn stride(mut self, stride: [usize; 2]) -> Self {
        self.options.stride = stride;
        self
    }

    /// How much is cut off around the result.
    pub fn padding(mut self, padding: [usize; 2]) -> Self {
        self.options.padding = padding;
        self
    }

    /// How much is added below and to the right.
    pub fn output_padding(mut self, output_padding: [usize; 2]) -> Self {
        self.options.output_padding = output_padding;
        self
    }

    /// Distance of the kernel's elements.
    pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
        self.options.dilation = dilation;
        self
    }

    /// Input and output channels are split into this many groups.
    pub fn groups(mut self, groups: usize) -> Self {
        self.options.groups = groups;
        self
    }

    /// With or without a bias.
    pub fn bias(self, bias: bool) -> Self {
        ConvTranspose2d { bias, ..self }
    }

    /// Another start of the weight.
    pub fn init(self, init: Init) -> Self {
        ConvTranspose2d { init: Some(init), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let ([kh, kw], dtype) = (self.kernel, x.dtype());
        let channels = x.shape().get(1).copied().unwrap_or(1);
        let outputs = self.out_channels / self.options.groups.max(1);
        let default = Init::fan_in_uniform(outputs.saturating_mul(kh).saturating_mul(kw));
        let init = self.init.clone().unwrap_or_else(|| default.clone());
        let weight = g.weight("weight", Type::new(dtype, [channels, outputs, kh, kw]), init);
        let bias =
            if self.bias { Some(g.weight("bias", Type::new(dtype, [self.out_channels]), default)) } else { None };
        x.conv_transpose2d(&weight, bias.as_ref(), self.options)
    }
}
