//! The stage *precision*: in which dtypes a program computes.
//!
//! A [`Policy`] is a table: for every [`Class`] of operators what it computes in, and exceptions by scope. [`apply`] rewrites
//! the differentiated program accordingly. It concerns values that are declared f32; every other dtype is the user's own.
//! Parameters and results keep their declared dtypes: weights stay f32, and are cast once in each step.
//!
//! | module | it has |
//! |---|---|
//! | [`policy`] | the table, the named policies, how they print |
//! | [`class`] | of which class a node is: by composite, by scope, by operator |
//! | [`demand`] | who reads a value narrow, and who wide |
//! | [`narrow`] | the rewriting of a function |
//! | [`contraction`] | products and convolutions; three-way splits |
//! | [`engine`] | forms for an engine that stores nothing but f16 |
//! | `adam` | Adam in f16 |
//! | `masters` | weights stored as bf16 |
//! | `scopes` | scopes within functions, as exceptions see them |
//! | [`ports`] | narrow values through calls and loops |

mod adam;
pub mod class;
pub mod contraction;
pub mod demand;
pub mod engine;
mod masters;
pub mod narrow;
pub mod policy;
pub mod ports;
mod scopes;

pub use class::Class;
pub use masters::compensation_of;
pub use policy::{Compute, Engine, Masters, Policy};

use backfit_ir::rewrite::{dead_code, inline_calls, live_functions};
use backfit_ir::{FuncId, Function, Module};

/// The program in the dtypes of a policy, the new ids of its entry points, and what was done, in words.
///
/// Composites whose class computes in f32 stay whole, so that a target may still take them; others are inlined first.
pub fn apply(module: &Module, roots: &[FuncId], policy: &Policy) -> (Module, Vec<FuncId>, Vec<String>) {
    let mut notes = vec![policy.summary()];
    if policy.is_identity() {
        return (module.clone(), roots.to_vec(), notes);
    }
    let concerned = |f: &Function| f.composite.is_none() && !only_fills_the_store(f);
    let narrowed = |f: &Function| f.composite.is_some() && !narrow::stays_whole(policy, f);
    let mut stored = module.clone();
    masters::run(&mut stored, roots, policy.stores());
    let module = &stored;
    let mut flat = stored.clone();
    for (index, function) in flat.functions.iter_mut().enumerate().filter(|(_, f)| concerned(f)) {
        *function = dead_code(&inline_calls(module, FuncId(index as u32), narrowed));
    }
    let (mut flat, roots) = live_functions(&flat, roots);
    scopes::run(&mut flat);
    let mut demands = demand::of_module(&flat, &roots, policy);
    let (mut out, mut casts) = (flat.clone(), 0);
    for (index, function) in flat.functions.iter().enumerate().filter(|(_, f)| concerned(f)) {
        let (function, inserted) = narrow::run(&flat, function, policy, std::mem::take(&mut demands[index]));
        out.functions[index] = dead_code(&function);
        casts += inserted;
    }
    let through = ports::run(&mut out, &roots);
    notes.push(format!("{casts} casts"));
    if through > 0 {
        notes.push(format!("{through} values cross calls and loops narrow"));
    }
    let (out, roots) = live_functions(&out, &roots);
    (out, roots, notes)
}

/// `init` and its like: what it writes is what the resident store declares.
fn only_fills_the_store(function: &Function) -> bool {
    !function.results.is_empty() && function.results.iter().all(|r| r.alias.is_some())
}
