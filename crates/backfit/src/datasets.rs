//! Data sets: those inside Backfit, and readers of files.
//!
//! ```
//! use backfit::datasets;
//! let parts = datasets::iris_split()?;
//! assert_eq!((parts.train.len(), parts.test.len()), (120, 30));
//! # Ok::<(), backfit::Error>(())
//! ```

pub use backfit_train::data::bundled::{digits, digits_split, iris, iris_split, sine};
pub use backfit_train::data::{cifar, csv, idx, images, npz, public, text};
