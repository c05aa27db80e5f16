//! How resident tensors start.

use crate::literal::Literal;

/// The starting value of a weight or state.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// The same number everywhere.
    Constant(f64),
    /// Uniform in `[low, high)`.
    Uniform {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// These very values.
    Literal(Literal),
}

impl Init {
    /// All zeros.
    pub const ZEROS: Init = Init::Constant(0.0);
    /// All ones.
    pub const ONES: Init = Init::Constant(1.0);

    /// PyTorch's default for linear and convolution weights and biases: U(−1/√fan_in, 1/√fan_in).
    pub fn fan_in_uniform(fan_in: usize) -> Init {
        let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
        Init::Uniform { low: -bound, high: bound }
    }

    /// Glorot & Bengio 2010: U(−a, a) with a = √(6 / (fan_in + fan_out)).
    pub fn xavier_uniform(fan_in: usize, fan_out: usize) -> Init {
        let bound = (6.0 / (fan_in + fan_out).max(1) as f64).sqrt();
        Init::Uniform { low: -bound, high: bound }
    }

    /// Glorot & Bengio 2010: N(0, 2 / (fan_in + fan_out)).
    pub fn xavier_normal(fan_in: usize, fan_out: usize) -> Init {
        Init::Normal { mean: 0.0, std: (2.0 / (fan_in + fan_out).max(1) as f64).sqrt() }
    }

    /// He et al. 2015 for rectifiers: U(−a, a) with a = √(6 / fan_in).
    pub fn kaiming_uniform(fan_in: usize) -> Init {
        let bound = (6.0 / fan_in.max(1) as f64).sqrt();
        Init::Uniform { low: -bound, high: bound }
    }

    /// He et al. 2015 for rectifiers: N(0, 2 / fan_in).
    pub fn kaiming_normal(fan_in: usize) -> Init {
        Init::Normal { mean: 0.0, std: (2.0 / fan_in.max(1) as f64).sqrt() }
    }
}
