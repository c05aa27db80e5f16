//! Running functions.

use super::Array;
use crate::dtype::DType;
use crate::error::{Error, Problem};
use crate::graph::{FuncId, Module};
use crate::op::Op;
use crate::ops::scan::Scan;
use crate::shape::Type;

/// How to round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keep every float in f64 instead of rounding to its declared dtype.
    pub double: bool,
    /// Flush f32 and f64 subnormals to zero, operands and results, as the CPU target does by default.
    pub flush_subnormals: bool,
}

/// Runs a function on its parameters' values, in order, and returns its results.
///
/// # Errors
/// Where the arguments are not of the parameters' types.
pub fn run(module: &Module, function: FuncId, arguments: &[Array], options: Options) -> Result<Vec<Array>, Error> {
    run_watched(module, function, arguments, options, &mut |_| {})
}

/// What [`run_watched`] tells, in the order in which it happens.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    /// A call begins.
    Called {
        /// The function that calls.
        function: FuncId,
        /// The number of its node.
        node: usize,
    },
    /// A node has run; calls and loops, too, after all within them.
    Ran {
        /// The function that it stands in.
        function: FuncId,
        /// Its number there.
        node: usize,
        /// What it read.
        operands: &'a [&'a Array],
        /// What it gave.
        results: &'a [Array],
    },
}

/// Who is told of every moment of a run.
pub type Watch<'w> = dyn FnMut(Moment) + 'w;

/// As [`run`]; `watch` sees every node of every function as it runs, once for each time.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    module: &Module,
    function: FuncId,
    arguments: &[Array],
    options: Options,
    watch: &mut Watch,
) -> Result<Vec<Array>, Error> {
    let f = module.function(function);
    let types: Vec<&Type> = f.params.iter().map(|p| f.ty(p.value)).collect();
    if types.len() != arguments.len() {
        let what = format!("'{}' takes {} arguments, {} were given", f.name, types.len(), arguments.len());
        return Err(Problem::new(what).into());
    }
    for (param, (ty, argument)) in f.params.iter().zip(types.into_iter().zip(arguments)) {
        if *ty != argument.ty {
            let what = format!("'{}' of '{}' is {ty}, the argument is {}", param.name, f.name, argument.ty);
            return Err(Problem::new(what).into());
        }
    }
    Ok(Interpreter { module, options, watch }.function(function, arguments))
}

struct Interpreter<'m, 'w> {
    module: &'m Module,
    options: Options,
    watch: &'m mut Watch<'w>,
}

impl Interpreter<'_, '_> {
    fn function(&mut self, id: FuncId, arguments: &[Array]) -> Vec<Array> {
        let function = self.module.function(id);
        let mut values: Vec<Option<Array>> = vec![None; function.values.len()];
        for (param, argument) in function.params.iter().zip(arguments) {
            values[param.value.index()] = Some(self.rounded(argument.clone()));
        }
        let mut uses = function.use_counts();
        for (index, node) in function.nodes.iter().enumerate() {
            let operands: Vec<&Array> =
                node.operands.iter().map(|v| values[v.index()].as_ref().expect("defined before use")).collect();
            if matches!(node.op, Op::Call(_)) {
                (self.watch)(Moment::Called { function: id, node: index });
            }
            let results = self.node(&node.op, &operands, &function.types(&node.results));
            let results: Vec<Array> = results.into_iter().map(|result| self.rounded(result)).collect();
            (self.watch)(Moment::Ran { function: id, node: index, operands: &operands, results: &results });
            for operand in &node.operands {
                uses[operand.index()] -= 1;
                if uses[operand.index()] == 0 {
                    values[operand.index()] = None;
                }
            }
            for (&id, result) in node.results.iter().zip(results) {
                debug_assert_eq!(&result.ty, function.ty(id), "{}", node.op.name());
                values[id.index()] = Some(result);
            }
        }
        function.results.iter().map(|r| values[r.value.index()].clone().expect("defined before use")).collect()
    }

    fn node(&mut self, op: &Op, operands: &[&Array], results: &[Type]) -> Vec<Array> {
        match op {
            Op::Call(callee) => {
                let arguments: Vec<Array> = operands.iter().map(|&a| a.clone()).collect();
                self.function(*callee, &arguments)
            }
            Op::Scan(scan) => self.scan(scan, operands, results),
            op => (op.primitive().eval)(op, operands, results),
        }
    }

    fn scan(&mut self, scan: &Scan, operands: &[&Array], results: &[Type]) -> Vec<Array> {
        let (carries, rest) = operands.split_at(scan.carries);
        let (constants, stacked) = rest.split_at(scan.constants);
        let mut carries: Vec<Array> = carries.iter().map(|&a| a.clone()).collect();
        let mut outputs: Vec<Array> =
            results[scan.carries..].iter().map(|ty| Array::from_literal(&crate::Literal::zeros(ty.clone()))).collect();
        for step in 0..scan.trip_count {
            let at = if scan.reverse { scan.trip_count - 1 - step } else { step };
            let mut arguments = carries;
            arguments.extend(constants.iter().map(|&a| a.clone()));
            arguments.extend(stacked.iter().map(|a| slice(a, at)));
            let mut out = self.function(scan.body, &arguments);
            let pieces = out.split_off(scan.carries);
            carries = out;
            for (output, piece) in outputs.iter_mut().zip(&pieces) {
                let n = piece.len();
                (0..n).for_each(|i| output.set(at * n + i, piece, i));
            }
        }
        carries.extend(outputs);
        carries
    }

    fn rounded(&self, mut array: Array) -> Array {
        if !self.options.double {
            array.round(self.options.flush_subnormals);
        } else if self.options.flush_subnormals && array.ty.dtype == DType::F64 {
            array.round(true);
        }
        array
    }
}

fn slice(array: &Array, at: usize) -> Array {
    let ty = array.ty.with_shape(&array.ty.shape[1..]);
    let n = ty.shape.elements();
    array.pick(ty, |i| at * n + i)
}
