//! Self-attention with several heads.

use super::Linear;
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{Graph, Tensor};

/// Self-attention over `[B, S, E]` with linear layers `q`, `k`, `v` and `o`; every position sees every other.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// assert_eq!(nn::multi_head_attention(&g, "attn", &x, 4).ty(), x.ty());
/// ```
#[track_caller]
pub fn multi_head_attention(g: &Graph, name: &str, x: &Tensor, heads: usize) -> Tensor {
    MultiHeadAttention::new(name, heads).apply(g, x)
}

/// [`multi_head_attention`] with options.
///
/// ```
/// use backfit::prelude::*;
/// let g = Graph::new();
/// let x = g.input("x", F32, [8, 16, 64]);
/// let attention = nn::MultiHeadAttention::new("attn", 4).kv_heads(2).causal(true).rotary(Rotary::default()).bias(false);
/// assert_eq!(attention.apply(&g, &x).ty(), x.ty());
/// ```
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    name: String,
    heads: usize,
    kv_heads: usize,
    causal: bool,
    rotary: Option<Rotary>,
    bias: bool,
    mask: Option<Tensor>,
}

impl MultiHeadAttention {
    /// As many key and value heads as query heads, with biases.
    pub fn new(name: &str, heads: usize) -> Self {
        let name = name.to_owned();
        MultiHeadAttention { name, heads, kv_heads: heads, causal: false, rotary: None, bias: true, mask: None }
    }

    /// Fewer heads of keys and values, each shared by a group of query heads.
    pub fn kv_heads(self, kv_heads: usize) -> Self {
        MultiHeadAttention { kv_heads, ..self }
    }

    /// Whether a position sees itself and those before it only.
    pub fn causal(self, causal: bool) -> Self {
        MultiHeadAttention { causal, ..self }
    }

    /// Turns queries and keys by their position.
    pub fn rotary(self, rotary: Rotary) -> Self {
        MultiHeadAttention { rotary: Some(rotary), ..self }
    }

    /// With or without biases.
    pub fn bias(self, bias: bool) -> Self {
        MultiHeadAttention { bias, ..self }
    }

    /// Added to the scores; broadcasts to `[B, H, S, S]`. −∞ hides a key.
    pub fn mask(self, mask: &Tensor) -> Self {
        MultiHeadAttention { mask: Some(mask.clone()), ..self }
    }

    /// Builds the layer.
    #[track_caller]
    pub fn apply(&self, g: &Graph, x: &Tensor) -> Tensor {
        let &[batch, length, features] = x.shape().dims() else {
            return x.fail(format!("attention: x is {}; it must have the axes [B, S, E]", x.ty()));
        };
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        if heads == 0 || features % heads != 0 {
            return x.fail(format!("attention: {heads} heads do not divide the {features} features of {}", x.ty()));
        }
        if kv_heads == 0 || heads % kv_heads != 0 {
            return x.fail(format!("attention: {kv_heads} heads of keys do not divide {heads} heads of queries"));
        }
        let _scope = g.enter(&self.name);
        let width = features / heads;
        let project = |name: &str, heads: usize| Linear::new(name, heads * width).bias(self.bias);
        let q = self.turned(split(&project("q", heads).apply(g, x), width));
        let k = self.turned(split(&project("k", kv_heads).apply(g, x), width));
        let v = split(&project("v", kv_heads).apply(g, x), width);
        let options = Attention { mask: self.mask.as_ref(), causal: self.causal, scale: None };
        let mixed = q.scaled_dot_product_attention(&k, &v, options);
        let joined = mixed.transpose(&[0, 2, 1, 3]).reshape([batch, length, features]);
        project("o", heads).apply(g, &joined)
    }

    #[track_caller]
    fn turned(&self, x: Tensor) -> Tensor {
        match self.rotary {
            Some(rotary) => x.rotary_embedding(rotary),
            None => x,
        }
    }
}

/// `[B, S, heads · width]` as `[B, heads, S, width]`.
#[track_caller]
fn split(x: &Tensor, width: usize) -> Tensor {
    x.reshape([x.dim(0), x.dim(1), x.dim(2) / width.max(1), width]).transpose(&[0, 2, 1, 3])
}
