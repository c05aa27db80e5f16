//! Root mean square normalisation.

use backfit_ir::{Graph, Init, Tensor, Type};

/// Rows over the last axis brought to root mean square 1, then scaled by `weight`; ε = 1e-6.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::rms_norm(&g, "norm", &x).ty(), x.ty());
/// ```
#[track_caller]
pub fn rms_norm(g: &Graph, name: &str, x: &Tensor) -> Tensor {
    RmsNorm::new(name).apply(g, x)
}

/// [`rms_norm`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 64]);
/// assert_eq!(nn::RmsNorm::new("norm").epsilon(1e-5).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RmsNorm {
    name: String,
    epsilon: f64,
}

impl RmsNorm {
    /// With ε = 1e-6.
    pub fn new(name: &str) -> Self {
        RmsNorm { name: name.to_owned(), epsilon: 1e-6 }
    }

    /// Another ε.
    pub fn epsilon(self, epsilon: f64) -> Self {
        RmsNorm { epsilon, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let weight = g.weight("weight", Type::new(x.dtype(), [x.dim(-1)]), Init::ONES);
        x.rms_norm(Some(&weight), self.epsilon)
    }
}
