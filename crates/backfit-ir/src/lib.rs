//! Backfit's language: types, graphs, operators and the reference interpreter.
//!
//! A [`Graph`] builds a function of [`Tensor`]s; [`Graph::finish`] gives a [`Module`] of typed SSA functions.
//! Everything above this crate reads modules and writes new ones. It knows no target and no front end.

pub mod attributes;
pub mod builder;
pub mod cost;
pub mod dot;
pub mod dtype;
pub mod error;
pub mod graph;
pub mod init;
pub mod interp;
pub mod literal;
pub mod op;
pub mod ops;
pub mod pattern;
pub mod random;
pub mod rewrite;
pub mod scope;
pub mod shape;
pub mod taps;
pub mod text;
pub mod verify;

pub use attributes::{Attr, Attributes};
pub use builder::{Dim, Graph, Tensor, axis_index};
pub use dtype::{Class, DType};
pub use error::{Error, Place, Problem, Result};
pub use graph::{Composite, Def, FuncId, Function, FunctionResult, Loc, Module, Node, Param, Role, Value, ValueId};
pub use init::Init;
pub use literal::Literal;
pub use op::Op;
pub use ops::{OpDef, Vjp};
pub use random::RNG_KEY;
pub use shape::{MAX_RANK, Shape, Type};
pub use taps::Taps;
pub use verify::{Stage, verify};
