//! The ONNX target: whole training steps, or inference, as models that any ONNX Runtime runs.
//!
//! [`export`] takes a program through the common stages, with a table of composites that ONNX has as operators, matches
//! every primitive, and writes one model for each function. State goes in and comes out; hyper-parameters are fed; the
//! metadata of the model tells which output feeds which input. What cannot be exported is an error that names it.
//!
//! Models are of operator set 21. Everything in them is carried out by the CPU kernels of onnxruntime: where these lack a
//! dtype, values are cast to one that holds them, and back; where they do not keep the language's rules (integers that wrap,
//! NaN in extremes, stable sorts, quotients that do not trap), nodes around them do. Files say for each node the user's
//! scope (in its name) and operator and line (in its documentation).
//!
//! What remains different: signs of zeros may be lost, since the `Where` of onnxruntime loses them; subnormal numbers are
//! kept; sums are added in another order. `tests/onnx/exclusions.txt` has what is refused.

mod builder;
mod export;
mod lower;
pub mod proto;

pub use export::{Model, export};
