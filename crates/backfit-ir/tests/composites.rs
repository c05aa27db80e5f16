//! The composites: every sample builds and evaluates, values that are known, stability, derivative rules, and what `check` refuses.

mod composites {
    mod activations;
    mod derivatives;
    mod layers;
    mod losses;
    mod random;
    mod samples;
    mod support;
}
