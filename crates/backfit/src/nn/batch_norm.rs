//! Batch normalisation.

use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::{Graph, Init, Tensor, Type};

/// `[N, C, *]` brought to mean 0 and variance 1 per channel over the batch, then scaled by `weight` and shifted by
/// `bias`, both `[C]`; momentum 0.1, ε = 1e-5. A step moves `running_mean` and `running_var`, which evaluation and
/// prediction use.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 16, 14, 14]);
/// assert_eq!(nn::batch_norm(&g, "bn", &x).ty(), x.ty());
/// ```
#[track_caller]
pub fn batch_norm(g: &Graph, name: &str, x: &Tensor) -> Tensor {
    BatchNorm::new(name).apply(g, x)
}

/// [`batch_norm`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("image", F32, [8, 16, 14, 14]);
/// let valid = g.input("valid", F32, [8]);
/// assert_eq!(nn::BatchNorm::new("bn").momentum(0.01).mask(&valid).apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug)]
pub struct BatchNorm {
    name: String,
    momentum: f64,
    epsilon: f64,
    mask: Option<Tensor>,
}

impl BatchNorm {
    /// With momentum 0.1 and ε = 1e-5.
    pub fn new(name: &str) -> Self {
        BatchNorm { name: name.to_owned(), momentum: 0.1, epsilon: 1e-5, mask: None }
    }

    /// How far a step moves the running statistics towards those of the batch.
    pub fn momentum(self, momentum: f64) -> Self {
        BatchNorm { momentum, ..self }
    }

    /// Another ε.
    pub fn epsilon(self, epsilon: f64) -> Self {
        BatchNorm { epsilon, ..self }
    }

    /// `[N]`, 1 for samples and 0 for padding, which does not count in the statistics: the input `valid`.
    pub fn mask(self, mask: &Tensor) -> Self {
        BatchNorm { mask: Some(mask.clone()), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let ty = || Type::new(x.dtype(), [x.shape().get(1).copied().unwrap_or(1)]);
        let weight = g.weight("weight", ty(), Init::ONES);
        let bias = g.weight("bias", ty(), Init::ZEROS);
        let running_mean = g.state("running_mean", ty(), Init::ZEROS);
        let running_var = g.state("running_var", ty(), Init::ONES);
        let parameters = BatchNormParameters {
            weight: &weight,
            bias: &bias,
            running_mean: &running_mean,
            running_var: &running_var,
        };
        let normed = x.batch_norm(parameters, self.mask.as_ref(), self.momentum, self.epsilon);
        g.update(&running_mean, &normed.running_mean);
        g.update(&running_var, &normed.running_var);
        normed.y
    }
}
