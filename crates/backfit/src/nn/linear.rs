//! Linear layers.

use backfit_ir::{Graph, Init, Tensor, Type};

/// y = x · weightᵀ + bias over the last axis. Weight `[out, in]` and bias `[out]` start at U(−1/√in, 1/√in).
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 4]);
/// assert_eq!(nn::linear(&g, "fc", &x, 3).ty().to_string(), "f32[8,3]");
/// ```
#[track_caller]
pub fn linear(g: &Graph, name: &str, x: &Tensor, out_features: usize) -> Tensor {
    Linear::new(name, out_features).apply(g, x)
}

/// [`linear`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 4]);
/// let y = nn::Linear::new("fc", 3).bias(false).init(Init::kaiming_normal(4)).apply(&g, &x);
/// assert_eq!(y.ty().to_string(), "f32[8,3]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    name: String,
    out_features: usize,
    bias: bool,
    init: Option<Init>,
    bias_init: Option<Init>,
}

impl Linear {
    /// A layer with a bias.
    pub fn new(name: &str, out_features: usize) -> Self {
        Linear { name: name.to_owned(), out_features, bias: true, init: None, bias_init: None }
    }

    /// With or without a bias.
    pub fn bias(self, bias: bool) -> Self {
        Linear { bias, ..self }
    }

    /// Another start of the weight.
    pub fn init(self, init: Init) -> Self {
        Linear { init: Some(init), ..self }
    }

    /// Another start of the bias.
    pub fn bias_init(self, init: Init) -> Self {
        Linear { bias_init: Some(init), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let (inputs, outputs, dtype) = (x.dim(-1), self.out_features, x.dtype());
        let default = Init::fan_in_uniform(inputs);
        let init = self.init.clone().unwrap_or_else(|| default.clone());
        let weight = g.weight("weight", Type::new(dtype, [outputs, inputs]), init);
        let bias_init = self.bias_init.clone().unwrap_or(default);
        let bias = if self.bias { Some(g.weight("bias", Type::new(dtype, [outputs]), bias_init)) } else { None };
        x.linear(&weight, bias.as_ref())
    }
}
