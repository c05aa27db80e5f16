//! Whole models against JAX: losses, logits, gradients, and ten steps of training.

mod oracle_models {
    mod gradients;
    mod training;
}
