//! The two-layer networks of transformers.

use super::NormalInit;
use backfit_ir::{Graph, Tensor};

/// `fc2(gelu(fc1(x)))` over the last axis, with `hidden` features between.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::feed_forward(&g, "mlp", &x, 256).ty(), x.ty());
/// ```
#[track_caller]
pub fn feed_forward(g: &Graph, name: &str, x: &Tensor, hidden: usize) -> Tensor {
    FeedForward::new(name, hidden).apply(g, x)
}

/// [`feed_forward`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 64]);
/// assert_eq!(nn::FeedForward::new("mlp", 256).activation(Tensor::relu).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug)]
pub struct FeedForward {
    name: String,
    hidden: usize,
    activation: fn(&Tensor) -> Tensor,
    bias: bool,
    init: Option<NormalInit>,
}

impl FeedForward {
    /// With GELU and biases.
    pub fn new(name: &str, hidden: usize) -> Self {
        FeedForward { name: name.to_owned(), hidden, activation: Tensor::gelu, bias: true, init: None }
    }

    /// Another activation.
    pub fn activation(self, activation: fn(&Tensor) -> Tensor) -> Self {
        FeedForward { activation, ..self }
    }

    /// With or without biases.
    pub fn bias(self, bias: bool) -> Self {
        FeedForward { bias, ..self }
    }

    /// Weights that start normally distributed; biases start at zero.
    pub fn init(self, init: NormalInit) -> Self {
        FeedForward { init: Some(init), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let hidden = NormalInit::linear(self.init, "fc1", self.hidden).bias(self.bias).apply(g, x);
        let hidden = (self.activation)(&hidden);
        NormalInit::residual_linear(self.init, "fc2", x.dim(-1)).bias(self.bias).apply(g, &hidden)
    }
}

/// `down(silu(gate(x)) · up(x))` over the last axis, with `hidden` features between and no biases (Shazeer 2020).
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::swiglu(&g, "mlp", &x, 192).ty(), x.ty());
/// ```
#[track_caller]
pub fn swiglu(g: &Graph, name: &str, x: &Tensor, hidden: usize) -> Tensor {
    SwiGlu::new(name, hidden).apply(g, x)
}

/// [`swiglu`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 64]);
/// assert_eq!(nn::SwiGlu::new("mlp", 192).bias(true).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SwiGlu {
    name: String,
    hidden: usize,
    bias: bool,
    init: Option<NormalInit>,
}

impl SwiGlu {
    /// Without biases.
    pub fn new(name: &str, hidden: usize) -> Self {
        SwiGlu { name: name.to_owned(), hidden, bias: false, init: None }
    }

    /// With or without biases.
    pub fn bias(self, bias: bool) -> Self {
        SwiGlu { bias, ..self }
    }

    /// Weights that start normally distributed; biases start at zero.
    pub fn init(self, init: NormalInit) -> Self {
        SwiGlu { init: Some(init), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let gate = NormalInit::linear(self.init, "gate", self.hidden).bias(self.bias).apply(g, x).silu();
        let up = NormalInit::linear(self.init, "up", self.hidden).bias(self.bias).apply(g, x);
        NormalInit::residual_linear(self.init, "down", x.dim(-1)).bias(self.bias).apply(g, &(&gate * &up))
    }
}
