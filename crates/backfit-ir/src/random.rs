//! Keys of random operators.
//!
//! A program has one random state, the resident parameter [`RNG_KEY`], `u32[4]` = (seed low, seed high, step, 0).
//! Every random operator folds its site, a number of its own, into it, so that no two draw the same numbers,
//! and neither do two steps.

use crate::builder::{Graph, Tensor};
use crate::dtype::DType;
use crate::error::Problem;
use crate::graph::Role;
use crate::init::Init;
use crate::shape::Type;
use std::panic::Location;

/// The name of the parameter that holds the random state.
pub const RNG_KEY: &str = "rng.key";

impl Graph {
    /// A key for one random operator of the main function: [`RNG_KEY`], made at the first call and initialised to zeros,
    /// with the number of the site folded in.
    #[track_caller]
    pub fn random_key(&self) -> Tensor {
        let caller = Location::caller();
        let ty = Type::new(DType::U32, [4]);
        let (main, known) = self.inspect(|f| {
            let index = f.param_index(RNG_KEY);
            (f.name == "main", index.map(|i| f.params[i].value))
        });
        if !main && known.is_none() {
            let what = "random_key: a function other than the main one has no random state";
            self.problem(Problem::new(what).help("pass the key as an operand and use `dropout_with`"), caller);
            return self.poison(ty);
        }
        let state = match known {
            Some(value) => self.tensor(value),
            None => self.parameter(RNG_KEY, ty, Role::State, Some(Init::ZEROS)),
        };
        state.fold_in(&self.scalar(DType::U32, f64::from(self.next_site())))
    }
}
