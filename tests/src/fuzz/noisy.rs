//! The interpreter with noise as large as operators may be wrong: what it changes, a target may change too.

use super::{Random, exact};
use backfit_ir::interp::{Array, Data, Options};
use backfit_ir::ops::scan::Scan;
use backfit_ir::ops::{Tolerance, find};
use backfit_ir::{FuncId, Module, Op, Type};

/// Runs functions as the interpreter does, and every operator whose rounding is free with noise.
pub struct Noisy<'m> {
    module: &'m Module,
    options: Options,
    /// Noise, where there is to be any.
    random: Option<Random>,
}

impl<'m> Noisy<'m> {
    /// Without noise, what the interpreter computes.
    pub fn new(module: &'m Module, options: Options, random: Option<Random>) -> Self {
        Noisy { module, options, random }
    }

    /// Results of a function.
    pub fn results(&mut self, id: FuncId, arguments: &[Array]) -> Vec<Array> {
        let values = self.values(id, arguments);
        let results = self.module.function(id).results.iter();
        results.map(|r| values[r.value.index()].clone().expect("defined")).collect()
    }

    /// All values of a function.
    pub fn values(&mut self, id: FuncId, arguments: &[Array]) -> Vec<Option<Array>> {
        let f = self.module.function(id);
        let mut values: Vec<Option<Array>> = vec![None; f.values.len()];
        for (param, argument) in f.params.iter().zip(arguments) {
            let mut argument = argument.clone();
            argument.round(self.options.flush_subnormals);
            values[param.value.index()] = Some(argument);
        }
        for node in &f.nodes {
            let operands: Vec<&Array> =
                node.operands.iter().map(|v| values[v.index()].as_ref().expect("defined")).collect();
            let results = self.node(&node.op, &operands, &f.types(&node.results));
            node.results.iter().zip(results).for_each(|(v, result)| values[v.index()] = Some(result));
        }
        values
    }

    fn node(&mut self, op: &Op, operands: &[&Array], types: &[Type]) -> Vec<Array> {
        match op {
            Op::Call(callee) => self.results(*callee, &operands.iter().map(|&a| a.clone()).collect::<Vec<_>>()),
            Op::Scan(scan) => self.scan(scan, operands, types),
            op => {
                let mut results = (op.primitive().eval)(op, operands, types);
                for result in &mut results {
                    self.disturb(op, operands, result);
                    result.round(self.options.flush_subnormals);
                }
                results
            }
        }
    }

    fn scan(&mut self, scan: &Scan, operands: &[&Array], types: &[Type]) -> Vec<Array> {
        let (carries, rest) = operands.split_at(scan.carries);
        let (constants, stacked) = rest.split_at(scan.constants);
        let mut carries: Vec<Array> = carries.iter().map(|&a| a.clone()).collect();
        let zeros = |ty: &Type| Array::from_literal(&backfit_ir::Literal::zeros(ty.clone()));
        let mut outputs: Vec<Array> = types[scan.carries..].iter().map(zeros).collect();
        for step in 0..scan.trip_count {
            let at = if scan.reverse { scan.trip_count - 1 - step } else { step };
            let slice = |a: &&Array| {
                let ty = a.ty.with_shape(&a.ty.shape[1..]);
                let n = ty.shape.elements();
                a.pick(ty, |i| at * n + i)
            };
            let arguments: Vec<Array> = carries
                .into_iter()
                .chain(constants.iter().map(|&a| a.clone()))
                .chain(stacked.iter().map(slice))
                .collect();
            let mut out = self.results(scan.body, &arguments);
            let pieces = out.split_off(scan.carries);
            carries = out;
            for (output, piece) in outputs.iter_mut().zip(&pieces) {
                (0..piece.len()).for_each(|i| output.set(at * piece.len() + i, piece, i));
            }
        }
        carries.extend(outputs);
        carries
    }

    fn disturb(&mut self, op: &Op, operands: &[&Array], result: &mut Array) {
        let (Some(random), false) = (&mut self.random, exact::is_exact(op)) else { return };
        if matches!(op, Op::Convolution(_)) && !all_finite(operands[1]) {
            // Whether padding meets an infinite element of the kernel, which gives NaN, is left open.
            if let Data::Float(values) = &mut result.data {
                values.fill(f64::NAN);
            }
        }
        let epsilon = crate::compare::epsilon(result.ty.dtype);
        let norm = norm(op, operands).max(largest(result));
        let Data::Float(values) = &mut result.data else { return };
        let tolerance = find(op.name()).map_or(Tolerance::Exact, |def| def.tolerance);
        for value in values.iter_mut().filter(|v| v.is_finite()) {
            *value += random.unit()
                * epsilon
                * match tolerance {
                    Tolerance::Exact => 0.0,
                    Tolerance::Element(units) => units * value.abs(),
                    Tolerance::Norm(units) => units * norm,
                };
        }
    }
}

fn all_finite(array: &Array) -> bool {
    matches!(&array.data, Data::Float(values) if values.iter().all(|v| v.is_finite())) || array.ty.dtype.is_integer()
}

fn largest(array: &Array) -> f64 {
    match &array.data {
        Data::Float(values) => values.iter().filter(|v| v.is_finite()).fold(0.0, |a, v| a.max(v.abs())),
        Data::Int(_) => 0.0,
    }
}

/// How large the numbers are that an operator sums.
fn norm(op: &Op, operands: &[&Array]) -> f64 {
    let sizes = operands.iter().map(|a| largest(a));
    match op {
        Op::DotGeneral(_) | Op::Convolution(_) => sizes.product(),
        _ => sizes.fold(0.0, f64::max),
    }
}
