//! Exported models in onnxruntime: every operator in every dtype, and whole training steps.

mod beyond_samples;
mod loops;
mod operators;
mod random_programs;
mod steps;
