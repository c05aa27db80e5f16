//! The tables `[model]` and `[loss]`.

use super::Checks;
use super::range::{POSITIVE, is_positive};
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
    /// Between a convolution and its activation, of `cnn`; nothing unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm: Option<Norm>,
    /// The share of hidden values that are dropped in training, of `mlp` and `cnn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout: Option<f64>,
    /// Number of blocks, of `transformer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// Features of a position, of `transformer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Heads of attention, of `transformer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    /// Heads of keys and values, of `transformer`; as many as heads unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Features within the feed-forward networks, of `transformer`; about 8/3 of the width unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// Whether the head's weight is the embedding's, of `transformer`; it is unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tied: Option<bool>,
    /// What every block keeps for its backward pass, of `transformer`; the blocks are then one loop over stacked weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taps: Option<Taps>,
}

/// What a block keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taps {
    /// All that the backward pass needs.
    All,
    /// Its input.
    Inputs,
    /// What leaves scopes of these names, such as `attn`.
    Named(Vec<String>),
    /// As much as fits into so many bytes, for all blocks together.
    Budget(u64),
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
    /// A decoder-only transformer that predicts the next character of a text.
    Transformer,
}

/// A normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// Over the batch, for every channel.
    Batch,
    /// Over groups of eight channels, for every sample.
    Group,
}

impl Norm {
    /// Channels of a group.
    pub const GROUP: usize = 8;
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
        match self.kind {
            Kind::Cnn => self.check_cnn(c),
            Kind::Transformer => self.check_transformer(c),
            _ => c.unused(&self.norm, "model.norm", "this kind of model", "remove it, or set model.kind to \"cnn\""),
        }
        if self.kind != Kind::Transformer {
            let (by, help) = ("this kind of model", "remove it, or set model.kind to \"transformer\"");
            let sizes = [
                ("model.blocks", &self.blocks),
                ("model.width", &self.width),
                ("model.heads", &self.heads),
                ("model.kv_heads", &self.kv_heads),
                ("model.hidden", &self.hidden),
            ];
            sizes.into_iter().for_each(|(key, value)| c.unused(value, key, by, help));
            c.unused(&self.tied, "model.tied", by, help);
            c.unused(&self.taps, "model.taps", by, help);
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

    fn check_cnn(&self, c: &mut Checks) {
        let channels = self.channels.as_deref().unwrap_or_default();
        let none = channels.is_empty();
        c.require(!none, "model.channels", "a cnn needs at least one convolution", "such as channels = [16, 32]");
        let group = Norm::GROUP;
        let divides = self.norm != Some(Norm::Group) || channels.iter().all(|n| n % group == 0);
        let what = format_args!("groups of {group} channels do not divide them");
        c.require(
            divides,
            "model.channels",
            what,
            &format!("give multiples of {group}, or set model.norm to \"batch\""),
        );
    }

    fn check_transformer(&self, c: &mut Checks) {
        let help = "such as blocks = 4, width = 128, heads = 4";
        c.unused(&self.norm, "model.norm", "a transformer", "remove it");
        for (key, value, most) in [
            ("model.blocks", self.blocks, 1024),
            ("model.width", self.width, WIDEST),
            ("model.heads", self.heads, 1024),
        ] {
            let sound = value.is_some_and(|n| (1..=most).contains(&n));
            c.require(sound, key, format_args!("a transformer needs a number from 1 to {most}"), help);
        }
        let (heads, kv_heads) = (self.heads.unwrap_or(1).max(1), self.kv_heads.or(self.heads).unwrap_or(1));
        let even = self.width.is_none_or(|width| width % (2 * heads) == 0);
        c.require(even, "model.width", "every head needs an even number of features", "give a multiple of 2 · heads");
        let shared = kv_heads > 0 && heads % kv_heads == 0;
        c.require(shared, "model.kv_heads", "it does not divide the heads", "give a divisor of model.heads");
        let sound = self.hidden.is_none_or(|n| (1..=WIDEST).contains(&n));
        c.require(sound, "model.hidden", "the width must be from 1 to 1048576", "correct or remove it");
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
        let what = format_args!("it must be {POSITIVE}");
        c.require(self.delta.is_none_or(is_positive), "loss.delta", what, "give a number such as 1.0");
    }

    /// Whether it compares logits with labels.
    pub fn is_of_classes(&self) -> bool {
        self.name == LossName::CrossEntropy
    }
}
