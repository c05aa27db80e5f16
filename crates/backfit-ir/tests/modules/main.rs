//! Modules as a whole: text form, verifier, rewriting, pictures.

mod dot;
mod fuzz;
mod rewrite;
mod support;
mod text;
mod trace;
mod verify;
