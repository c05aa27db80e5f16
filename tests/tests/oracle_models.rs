//! Whole models against JAX and PyTorch: losses, logits, gradients, and ten steps of training.

mod oracle_models {
    mod gradients;
    mod language_models;
    mod training;
}
