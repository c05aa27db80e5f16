//! `reduce_window(x)`: reduction over sliding windows.

/// Sliding windows, one entry per axis of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Extents of the window.
    pub size: Vec<usize>,
    /// Step from one window to the next.
    pub stride: Vec<usize>,
    /// Distance between elements of a window (1 = dense).
    pub dilation: Vec<usize>,
    /// Padding before the first element; the reduction ignores it.
    pub pad_low: Vec<usize>,
    /// Padding after the last element; the reduction ignores it.
    pub pad_high: Vec<usize>,
}
