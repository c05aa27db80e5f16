//! From functions to nodes of ONNX.

pub mod arithmetic;
pub mod cast;
pub mod composite;
pub mod contraction;
pub mod elementwise;
pub mod indexing;
pub mod movement;
pub mod reduction;
pub mod window;

use crate::builder::{Builder, Val};
use crate::proto::AttributeProto;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, Function, Module, Node, Op, Place, Problem, Type};

/// Why an operator cannot be exported, and what to do.
pub struct Refusal {
    why: &'static str,
    help: &'static str,
}

fn refusal(why: &'static str, help: &'static str) -> Refusal {
    Refusal { why, help }
}

/// Lowers functions of a module in which only composites that are taken whole are called.
pub struct Lowering<'m> {
    /// The module.
    pub module: &'m Module,
    /// What could not be exported.
    pub problems: Vec<Problem>,
}

impl Lowering<'_> {
    /// Appends a function's nodes and returns its results.
    ///
    /// # Panics
    /// Where the module is not valid.
    pub fn function(&mut self, b: &mut Builder, f: &Function, arguments: &[Val]) -> Vec<Val> {
        let mut values: Vec<Option<Val>> = vec![None; f.values.len()];
        for (param, argument) in f.params.iter().zip(arguments) {
            values[param.value.index()] = Some(argument.clone());
        }
        for node in &f.nodes {
            let value = |v: &backfit_ir::ValueId| values[v.index()].clone().expect("defined before use");
            let operands: Vec<Val> = node.operands.iter().map(value).collect();
            let results = f.types(&node.results);
            b.originate(&node.scope, format!("{} at {}", node.op.name(), node.loc));
            let found = self.node(b, node, &operands, &results);
            for (id, (found, ty)) in node.results.iter().zip(found.into_iter().zip(&results)) {
                debug_assert_eq!(&found.ty, ty, "{}", node.op.name());
                values[id.index()] = Some(found);
            }
        }
        f.results.iter().map(|r| values[r.value.index()].clone().expect("defined before use")).collect()
    }

    fn node(&mut self, b: &mut Builder, node: &Node, x: &[Val], results: &[Type]) -> Vec<Val> {
        let movable = !matches!(node.op, Op::Call(_) | Op::Scan(_) | Op::Barrier | Op::Constant(_));
        if movable && results.iter().all(|ty| ty.shape.elements() == 0) {
            return results.iter().map(|ty| b.zeros(ty)).collect();
        }
        match self.operator(b, &node.op, x, results) {
            Ok(found) => found,
            Err(Refusal { why, help }) => {
                let types = x.iter().map(|v| v.ty.to_string()).collect::<Vec<_>>().join(", ");
                let problem = Problem::new(format!("{}({types}) cannot be exported to ONNX", node.op.name()));
                self.problems.push(problem.at(Place::Source(node.loc.clone())).because(why).help(help));
                results.iter().map(|ty| b.zeros(ty)).collect()
            }
        }
    }

    fn operator(&mut self, b: &mut Builder, op: &Op, x: &[Val], results: &[Type]) -> Result<Vec<Val>, Refusal> {
        let ty = results.first();
        Ok(vec![match op {
            Op::Constant(literal) => b.constant(literal),
            Op::Iota { ty, axis } => b.iota(ty, *axis),
            Op::Unary(op) => elementwise::unary(b, *op, &x[0])?,
            Op::Binary(op) => elementwise::binary(b, *op, &x[0], &x[1])?,
            Op::Compare(relation) => elementwise::compare(b, *relation, &x[0], &x[1]),
            Op::Select => b.choose(&x[0], &x[1], &x[2]),
            Op::Clamp => elementwise::clamp(b, &x[0], &x[1], &x[2]),
            Op::Cast(dtype) => cast::cast(b, &x[0], *dtype)?,
            Op::Bitcast(dtype) => bitcast(b, &x[0], *dtype)?,
            Op::ReducePrecision { exponent, mantissa } => cast::reduce_precision(b, &x[0], *exponent, *mantissa),
            Op::Reduce { monoid, axes, accumulator } => reduction::reduce(b, *monoid, axes, *accumulator, &x[0]),
            Op::ArgReduce { extreme, axis } => {
                let found = reduction::arg_reduce(b, *extreme, *axis, &x[0]);
                b.cast(&found, DType::I32)
            }
            Op::Cumulative { monoid, axis, reverse, exclusive } => {
                let (monoid, axis, reverse, exclusive) = (*monoid, *axis, *reverse, *exclusive);
                reduction::cumulative(b, &reduction::Running { monoid, axis, reverse, exclusive }, &x[0])
            }
            Op::Reshape(shape) => b.reshape(&x[0], shape),
            Op::Transpose(permutation) => b.transpose(&x[0], permutation),
            Op::Broadcast { shape, axes } => b.broadcast(&x[0], shape, axes),
            Op::Slice { starts, limits, strides } => b.slice(&x[0], starts, limits, strides),
            Op::Pad { low, high, interior } => b.pad(&x[0], low, high, interior, &x[1]),
            Op::Concatenate { axis } => b.concatenate(&x.iter().collect::<Vec<_>>(), *axis),
            Op::Reverse(axes) => b.reverse(&x[0], axes),
            Op::DynamicSlice { sizes } => indexing::dynamic_slice(b, sizes, &x[0], &x[1..]),
            Op::DynamicUpdateSlice => indexing::dynamic_update_slice(b, &x[0], &x[1], &x[2..]),
            Op::Gather { axis } => indexing::gather(b, &x[0], &x[1], *axis),
            Op::Scatter { mode, axis } => indexing::scatter(b, *mode, *axis, &x[0], &x[1], &x[2]),
            Op::Sort { axis, descending } => return Ok(indexing::sort(b, *axis, *descending, x)),
            Op::DotGeneral(dot) => contraction::dot_general(b, dot, &x[0], &x[1]),
            Op::Convolution(conv) => {
                contraction::convolution(b, conv, &x[0], &x[1], ty.expect("a convolution has a result"))
            }
            Op::ReduceWindow { monoid, window } => window::reduce_window(b, *monoid, window, &x[0]),
            Op::SelectAndScatter { extreme, window } => window::select_and_scatter(b, *extreme, window, &x[0], &x[1]),
            Op::RngBits(_) => indexing::rng_bits(b, &x[0], ty.expect("random bits are a result")),
            Op::Call(callee) => return Ok(composite::lower(b, self.module.function(*callee), x, results)),
            Op::Scan(scan) => return Ok(self.scan(b, scan, x, results)),
            Op::Barrier => return Ok(x.iter().map(|x| b.unary("Identity", x)).collect()),
        }])
    }

    /// ONNX's `Scan`. Its body sees the constants by their names.
    fn scan(&mut self, b: &mut Builder, scan: &Scan, x: &[Val], results: &[Type]) -> Vec<Val> {
        let (carries, rest) = x.split_at(scan.carries);
        let (constants, stacked) = rest.split_at(scan.constants);
        if scan.trip_count == 0 {
            let outputs = results[scan.carries..].iter().map(|ty| b.zeros(ty));
            return carries.iter().cloned().chain(outputs.collect::<Vec<_>>()).collect();
        }
        // The number of steps is the extent of what is scanned: something has to be.
        let mut scanned = stacked.to_vec();
        if scanned.is_empty() {
            scanned.push(b.count(scan.trip_count));
        }
        let mut inner = b.nested();
        let slice = |v: &Val| v.ty.with_shape(&v.shape()[1..]);
        let carried: Vec<Val> = carries.iter().map(|v| inner.named("carry", v.ty.clone())).collect();
        let slices: Vec<Val> = scanned.iter().map(|v| inner.named("slice", slice(v))).collect();
        let arguments = [&carried[..], constants, &slices[..stacked.len()]].concat();
        let body = self.module.function(scan.body);
        let returned = self.function(&mut inner, body, &arguments);
        let outputs: Vec<Val> = returned.iter().map(|v| inner.named("next", v.ty.clone())).collect();
        outputs.iter().zip(&returned).for_each(|(output, value)| inner.define(output, value));
        let (graph, taken) = inner.finish(&body.name, &[carried, slices].concat(), &outputs);
        b.reserve(taken);
        let mut attributes =
            vec![AttributeProto::graph("body", graph), AttributeProto::int("num_scan_inputs", scanned.len() as i64)];
        if scan.reverse {
            let ones = |n: usize| std::iter::repeat_n(1, n);
            attributes.push(AttributeProto::ints("scan_input_directions", ones(scanned.len())));
            attributes.push(AttributeProto::ints("scan_output_directions", ones(results.len() - scan.carries)));
        }
        let inputs: Vec<&Val> = carries.iter().chain(&scanned).collect();
        b.nodes("Scan", &inputs, attributes, results.to_vec())
    }
}

/// Between integers a cast wraps, which keeps every bit.
fn bitcast(b: &mut Builder, x: &Val, to: DType) -> Result<Val, Refusal> {
    if x.dtype().is_float() != to.is_float() || x.dtype().is_float() {
        return Err(refusal(
            "no operator of ONNX up to set 21 reads the bits of floats",
            "compute with the numbers instead",
        ));
    }
    Ok(b.cast(x, to))
}
