//! The vocabulary: one operator, one file.
//!
//! A file holds, in this order: the formula, shapes, dtypes and errors · typed attributes · the builder
//! method · the definition `DEF` with type rule, reference evaluation or body, derivative, cost and samples.
//! One word in the list below brings a file in, as a module and as a row of [`REGISTRY`].

pub mod composite;
pub mod definition;
pub mod derive;
pub mod elementwise;
pub mod family;
pub mod norm;
pub mod pooling;
pub mod reduction;
pub mod structure;
pub mod update;

pub use definition::{Body, Derivative, Kind, OpDef, Sample, Tolerance, Vjp};

macro_rules! ops {
    ($($(#[$section:meta])* $name:ident)*) => {
        $(pub mod $name;)*

        /// Every operator that Backfit defines.
        pub static REGISTRY: &[&OpDef] = &[$(&$name::DEF),*];
    };
}

ops! {
    /// Primitives.
    neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal sin cos tan tanh erf floor ceil round_even is_finite not
    add sub mul div rem pow atan2 maximum minimum and or xor shift_left shift_right
    compare select clamp cast bitcast reduce_precision
    constant iota reduce arg_reduce cumulative
    reshape transpose broadcast slice pad concatenate reverse dynamic_slice dynamic_update_slice gather scatter sort
    dot_general convolution reduce_window select_and_scatter rng_bits call scan barrier
    /// Composites: Activations.
    relu leaky_relu elu relu6 silu gelu gelu_tanh sigmoid softplus square clip_by_value
    /// Statistics and norms.
    mean variance softmax log_softmax logsumexp layer_norm rms_norm group_norm batch_norm
    /// Linear algebra.
    linear lora_linear matmul
    /// Convolution and pooling.
    conv2d conv2d_im2col conv_transpose2d max_pool2d avg_pool2d global_avg_pool2d global_max_pool2d
    /// Embedding and randomness.
    embedding one_hot take_along_axis detach fold_in random_uniform random_normal dropout
    /// Attention.
    scaled_dot_product_attention rotary_embedding
    /// Losses and metrics.
    softmax_cross_entropy cross_entropy binary_cross_entropy_with_logits mse l1 huber accuracy
    /// Optimizers.
    sgd_update adam_update rmsprop_update lion_update adafactor_update global_norm clip_by_global_norm
}

/// The definition with this name.
pub fn find(name: &str) -> Option<&'static OpDef> {
    REGISTRY.iter().copied().find(|def| def.name == name)
}
