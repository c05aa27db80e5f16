//! The walk through functions, calls and loops.

use super::interval::Interval;
use super::relations::refined;
use super::transfer::transfer;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{FuncId, Init, Module, Node, Op, Param, Type, ValueId};

/// Loops up to this long are walked step by step; of longer ones a few steps, and then whatever still grows may be anything.
const STEPS: usize = 128;
/// Steps of a long loop before that.
const TRIES: usize = 8;

/// For every value of the functions that were reached an interval that contains it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    functions: Vec<Vec<Option<Interval>>>,
}

impl Bounds {
    /// The interval of a value; `None` where its function was not reached.
    pub fn of(&self, function: FuncId, value: ValueId) -> Option<Interval> {
        *self.functions.get(function.index())?.get(value.index())?
    }
}

/// What a parameter holds before the first step: what it starts as, six deviations where that is normal, or, for an input, any
/// number of its dtype.
pub fn declared_range(param: &Param, ty: &Type) -> Interval {
    match &param.init {
        Some(Init::Constant(value)) => Interval::point(*value),
        Some(Init::Uniform { low, high }) => Interval::new(*low, *high),
        Some(Init::Normal { mean, std }) => Interval::new(mean - 6.0 * std, mean + 6.0 * std),
        Some(Init::Literal(literal)) => Interval::of_literal(literal),
        None => Interval::everything(ty.dtype),
    }
}

/// Bounds of every value that `function` computes from parameters within these intervals.
///
/// ```
/// use backfit_compile::range::{Interval, bounds};
/// use backfit_ir::{DType, Graph};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [4]);
/// let y = (&x * &x).sum_all();
/// g.result("y", &y);
/// let module = g.finish().unwrap();
/// let id = module.find("main").unwrap();
/// let found = bounds(&module, id, &[Interval::new(-1.0, 3.0)]).of(id, y.value().unwrap()).unwrap();
/// assert!(found.contains(36.0) && !found.contains(36.1) && !found.contains(-0.1));
/// ```
pub fn bounds(module: &Module, function: FuncId, params: &[Interval]) -> Bounds {
    let functions = module.functions.iter().map(|f| vec![None; f.values.len()]).collect();
    let mut walk = Walk { module, bounds: Bounds { functions } };
    walk.function(function, params);
    walk.bounds
}

struct Walk<'m> {
    module: &'m Module,
    bounds: Bounds,
}

impl Walk<'_> {
    fn function(&mut self, id: FuncId, params: &[Interval]) -> Vec<Interval> {
        let f = self.module.function(id);
        let mut known = vec![Interval::point(0.0); f.values.len()];
        for (param, interval) in f.params.iter().zip(params) {
            known[param.value.index()] = interval.settled(f.ty(param.value), 0.0);
        }
        for node in &f.nodes {
            let operands: Vec<Interval> = node.operands.iter().map(|v| known[v.index()]).collect();
            let results = match &node.op {
                Op::Call(callee) => self.function(*callee, &operands),
                Op::Scan(scan) => self.scan(scan, &operands, &f.types(&node.results)),
                op => transfer(op, &operands, &f.types(&node.operands), &f.types(&node.results)),
            };
            let results = refined(f, node, results, &known);
            self.keep(node, results, &mut known);
        }
        for (seen, new) in self.bounds.functions[id.index()].iter_mut().zip(&known) {
            *seen = Some(seen.map_or(*new, |before| before.join(*new)));
        }
        f.results.iter().map(|r| known[r.value.index()]).collect()
    }

    fn keep(&self, node: &Node, results: Vec<Interval>, known: &mut [Interval]) {
        node.results.iter().zip(results).for_each(|(v, interval)| known[v.index()] = interval);
    }

    fn scan(&mut self, scan: &Scan, operands: &[Interval], types: &[Type]) -> Vec<Interval> {
        let mut carried = operands[..scan.carries].to_vec();
        let mut stacked: Option<Vec<Interval>> = None;
        let long = scan.trip_count > STEPS;
        for step in 0..if long { TRIES + 1 } else { scan.trip_count } {
            if long && step == TRIES {
                let everything = types.iter().map(|ty| Interval::everything(ty.dtype));
                carried = carried.into_iter().zip(everything).map(|(_, all)| all).collect();
            }
            let arguments = [&carried, &operands[scan.carries..]].concat();
            let mut results = self.function(scan.body, &arguments);
            let pieces = results.split_off(scan.carries);
            let joined = |before: Vec<Interval>| before.into_iter().zip(&pieces).map(|(a, b)| a.join(*b)).collect();
            stacked = Some(stacked.map_or(pieces.clone(), joined));
            if !long {
                carried = results;
                continue;
            }
            let next: Vec<Interval> = carried.iter().zip(&results).map(|(a, b)| a.join(*b)).collect();
            if next == carried {
                break;
            }
            carried = next;
        }
        let empty = || types[scan.carries..].iter().map(|_| Interval::point(0.0)).collect();
        carried.into_iter().chain(stacked.unwrap_or_else(empty)).collect()
    }
}
