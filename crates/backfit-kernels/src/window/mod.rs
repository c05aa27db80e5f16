//! Sliding windows: reductions (pooling) and the gradient of max-pooling.

pub mod reduce;
pub mod select;
#[cfg(test)]
mod tests;

/// The largest size, so that arithmetic on positions cannot overflow.
const MOST: usize = 1 << 30;

/// An error where a size or a padding is too large to compute positions with.
fn check_sizes<const N: usize>(sizes: [usize; N], padding: isize) -> Result<(), String> {
    if sizes.into_iter().chain([padding.unsigned_abs()]).any(|size| size > MOST) {
        return Err("a dimension of a window is too large".into());
    }
    Ok(())
}
