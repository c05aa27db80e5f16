//! Group normalisation.

use backfit_ir::{Graph, Init, Tensor, Type};

/// `[N, C, *]` brought to mean 0 and variance 1 over groups of channels and all positions, then scaled by `weight` and
/// shifted by `bias`, both `[C]`; ε = 1e-5.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 32, 14, 14]);
/// assert_eq!(nn::group_norm(&g, "norm", &x, 4).ty(), x.ty());
/// ```
#[track_caller]
pub fn group_norm(g: &Graph, name: &str, x: &Tensor, groups: usize) -> Tensor {
    GroupNorm::new(name, groups).apply(g, x)
}

/// [`group_norm`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 32, 14, 14]);
/// assert_eq!(nn::GroupNorm::new("norm", 8).epsilon(1e-6).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNorm {
    name: String,
    groups: usize,
    epsilon: f64,
}

impl GroupNorm {
    /// With ε = 1e-5.
    pub fn new(name: &str, groups: usize) -> Self {
        GroupNorm { name: name.to_owned(), groups, epsilon: 1e-5 }
    }

    /// Another ε.
    pub fn epsilon(self, epsilon: f64) -> Self {
        GroupNorm { epsilon, ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let ty = Type::new(x.dtype(), [x.shape().get(1).copied().unwrap_or(1)]);
        let weight = g.weight("weight", ty.clone(), Init::ONES);
        let bias = g.weight("bias", ty, Init::ZEROS);
        x.group_norm(self.groups, Some(&weight), Some(&bias), self.epsilon)
    }
}
