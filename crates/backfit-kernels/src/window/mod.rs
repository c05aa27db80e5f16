//! Sliding windows: reductions (pooling) and the gradient of max-pooling.

pub mod reduce;
pub mod select;
