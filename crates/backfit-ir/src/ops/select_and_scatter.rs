//! `select_and_scatter(x, source)`: adds each element of `source` at the first extreme of its window of x.
//!
//! This is the derivative of `reduce_window` with max or min. The result has x's type; source has one element per
//! window (see `reduce_window`). Where extremes tie, the first in row-major order is chosen, and the first NaN where
//! there is one. Padding is never chosen; sources of windows that lie wholly in padding are dropped.
//! Numbers; sums of half precision in f32, integers wrap. Errors: wrong windows, a source of another type.
//! Source: StableHLO `select_and_scatter` with `ge`/`le` and `add`.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use super::reduce_window::{Window, window_cases};
use super::structure::{index_dtype, sized, unpacked};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::{Class, DType};
use crate::interp::{Array, Data, Odometer};
use crate::op::{Extreme, Keyword, Monoid, Op};
use crate::shape::Type;

impl Tensor {
    /// Zeros in this tensor's shape, with each element of `source` added at the first extreme of its window.
    #[track_caller]
    pub fn select_and_scatter(&self, extreme: Extreme, window: Window, source: &Tensor) -> Tensor {
        self.graph().push1(Op::SelectAndScatter { extreme, window }, &[self, source])
    }
}

fn parts(op: &Op) -> (Extreme, &Window) {
    match op {
        Op::SelectAndScatter { extreme, window } => (*extreme, window),
        _ => unreachable!("a rule of select_and_scatter"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 2)?;
    let (_, window) = parts(op);
    unpacked(&types[0])?;
    if types[0].dtype.class() == Class::Bool {
        return Err("it takes numbers, not bool".to_owned());
    }
    let expected = types[0].with_shape(window.count(&types[0])?);
    if types[1] != expected {
        return Err(format!("the source is {}; for these windows it must be {expected}", types[1]));
    }
    sized(types[0].clone())
}

/// Whether an element surpasses the best one so far: NaN surpasses every number, nothing surpasses NaN.
pub fn surpasses(extreme: Extreme, x: &Array, candidate: usize, best: usize) -> bool {
    match &x.data {
        Data::Float(v) => {
            let (a, b) = (v[candidate], v[best]);
            let further = if extreme == Extreme::Max { a > b } else { a < b };
            further || (a.is_nan() && !b.is_nan())
        }
        Data::Int(v) => {
            let order = if x.ty.dtype == DType::U64 {
                (v[candidate] as u64).cmp(&(v[best] as u64))
            } else {
                v[candidate].cmp(&v[best])
            };
            if extreme == Extreme::Max { order.is_gt() } else { order.is_lt() }
        }
    }
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (extreme, window) = parts(op);
    let mut out = Array::from_literal(&crate::Literal::zeros(results[0].clone()));
    for (from, at) in Odometer::new(x[1].shape()).enumerate() {
        let elements = window.elements(x[0].shape(), &at);
        let better = |best, i| if surpasses(extreme, x[0], i, best) { i } else { best };
        let Some(target) = elements.into_iter().reduce(better) else { continue };
        match (&mut out.data, &x[1].data) {
            (Data::Float(y), Data::Float(s)) => y[target] += s[from],
            (Data::Int(y), Data::Int(s)) => {
                y[target] = crate::interp::wrap(results[0].dtype, y[target].wrapping_add(s[from]));
            }
            _ => unreachable!("type rules keep classes apart"),
        }
    }
    vec![out]
}

/// dsource: g at the chosen positions, zero where nothing was chosen. x only chooses: nothing flows to it.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (extreme, window) = parts(vjp.op);
    let (x, source, g) = (&vjp.operands[0], &vjp.operands[1], vjp.cotangent());
    let dsource = || {
        let n = x.shape().elements();
        if n == 0 || source.shape().elements() == 0 {
            return source.like(0.0);
        }
        let chosen = chosen(extreme, window, x, source);
        let taken = g.reshape([n]).gather(&chosen, 0);
        let taken = vjp.graph.push1(Op::Select, &[&chosen.lt(&chosen.like(n as f64)), &taken, &taken.like(0.0)]);
        taken.reshape(source.shape())
    };
    vec![None, vjp.when(1, dsource)]
}

