//! Blocks of transformers.

use super::{FeedForward, LayerNorm, MultiHeadAttention, NormalInit, Past, RmsNorm, SwiGlu};
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::{Graph, Tensor};

/// A block over `[B, S, E]`: x + attention(norm1(x)), then that + feed-forward(norm2(that)); layer norms, GELU.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::transformer_block(&g, "block0", &x, 4, 256).ty(), x.ty());
/// ```
#[track_caller]
pub fn transformer_block(g: &Graph, name: &str, x: &Tensor, heads: usize, hidden: usize) -> Tensor {
    TransformerBlock::new(name, heads, hidden).apply(g, x)
}

/// [`transformer_block`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// let block = nn::TransformerBlock::new("block0", 4, 192).causal(true).gated().kv_heads(2).rotary(Rotary::default());
/// assert_eq!(block.apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug)]
pub struct TransformerBlock {
    name: String,
    hidden: usize,
    attention: MultiHeadAttention,
    gated: bool,
    epsilon: Option<f64>,
    init: Option<NormalInit>,
    dropout: f64,
}

impl TransformerBlock {
    /// As GPT-2 has it, but not causal: layer norms, GELU, biases.
    pub fn new(name: &str, heads: usize, hidden: usize) -> Self {
        let attention = MultiHeadAttention::new("attn", heads);
        let name = name.to_owned();
        TransformerBlock { name, hidden, attention, gated: false, epsilon: None, init: None, dropout: 0.0 }
    }

    /// As Llama has it: root mean square norms, SwiGLU, no biases.
    pub fn gated(mut self) -> Self {
        self.gated = true;
        self.attention = self.attention.bias(false);
        self
    }

    /// Whether a position sees itself and those before it only.
    pub fn causal(mut self, causal: bool) -> Self {
        self.attention = self.attention.causal(causal);
        self
    }

    /// Fewer heads of keys and values, each shared by a group of query heads.
    pub fn kv_heads(mut self, kv_heads: usize) -> Self {
        self.attention = self.attention.kv_heads(kv_heads);
        self
    }

    /// Features of a head; E / heads unless set.
    pub fn head_width(mut self, width: usize) -> Self {
        self.attention = self.attention.head_width(width);
        self
    }

    /// Norms of every head's queries and keys, with this ε.
    pub fn head_norm(mut self, epsilon: f64) -> Self {
        self.attention = self.attention.head_norm(epsilon);
        self
    }

    /// Turns queries and keys by their position.
    pub fn rotary(mut self, rotary: Rotary) -> Self {
        self.attention = self.attention.rotary(rotary);
        self
    }

    /// ε of the norms; that of [`LayerNorm`] or [`RmsNorm`] unless set.
    pub fn epsilon(self, epsilon: f64) -> Self {
        TransformerBlock { epsilon: Some(epsilon), ..self }
    }

    /// Weights that start normally distributed; biases start at zero.
    pub fn init(mut self, init: NormalInit) -> Self {
        self.attention = self.attention.init(init);
        TransformerBlock { init: Some(init), ..self }
    }

    /// Dropout of what attention and feed-forward network add.
    pub fn dropout(self, rate: f64) -> Self {
        TransformerBlock { dropout: rate, ..self }
    }

    /// Builds the block.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let _scope = g.enter(&self.name);
        let normed = self.norm(g, "norm1", x);
        let attended = self.attention.apply(g, &normed);
        self.fed_forward(g, &(x + &attended.dropout(self.dropout)))
    }

    /// Builds the block for the next token alone, `[B, 1, E]`. It must be causal; see [`MultiHeadAttention::decode`].
    #[track_caller]
    pub fn decode(&self, g: &Graph, x: &Tensor, past: Past) -> Tensor {
        let _scope = g.enter(&self.name);
        let normed = self.norm(g, "norm1", x);
        let attended = self.attention.decode(g, &normed, past);
        self.fed_forward(g, &(x + &attended))
    }

    /// The second half: x + feed-forward(norm2(x)).
    #[track_caller]
    fn fed_forward(&self, g: &Graph, x: &Tensor) -> Tensor {
        let normed = self.norm(g, "norm2", x);
        let fed = if self.gated {
            let layer = SwiGlu::new("mlp", self.hidden);
            self.init.into_iter().fold(layer, SwiGlu::init).apply(g, &normed)
        } else {
            let layer = FeedForward::new("mlp", self.hidden);
            self.init.into_iter().fold(layer, FeedForward::init).apply(g, &normed)
        };
        x + &fed.dropout(self.dropout)
    }

    #[track_caller]
    fn norm(&self, g: &Graph, name: &str, x: &Tensor) -> Tensor {
        if self.gated {
            let norm = RmsNorm::new(name);
            self.epsilon.into_iter().fold(norm, RmsNorm::epsilon).apply(g, x)
        } else {
            let norm = LayerNorm::new(name);
            self.epsilon.into_iter().fold(norm, LayerNorm::epsilon).apply(g, x)
        }
    }
}
