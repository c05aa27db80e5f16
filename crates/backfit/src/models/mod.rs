//! Whole models, from their sizes.
//!
//! [`Llama`] builds decoder-only transformers, from a network of characters to those shaped like published models.
//! [`Decoder`] writes with one, token by token, and keeps the keys and values of the tokens before.

mod decoder;
mod llama;

pub use decoder::{Decoder, sample};
pub use llama::Llama;
