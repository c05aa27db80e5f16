//! Operators that move, select and accumulate elements: their values, their derivatives, what they refuse.

mod convolutions;
mod derivatives;
mod harness;
mod movement;
mod refusals;
mod samples;
mod selection;
