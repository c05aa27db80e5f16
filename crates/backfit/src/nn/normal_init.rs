//! The initial values that GPT-2 gives its linear layers.

use super::Linear;
use backfit_ir::Init;

/// Weights at N(0, `std`²), those that feed a residual sum at N(0, `residual`²), biases at zero.
///
/// ```
/// use backfit::nn::NormalInit;
/// let init = NormalInit::gpt2(8);
/// assert_eq!((init.std, init.residual), (0.02, 0.005));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalInit {
    /// Of weights in general.
    pub std: f64,
    /// Of the last weight of a branch, whose result is added to the residual stream.
    pub residual: f64,
}

impl NormalInit {
    /// σ = 0.02, and 0.02/√(2·blocks) for what is added to the residual stream: twice in every block (Radford et al. 2019).
    pub fn gpt2(blocks: usize) -> Self {
        NormalInit { std: 0.02, residual: 0.02 / (2.0 * blocks.max(1) as f64).sqrt() }
    }

    /// A linear layer that starts like this, or as usual.
    pub(super) fn linear(init: Option<Self>, name: &str, out_features: usize) -> Linear {
        normal(Linear::new(name, out_features), init.map(|i| i.std))
    }

    /// The same for one at the end of a branch.
    pub(super) fn residual_linear(init: Option<Self>, name: &str, out_features: usize) -> Linear {
        normal(Linear::new(name, out_features), init.map(|i| i.residual))
    }
}

fn normal(linear: Linear, std: Option<f64>) -> Linear {
    match std {
        Some(std) => linear.init(Init::Normal { mean: 0.0, std }).bias_init(Init::ZEROS),
        None => linear,
    }
}
