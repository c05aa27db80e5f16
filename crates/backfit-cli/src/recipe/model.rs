//! The tables `[model]` and `[loss]`.

use super::Checks;
use serde::{Deserialize, Serialize};

/// The table `[model]`. What goes in and comes out is known from the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its architecture.
    pub kind: Kind,
    /// Widths of the hidden layers, of `mlp` and `cnn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<usize>>,
    /// Channels of the convolutions, of `cnn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<usize>>,
    /// Side of the convolutions' kernels, of `cnn`; 3 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<usize>,
    /// The highest power, of `polynomial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<usize>,
    /// Between layers, of `mlp` and `cnn`; relu unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// The share of hidden values that are dropped in training, of `mlp` and `cnn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout: Option<f64>,
}

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Linear layers with activations between them.
    Mlp,
    /// Convolutions, each with an activation and a maximum over 2×2, then an MLP.
    Cnn,
    /// A weighted sum of the powers of every feature.
    Polynomial,
    /// One linear layer.
    Linear,
}

/// An activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names of the field
pub enum Activation {
    #[default]
    Relu,
    LeakyRelu,
    Elu,
    Gelu,
    GeluTanh,
    Silu,
    Tanh,
    Sigmoid,
}

/// The table `[loss]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Which.
    pub name: LossName,
    /// How the losses of samples become one number; mean unless given.
    #[serde(default)]
    pub reduction: Reduction,
    /// ε of `cross_entropy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_smoothing: Option<f64>,
    /// δ of `huber`; 1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
}

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names of the field
pub enum LossName {
    CrossEntropy,
    Mse,
    L1,
    Huber,
}

/// How the losses of samples become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Reduction {
    #[default]
    Mean,
    Sum,
}

/// No layer may be wider: more is a slip of the pen.
const WIDEST: usize = 1 << 20;

impl Model {
    /// Checks every value.
    pub fn check(&self, c: &mut Checks) {
        let hidden = matches!(self.kind, Kind::Mlp | Kind::Cnn);
        if !hidden {
            let by = "this kind of model";
            c.unused(&self.layers, "model.layers", by, "remove it, or set model.kind to \"mlp\"");
            c.unused(&self.activation, "model.activation", by, "remove it, or set model.kind to \"mlp\"");
            c.unused(&self.dropout, "model.dropout", by, "remove it, or set model.kind to \"mlp\"");
        }
        if self.kind != Kind::Cnn {
            let by = "this kind of model";
            c.unused(&self.channels, "model.channels", by, "remove it, or set model.kind to \"cnn\"");
            c.unused(&self.kernel, "model.kernel", by, "remove it, or set model.kind to \"cnn\"");
        }
        if self.kind == Kind::Cnn {
            let some = self.channels.as_ref().is_some_and(|c| !c.is_empty());
            c.require(some, "model.channels", "a cnn needs at least one convolution", "such as channels = [16, 32]");
        }
        match (self.kind, self.degree) {
            (Kind::Polynomial, degree) => c.require(
                degree.is_some_and(|d| (1..=16).contains(&d)),
                "model.degree",
                "a polynomial needs a degree from 1 to 16",
                "such as degree = 3",
            ),
            _ => c.unused(&self.degree, "model.degree", "this kind of model", "set model.kind to \"polynomial\""),
        }
        for (key, widths) in [("model.layers", &self.layers), ("model.channels", &self.channels)] {
            let sound = widths.iter().flatten().all(|w| (1..=WIDEST).contains(w));
            c.require(sound, key, "every width must be from 1 to 1048576", "correct or remove the width");
        }
        let odd = self.kernel.is_none_or(|k| k % 2 == 1 && k <= 31);
        c.require(odd, "model.kernel", "the side of a kernel must be odd and at most 31", "give 3 or 5");
        let share = self.dropout.is_none_or(|d| (0.0..1.0).contains(&d));
        c.require(share, "model.dropout", "the share must be at least 0 and below 1", "give a share such as 0.1");
    }
}

impl Loss {
    /// Checks every value.
    pub fn check(&self, c: &mut Checks) {
        if !self.is_of_classes() {
            let help = "remove it, or set loss.name to \"cross_entropy\"";
            c.unused(&self.label_smoothing, "loss.label_smoothing", "this loss", help);
        }
        if self.name != LossName::Huber {
            c.unused(&self.delta, "loss.delta", "this loss", "remove it, or set loss.name to \"huber\"");
        }
        let share = self.label_smoothing.is_none_or(|s| (0.0..1.0).contains(&s));
        c.require(share, "loss.label_smoothing", "it must be at least 0 and below 1", "give a share such as 0.1");
        let positive = self.delta.is_none_or(|d| d > 0.0 && d.is_finite());
        c.require(positive, "loss.delta", "it must be positive", "give a number such as 1.0");
    }

    /// Whether it compares logits with labels.
    pub fn is_of_classes(&self) -> bool {
        self.name == LossName::CrossEntropy
    }
}
