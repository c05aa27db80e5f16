//! Decoder-only transformers of the Llama family.

use crate::nn::{Embedding, Linear, NormalInit, Past, RmsNorm, Stack, TransformerBlock};
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::{Graph, Init, Taps, Tensor};

/// A decoder-only transformer: embedding, blocks of causal attention and SwiGLU with root mean square norms before
/// them, a norm, and a head (Touvron et al. 2023; with head norms Qwen3, Yang et al. 2025). Weights start as GPT-2's:
/// N(0, 0.02²), divided by √(2·layers) where a branch ends.
///
/// ```
/// use backfit::models::Llama;
/// use backfit::prelude::*;
/// let model = Llama::new(65, 4, 128, 4);
/// let g = Graph::new();
/// let tokens = g.input("x", I32, [8, 32]);
/// assert_eq!(model.apply(&g, &tokens).ty().to_string(), "f32[8,32,65]");
/// assert_eq!(model.parameters(), 812_288);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Llama {
    /// Number of tokens.
    pub vocabulary: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Features of a position.
    pub width: usize,
    /// Features between the layers of the feed-forward networks.
    pub hidden: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Features of a head.
    pub head_width: usize,
    /// Whether the queries and keys of every head are normed.
    pub head_norm: bool,
    /// Whether the head's weight is the embedding's.
    pub tied: bool,
    /// How positions turn queries and keys.
    pub rotary: Rotary,
    /// ε of the norms.
    pub epsilon: f64,
    /// How the embedding starts. Where the head is tied, the first loss is about ln(vocabulary) + width · variance / 2.
    pub embedding: Init,
    /// Whether the blocks are one loop over stacked weights (see [`Stack`]), and what each keeps for its backward pass.
    pub stack: Option<Taps>,
}

impl Llama {
    /// One with heads of width / heads features, hidden ⅔ · 4 · width (rounded up to a multiple of 32), a tied head.
    pub fn new(vocabulary: usize, layers: usize, width: usize, heads: usize) -> Self {
        Llama {
            vocabulary,
            layers,
            width,
            hidden: (width * 8).div_ceil(3).next_multiple_of(32),
            heads,
            kv_heads: heads,
            head_width: width / heads.max(1),
            head_norm: false,
            tied: true,
            rotary: Rotary::default(),
            epsilon: 1e-5,
            embedding: Init::Normal { mean: 0.0, std: NormalInit::gpt2(layers).std },
            stack: None,
        }
    }

    /// The shape of Stories110M of llama2.c: 12 layers of 768 features, 12 heads, 32,000 tokens; trained on 256 tokens.
    /// The embedding starts at U(−0.02, 0.02), so that the first loss is that of a uniform guess.
    pub fn stories110m() -> Self {
        let rotary = Rotary { interleaved: true, ..Rotary::default() };
        let embedding = Init::Uniform { low: -0.02, high: 0.02 };
        Llama { hidden: 2048, rotary, embedding, ..Llama::new(32_000, 12, 768, 12) }
    }

    /// The shape of Qwen3-0.6B: 28 layers of 1024 features, 16 heads of 128 with 8 of keys and values, head norms,
    /// 151,936 tokens.
    pub fn qwen3_0_6b() -> Self {
        Llama {
            hidden: 3072,
            kv_heads: 8,
            head_width: 128,
            head_norm: true,
            rotary: Rotary { base: 1e6, ..Rotary::default() },
            epsilon: 1e-6,
            ..Llama::new(151_936, 28, 1024, 16)
        }
    }

    /// The number of weights, each element counted.
    pub fn parameters(&self) -> usize {
        let (width, head) = (self.width, self.head_width);
        let attention = 2 * width * head * (self.heads + self.kv_heads) + if self.head_norm { 2 * head } else { 0 };
        let block = attention + 3 * width * self.hidden + 2 * width;
        let tables = if self.tied { 1 } else { 2 };
        tables * self.vocabulary * width + self.layers * block + width
    }

