//! Exported models in onnxruntime: every operator in every dtype, and whole training steps.

mod loops;
mod operators;
mod steps;
