//! Data sets: what they hold, where they come from, and how they become batches.
//!
//! | module | it reads or makes |
//! |---|---|
//! | [`bundled`] | the sets inside this crate: `digits`, `iris`, `sine` |
//! | [`public`] | the registry of public sets: fetch, verify, load |
//! | [`idx`], [`npz`], [`csv`], [`images`], [`cifar`], [`text`] | one file format each |
//! | [`Dataset`], [`Normalizer`] | columns in memory; statistics of the training part |
//! | [`Batches`] | batches of one size, shuffled by (seed, epoch), resumable |
//! | [`Compaction`] | the tokens of a large vocabulary that a text uses |
//! | [`Augment`] | images that are mirrored and shifted at random |
//!
//! Every number in a file is untrusted: a reader never allocates what a header merely claims, and a
//! damaged file is an error that names the file, the place in it, and what was expected there.

mod augment;
mod batches;
pub mod bundled;
mod checks;
pub mod cifar;
mod compaction;
pub mod csv;
mod dataset;
mod fetch;
pub mod idx;
pub mod images;
mod normalize;
pub mod npz;
pub mod order;
pub mod public;
mod reshape;
pub mod text;

pub use augment::Augment;
pub use batches::{Batch, Batches, Position, Source};
pub use compaction::Compaction;
pub use dataset::{Dataset, Split};
pub use normalize::Normalizer;
