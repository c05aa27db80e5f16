//! Self-attention with several heads.

use super::{NormalInit, RmsNorm};
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{DType, Graph, Init, Tensor, Type};

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
    head_width: Option<usize>,
    head_norm: Option<f64>,
    causal: bool,
    rotary: Option<Rotary>,
    bias: bool,
    init: Option<NormalInit>,
    mask: Option<Tensor>,
}

/// What a layer that decodes knows of the tokens before.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// How many there are: an `i32` scalar below `length`.
    pub position: &'a Tensor,
    /// The most tokens that are ever read.
    pub length: usize,
}

impl MultiHeadAttention {
    /// As many key and value heads as query heads, with biases.
    pub fn new(name: &str, heads: usize) -> Self {
        MultiHeadAttention {
            name: name.to_owned(),
            heads,
            kv_heads: heads,
            head_width: None,
            head_norm: None,
            causal: false,
            rotary: None,
            bias: true,
            init: None,
            mask: None,
        }
    }

    /// Features of a head; E / heads unless set.
    pub fn head_width(self, width: usize) -> Self {
        MultiHeadAttention { head_width: Some(width), ..self }
    }

    /// Brings every head's queries and keys to root mean square 1 with this ε, scaled by weights `q_norm` and
    /// `k_norm` of a head's width, before they are turned: as Qwen3 has it.
    pub fn head_norm(self, epsilon: f64) -> Self {
        MultiHeadAttention { head_norm: Some(epsilon), ..self }
    }

    /// Weights that start normally distributed; biases start at zero.
    pub fn init(self, init: NormalInit) -> Self {
        MultiHeadAttention { init: Some(init), ..self }
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
        let width = match self.width(x) {
            Ok(width) => width,
            Err(poison) => return poison,
        };
        let _scope = g.enter(&self.name);
        let [q, k, v] = self.projected(g, x, width);
        let (q, k) = (self.turned(q, None), self.turned(k, None));
        let options = Attention { mask: self.mask.as_ref(), causal: self.causal, scale: None };
        self.joined(g, &q.scaled_dot_product_attention(&k, &v, options), x.dim(-1))
    }

    /// Builds the layer for the next token alone, `[B, 1, E]`: keys and values of those before are kept in the states
    /// `key` and `value`, `[B, kv_heads, length, width]`. What it computes is what a causal layer computes for that row.
    /// A layer that is not causal, or one with a mask, is a problem: there every row depends on tokens that are not there yet,
    /// or on a mask of all of them.
    #[track_caller]
    pub fn decode(&self, g: &Graph, x: &Tensor, past: Past) -> Tensor {
        if !self.causal {
            return x.fail("attention: a layer that is not causal cannot decode token by token; set `.causal(true)`");
        }
        if self.mask.is_some() {
            return x.fail("attention: a layer with a mask cannot decode token by token; leave out `.mask(…)`");
        }
        let width = match self.width(x) {
            Ok(width) => width,
            Err(poison) => return poison,
        };
        let _scope = g.enter(&self.name);
        let [q, k, v] = self.projected(g, x, width);
        let (q, k) = (self.turned(q, Some(past)), self.turned(k, Some(past)));
        let ty = Type::new(x.dtype(), [x.dim(0), self.kv_heads, past.length, width]);
        let [keys, values] = [("key", k), ("value", v)].map(|(name, new)| {
            let old = g.state(name, ty.clone(), Init::ZEROS);
            let zero = g.scalar(DType::I32, 0.0);
            let all = old.dynamic_update_slice(&new, &[&zero, &zero, past.position, &zero]);
            g.update(&old, &all);
            all
        });
        let seen = g.iota(DType::I32, [1, past.length], 1).le(past.position);
        let mask = seen.select(&g.scalar(x.dtype(), 0.0), &g.scalar(x.dtype(), f64::NEG_INFINITY));
        let options = Attention { mask: Some(&mask), causal: false, scale: None };
        self.joined(g, &q.scaled_dot_product_attention(&keys, &values, options), x.dim(-1))
    }

    /// The width of a head; a poison tensor where heads and features do not fit.
    #[track_caller]
    fn width(&self, x: &Tensor) -> Result<usize, Tensor> {
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        let flaw = match (x.shape().dims(), self.head_width) {
            (&[_, _, features], None) if heads == 0 || features % heads != 0 => {
                format!("{heads} heads do not divide the {features} features of {}", x.ty())
            }
            (&[_, _, _], _) if kv_heads == 0 || heads % kv_heads != 0 => {
                format!("{kv_heads} heads of keys do not divide {heads} heads of queries")
            }
            (&[_, _, features], width) => return Ok(width.unwrap_or(features / heads.max(1))),
            _ => format!("x is {}; it must have the axes [B, S, E]", x.ty()),
        };
        Err(x.fail(format!("attention: {flaw}")))
    }

    /// Queries, keys and values, `[B, heads, S, width]`.
    #[track_caller]
    fn projected(&self, g: &Graph, x: &Tensor, width: usize) -> [Tensor; 3] {
        let q = self.normed(g, "q_norm", self.heads_of(g, "q", x, self.heads, width));
        let k = self.normed(g, "k_norm", self.heads_of(g, "k", x, self.kv_heads, width));
        [q, k, self.heads_of(g, "v", x, self.kv_heads, width)]
    }

    #[track_caller]
    fn heads_of(&self, g: &Graph, name: &str, x: &Tensor, heads: usize, width: usize) -> Tensor {
        let linear = NormalInit::linear(self.init, name, heads * width);
        split(&linear.bias(self.bias).apply(g, x), width)
    }

    #[track_caller]
    fn normed(&self, g: &Graph, name: &str, x: Tensor) -> Tensor {
        match self.head_norm {
            Some(epsilon) => RmsNorm::new(name).epsilon(epsilon).apply(g, &x),
            None => x,
        }
    }

    #[track_caller]
    fn turned(&self, x: Tensor, past: Option<Past>) -> Tensor {
        match (self.rotary, past) {
            (Some(rotary), Some(past)) => x.rotary_embedding_at(past.position, past.length, rotary),
            (Some(rotary), None) => x.rotary_embedding(rotary),
            (None, _) => x,
        }
    }

    /// The heads side by side, `[B, S, heads · width]`, and projected to `features`.
    #[track_caller]
    fn joined(&self, g: &Graph, mixed: &Tensor, features: usize) -> Tensor {
        let joined = mixed.transpose(&[0, 2, 1, 3]).flatten(2);
        NormalInit::residual_linear(self.init, "o", features).bias(self.bias).apply(g, &joined)
    }
}

/// `[B, S, heads · width]` as `[B, heads, S, width]`.
#[track_caller]
fn split(x: &Tensor, width: usize) -> Tensor {
    x.reshape([x.dim(0), x.dim(1), x.dim(2) / width.max(1), width]).transpose(&[0, 2, 1, 3])
}
