//! Layers: weights with the initialisation and names of PyTorch, and the operators that use them.
//!
//! Every layer is a function for the ordinary case and a type with options:
//!
//! ```
//! use backfit::prelude::*;
//! let g = Graph::new();
//! let x = g.input("x", F32, [32, 784]);
//! let h = nn::linear(&g, "fc1", &x, 256).relu();
//! let y = nn::Linear::new("fc2", 10).bias(false).init(Init::kaiming_normal(256)).apply(&g, &h);
//! assert_eq!(y.ty().to_string(), "f32[32,10]");
//! ```
//!
//! A layer's weights are named after it, within the scopes that are open: `fc1.weight`, `fc1.bias`. They have the
//! dtype of its input. What does not fit is a problem of the graph, with the line of the call, and is told when the
//! training step is built.

mod batch_norm;
mod conv2d;
mod conv_transpose2d;
mod dropout;
mod embedding;
mod feed_forward;
mod group_norm;
mod layer_norm;
mod linear;
mod multi_head_attention;
mod normal_init;
mod rms_norm;
mod stack;
mod transformer_block;

pub use batch_norm::{BatchNorm, batch_norm};
pub use conv_transpose2d::{ConvTranspose2d, conv_transpose2d};
pub use conv2d::{Conv2d, conv2d};
pub use dropout::dropout;
pub use embedding::{Embedding, embedding};
pub use feed_forward::{FeedForward, SwiGlu, feed_forward, swiglu};
pub use group_norm::{GroupNorm, group_norm};
pub use layer_norm::{LayerNorm, layer_norm};
pub use linear::{Linear, linear};
pub use multi_head_attention::{MultiHeadAttention, Past, multi_head_attention};
pub use normal_init::NormalInit;
pub use rms_norm::{RmsNorm, rms_norm};
pub use stack::Stack;
pub use transformer_block::{TransformerBlock, transformer_block};
