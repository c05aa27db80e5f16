//! The text form of modules: readable, complete, and read back bit for bit.
//!
//! ```text
//! func @main {
//!   input %0 x : f32[128,784] at "src/main.rs":10
//!   weight %1 fc1.weight : f32[784,10] init uniform(-0.03, 0.03) at "src/main.rs":11
//!   state %2 steps : i64[] init constant(0.0) at "src/main.rs":12
//!   %3 = dot_general %0, %1 {lhs_batch=[], …} : f32[128,10] scope "fc1" at "src/main.rs":12
//!   %4 = call @softmax %3 : f32[128,10] at "src/main.rs":13
//!   %5 = constant 1 : i64[] at "src/main.rs":14
//!   %6 = add %2, %5 : i64[] at "src/main.rs":14
//!   return probabilities = %4
//!   return steps = %6 aliases steps
//! }
//! ```
//!
//! * A function: `func @name`, then `composite name {attributes}` where it is the body of one, then a block.
//! * A parameter: its role (`input`, `weight`, `frozen`, `state`, `hyper`), value, name, type; `init` where it has one.
//! * A node: results (`()` for none), operator, function, operands, attributes, result types, scope, location.
//! * A constant: `1.5`, `[1, 2, 3]`, `splat(0.0)`, or `blob 0x…`, whose bytes the section `blobs { … }` at the
//!   end has. A number that decimals cannot write exactly is given by its bits: `0x7fc00001`.
//! * Names that are no words stand in quotes, `// …` is a comment.
//!
//! Values are numbered in order of definition, so `parse(print(m))` equals [`canonical_module`]`(m)`, which
//! is `m` itself for every module whose values are numbered that way.
//!
//! [`canonical_module`]: crate::rewrite::canonical_module

mod lexer;
mod literal;
mod parse;
mod print;
mod words;

pub use parse::{Limits, parse};
pub use print::{Options, print, print_function};

use crate::error::Result;
use crate::graph::Module;
use std::fmt;

/// The complete text form; `{:#}` leaves out the bytes of large constants.
impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::write(self, Options { blobs: !f.alternate() }, f)
    }
}

impl Module {
    /// Reads the text form. Nothing in it is trusted; what comes back is verified.
    ///
    /// ```
    /// use backfit_ir::{DType, Graph, Module};
    /// let g = Graph::new();
    /// let x = g.input("x", DType::F32, [2, 3]);
    /// g.result("y", &(&x + 0.1));
    /// let module = g.finish().unwrap();
    /// assert_eq!(Module::parse(module.to_string()).unwrap(), module);
    ///
    /// let error = Module::parse("func @main {\n  input x").unwrap_err();
    /// assert_eq!(error.to_string(), "2:9: expected a value such as %3, found 'x'");
    /// ```
    ///
    /// # Errors
    /// The first thing in the text that is not as it should be, with line and column, or else everything that
    /// the verifier finds.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Module> {
        parse(text.as_ref(), Limits::default())
    }
}