    /// The logits `[B, S, vocabulary]` of what follows every token of `[B, S]`, an integer tensor.
    #[track_caller]
    pub fn apply(&self, g: &Graph, tokens: &Tensor) -> Tensor {
        let (mut x, table) = self.embedded(g, tokens);
        match &self.stack {
            Some(taps) => {
                x = self.stacked(taps).apply(g, &x, |g, x, _| self.named_block("block").apply(g, x));
            }
            None => {
                for layer in 0..self.layers {
                    x = self.block(layer).apply(g, &x);
                }
            }
        }
        self.head(g, &x, &table)
    }

    /// The logits `[B, 1, vocabulary]` of what follows the next token, `[B, 1]`, of a text whose earlier tokens were
    /// given one by one; see [`MultiHeadAttention::decode`](crate::nn::MultiHeadAttention::decode).
    #[track_caller]
    pub fn decode(&self, g: &Graph, token: &Tensor, past: Past) -> Tensor {
        let (mut x, table) = self.embedded(g, token);
        match &self.stack {
            Some(taps) => {
                let Past { position, length } = past;
                x = self.stacked(taps).apply_with(g, &x, &[position], |g, x, shared, _| {
                    self.named_block("block").decode(g, x, Past { position: &shared[0], length })
                });
            }
            None => {
                for layer in 0..self.layers {
                    x = self.block(layer).decode(g, &x, past);
                }
            }
        }
        self.head(g, &x, &table)
    }

    /// The n-th block, named `block` and its number.
    pub fn block(&self, layer: usize) -> TransformerBlock {
        self.named_block(&format!("block{layer}"))
    }

    /// All blocks: weights are named as `blocks.block.attn.q.weight`.
    fn stacked(&self, taps: &Taps) -> Stack {
        Stack::new("blocks", self.layers).taps(taps.clone())
    }

    fn named_block(&self, name: &str) -> TransformerBlock {
        let block = TransformerBlock::new(name, self.heads, self.hidden)
            .gated()
            .causal(true)
            .kv_heads(self.kv_heads)
            .head_width(self.head_width)
            .rotary(self.rotary)
            .epsilon(self.epsilon)
            .init(NormalInit::gpt2(self.layers));
        if self.head_norm { block.head_norm(self.epsilon) } else { block }
    }

    /// The rows of the table that tokens name, and the table.
    #[track_caller]
    fn embedded(&self, g: &Graph, tokens: &Tensor) -> (Tensor, Tensor) {
        let table = Embedding::new("tokens", self.vocabulary, self.width).init(self.embedding.clone()).table(g);
        (table.embedding(tokens), table)
    }

    #[track_caller]
    fn head(&self, g: &Graph, x: &Tensor, table: &Tensor) -> Tensor {
        let normed = RmsNorm::new("norm").epsilon(self.epsilon).apply(g, x);
        if self.tied {
            return normed.linear(table, None);
        }
        let init = Init::Normal { mean: 0.0, std: NormalInit::gpt2(self.layers).std };
        Linear::new("head", self.vocabulary).bias(false).init(init).apply(g, &normed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::DType;

    /// Weights that the graph declares, each element counted.
    fn declared(model: &Llama) -> usize {
        let g = Graph::new();
        let logits = model.apply(&g, &g.input("x", DType::I32, [1, 4]));
        assert_eq!(logits.ty().to_string(), format!("f32[1,4,{}]", model.vocabulary));
        assert!(g.problems().is_empty());
        g.inspect(|f| f.params.iter().filter(|p| p.role.is_resident()).map(|p| f.ty(p.value).shape.elements()).sum())
    }

    #[test]
    fn models_have_as_many_weights_as_they_say() {
        let plain = Llama::new(11, 2, 12, 3);
        let untied = Llama { tied: false, head_norm: true, head_width: 6, kv_heads: 1, ..plain.clone() };
        let stacked = Llama { stack: Some(Taps::Inputs), ..untied.clone() };
        for model in [plain, untied, stacked] {
            assert_eq!(declared(&model), model.parameters());
        }
    }

    /// The numbers that their authors publish: 110 M (109.5 M with a tied head) and 0.6 B (0.44 B without embedding).
    #[test]
    fn published_shapes_have_their_published_sizes() {
        let (stories, qwen) = (Llama::stories110m(), Llama::qwen3_0_6b());
        assert_eq!((stories.parameters(), declared(&stories)), (109_529_856, 109_529_856));
        assert_eq!((qwen.parameters(), declared(&qwen)), (596_049_920, 596_049_920));
    }
}
