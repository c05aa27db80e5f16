//! Random programs: made from a seed, compared between the interpreter and a target, and shrunk where they differ.

pub mod check;
pub mod exact;
pub mod generate;
mod nodes;
pub mod noisy;
mod numbers;
pub mod shrink;

pub use numbers::Random;

use backfit_ir::{Literal, Module};

/// A program with the values of all parameters of its last function.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub module: Module,
    /// One value per parameter.
    pub inputs: Vec<Literal>,
    /// Whether subnormal numbers are flushed to zero; then there are none among the inputs and constants.
    pub flush: bool,
}

impl Case {
    /// The text form, and the values that each parameter has.
    pub fn describe(&self) -> String {
        let params = self.module.functions.last().map_or(&[][..], |f| &f.params);
        let values =
            params.iter().zip(&self.inputs).map(|(param, value)| format!("{} = {}\n", param.name, shown(value)));
        format!("{}\n{}", self.module, values.collect::<String>())
    }
}

fn shown(value: &Literal) -> String {
    const MOST: usize = 48;
    let all = if value.ty().dtype.is_float() {
        value.to_f64().iter().map(|v| format!("{v:?}")).collect::<Vec<_>>()
    } else {
        value.to_i64().iter().map(i64::to_string).collect()
    };
    let rest = if all.len() > MOST { format!(", … {} more", all.len() - MOST) } else { String::new() };
    format!("[{}{rest}]", all[..all.len().min(MOST)].join(", "))
}