/// For each window the row-major position of its first extreme, or x's number of elements where it has none.
/// Built on a table with a row per window and a column per element of a window; within a row, positions increase.
fn chosen(extreme: Extreme, window: &Window, x: &Tensor, source: &Tensor) -> Tensor {
    let graph = x.graph();
    let rows = source.shape().elements();
    let columns = window.size.iter().fold(1usize, |a, &b| a.saturating_mul(b));
    let n = x.shape().elements();
    let padded = (0..x.rank()).map(|a| window.pad_low[a] + x.shape()[a] + window.pad_high[a]);
    let dtype = index_dtype(padded.fold(n, usize::max));
    let mut position = graph.full(Type::new(dtype, [rows, columns]), 0.0);
    let mut inside = graph.full(Type::new(DType::Bool, [rows, columns]), 1.0);
    for (axis, stride) in x.shape().strides().into_iter().enumerate() {
        let start = &graph.iota(dtype, source.shape(), axis) * window.stride[axis] as f64;
        let step = &graph.iota(dtype, &window.size[..], axis) * window.dilation[axis] as f64;
        let padded = &start.reshape([rows, 1]) + &step.reshape([1, columns]);
        let at = &padded + -(window.pad_low[axis] as f64);
        let (first, end) = (at.like(0.0), at.like(x.shape()[axis] as f64));
        inside = both(&inside, &both(&at.ge(&first), &at.lt(&end)));
        position = &position + &(&at * stride as f64);
    }
    let nowhere = position.like(n as f64);
    let position = graph.push1(Op::Select, &[&inside, &position, &nowhere]);
    let (monoid, worst) = match extreme {
        Extreme::Max => (Monoid::Max, f64::NEG_INFINITY),
        Extreme::Min => (Monoid::Min, f64::INFINITY),
    };
    let table = x.reshape([n]).gather(&position, 0);
    let table = graph.push1(Op::Select, &[&inside, &table, &table.like(worst)]);
    let best = table.reduce_keep(monoid, &[1]).broadcast_to(table.shape());
    // Equal to the extreme, or NaN where the extreme is NaN.
    let either = graph.push1(Op::Select, &[&best.eq(&best), &table.eq(&best), &table.ne(&table)]);
    graph.push1(Op::Select, &[&either, &position, &nowhere]).min(&[1])
}

fn both(a: &Tensor, b: &Tensor) -> Tensor {
    a.binary(Op::Binary(crate::op::Binary::And), b)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "select_and_scatter",
    formula: "y[first extreme of window o of x] += source[o]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (extreme, window) = parts(op);
            window.write(Attributes::new().with("extreme", extreme.word()))
        },
        parse: |a| {
            Ok(Op::SelectAndScatter { extreme: Extreme::from_word(a.str("extreme")?)?, window: Window::read(a)? })
        },
        infer,
        eval,
        flops: |op, types, _| {
            let per_window = parts(op).1.size.iter().map(|&n| n as u64);
            per_window.fold(types[1].shape.elements() as u64, u64::saturating_mul)
        },
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(8.0),
    onnx: &[],
    samples,
};

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for extreme in [Extreme::Max, Extreme::Min] {
        for (words, shape, window) in window_cases() {
            let x = values::tensor(shape, -2.0, 2.0, 1);
            let Ok(count) = window.count(x.ty()) else { continue };
            let source = values::tensor(count, -2.0, 2.0, 2);
            let run = move |_: &_, x: &[Tensor]| vec![x[0].select_and_scatter(extreme, window.clone(), &x[1])];
            all.push(Sample::floats(&format!("{}, {words}", extreme.word()), vec![x, source], run));
        }
        let pairs = move |_: &_, x: &[Tensor]| vec![x[0].select_and_scatter(extreme, Window::dense(&[2]), &x[1])];
        let ties = vec![values::floats([4], &[1.0, 1.0, 0.0, 0.0]), values::floats([3], &[1.0, 2.0, 4.0])];
        all.push(Sample::floats("equal values", ties, pairs).not_smooth());
        let danger = vec![values::danger(), values::tensor([9], -2.0, 2.0, 3)];
        all.push(Sample::floats("danger values", danger, pairs).not_smooth());
        let integers = vec![values::integers([4], &[1, 200, 100, -7]), values::integers([3], &[100, 100, 7])];
        all.push(Sample::integers("integers", integers, pairs));
    }
    all
}
