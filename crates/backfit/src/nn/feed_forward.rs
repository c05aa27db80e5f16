//! The two-layer networks of transformers.

use super::Linear;
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
}

impl FeedForward {
    /// With GELU and biases.
    pub fn new(name: &str, hidden: usize) -> Self {
        FeedForward { name: name.to_owned(), hidden, activation: Tensor::gelu, bias: true }
    }

    /// Another activation.
    pub fn activation(self, activation: fn(&Tensor) -> Tensor) -> Self {
        FeedForward { activation, ..self }
    }

    /// With or without biases.
    pub fn bias(self, bias: bool) -> Self {
        FeedForward { bias, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let hidden = Linear::new("fc1", self.hidden).bias(self.bias).apply(g, x);
        let hidden = (self.activation)(&hidden);
        Linear::new("fc2", x.dim(-1)).bias(self.bias).apply(g, &hidden)
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwiGlu {
    name: String,
    hidden: usize,
    bias: bool,
}

impl SwiGlu {
    /// Without biases.
    pub fn new(name: &str, hidden: usize) -> Self {
        SwiGlu { name: name.to_owned(), hidden, bias: false }
    }

    /// With or without biases.
    pub fn bias(self, bias: bool) -> Self {
        SwiGlu { bias, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let gate = Linear::new("gate", self.hidden).bias(self.bias).apply(g, x).silu();
        let up = Linear::new("up", self.hidden).bias(self.bias).apply(g, x);
        Linear::new("down", x.dim(-1)).bias(self.bias).apply(g, &(&gate * &up))
    }
}
