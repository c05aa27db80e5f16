//! Layer normalisation.

use backfit_ir::{Graph, Init, Tensor, Type};

/// Rows over the last axis brought to mean 0 and variance 1, then scaled by `weight` and shifted by `bias`; ε = 1e-5.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::layer_norm(&g, "norm", &x).ty(), x.ty());
/// ```
#[track_caller]
pub fn layer_norm(g: &Graph, name: &str, x: &Tensor) -> Tensor {
    LayerNorm::new(name).apply(g, x)
}

/// [`layer_norm`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 64]);
/// assert_eq!(nn::LayerNorm::new("norm").bias(false).epsilon(1e-6).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    name: String,
    bias: bool,
    epsilon: f64,
}

impl LayerNorm {
    /// With weight and bias, ε = 1e-5.
    pub fn new(name: &str) -> Self {
        LayerNorm { name: name.to_owned(), bias: true, epsilon: 1e-5 }
    }

    /// With or without a bias.
    pub fn bias(self, bias: bool) -> Self {
        LayerNorm { bias, ..self }
    }

    /// Another ε.
    pub fn epsilon(self, epsilon: f64) -> Self {
        LayerNorm { epsilon, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let ty = Type::new(x.dtype(), [x.dim(-1)]);
        let weight = g.weight("weight", ty.clone(), Init::ONES);
        let bias = if self.bias { Some(g.weight("bias", ty, Init::ZEROS)) } else { None };
        x.layer_norm(Some(&weight), bias.as_ref(), self.epsilon)
    }
}
