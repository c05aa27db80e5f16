//! What a function keeps of its forward pass for its backward pass.

/// What a function's forward pass hands to its backward pass; the backward pass computes all else again.
/// Whatever is kept, gradients have the same bits.
///
/// A function has one policy, which holds for each of its calls and for every step of a `scan` over it. Composites
/// within the function are part of it. Values that nothing but constants goes into are computed again in any case.
///
/// ```
/// use backfit_ir::{DType, Graph, Taps};
/// let g = Graph::new();
/// let f = g.function("layer");
/// f.taps(Taps::Inputs);
/// f.result("y", &f.input("x", DType::F32, [8]).exp().tanh());
/// let layer = g.define(f).unwrap();
/// assert_eq!(g.module(|m| m.function(layer).taps.clone()), Taps::Inputs);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Taps {
    /// All that the backward pass needs: nothing is computed twice.
    #[default]
    All,
    /// The function's parameters alone: "gradient checkpointing".
    Inputs,
    /// The parameters, and the values that leave scopes of these names: those that a node in such a scope defines and
    /// one outside it, or a result, reads. A name is one part of a scope's path, as `attn` in `block/attn`.
    Named(Vec<String>),
    /// As much as fits into this many bytes per call, chosen so that computing the rest again takes the fewest
    /// arithmetic operations. Parameters that are no weights count where the backward pass needs them.
    Budget(u64),
}
