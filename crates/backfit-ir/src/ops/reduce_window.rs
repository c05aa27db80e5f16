//! `reduce_window(x)`: sum, product, max, min, and, or over sliding windows.
//!
//! `y[o] = ⊕ x[o·stride + k·dilation − pad_low]` over the window's elements k that lie within x: padding is ignored.
//! A window that lies wholly in padding gives the neutral element, as in `reduce`. Along each axis, with
//! e = (size − 1)·dilation + 1, there are ⌊(pad_low + n + pad_high − e) / stride⌋ + 1 windows, none where e does not fit.
//! max and min give NaN where any element of the window is NaN. Half precision is accumulated in f32; integers wrap.
//! Errors: lists that have not one entry per axis, size, stride or dilation 0, a monoid that is not defined on the
//! dtype. Source: StableHLO `reduce_window`.

use super::definition::{Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::arity;
use super::reduce::{check_monoid, combine_float, combine_int, neutral_float, neutral_int};
use super::structure::{LIMIT, dilated, extent, one_each, sized, windows};
use crate::attributes::{AttrResult, Attributes};
use crate::builder::Tensor;
use crate::error::Problem;
use crate::interp::{Array, Odometer};
use crate::op::{Extreme, Keyword, Monoid, Op};
use crate::shape::{Shape, Type};
use std::panic::Location;

/// Sliding windows, one entry per axis of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Extents of the window.
    pub size: Vec<usize>,
    /// Step from one window to the next.
    pub stride: Vec<usize>,
    /// Distance between elements of a window (1 = dense).
    pub dilation: Vec<usize>,
    /// Padding before the first element; the reduction ignores it.
    pub pad_low: Vec<usize>,
    /// Padding after the last element; the reduction ignores it.
    pub pad_high: Vec<usize>,
}

impl Window {
    /// Windows of these extents, one element apart, dense, without padding. Change the fields that differ.
    pub fn dense(size: &[usize]) -> Self {
        let (ones, zeros) = (vec![1; size.len()], vec![0; size.len()]);
        let (stride, dilation) = (ones.clone(), ones);
        Window { size: size.to_vec(), stride, dilation, pad_low: zeros.clone(), pad_high: zeros }
    }

    /// The shape of one element per window, or what is wrong with the windows.
    pub fn count(&self, x: &Type) -> Result<Shape, String> {
        let at_least_one = [("size", &self.size), ("stride", &self.stride), ("dilation", &self.dilation)];
        for (words, list) in at_least_one.into_iter().chain([("pad_low", &self.pad_low), ("pad_high", &self.pad_high)])
        {
            one_each(words, list.len(), x.shape.rank())?;
            if let Some(v) = list.iter().find(|&&v| v > LIMIT) {
                return Err(format!("'{words}' has an entry {v}, which is too large to address"));
            }
        }
        if let Some((words, _)) = at_least_one.into_iter().find(|(_, list)| list.contains(&0)) {
            return Err(format!("'{words}' has an entry 0; it must be at least 1"));
        }
        let along = |a: usize| {
            let padded = self.pad_low[a] as i128 + x.shape[a] as i128 + self.pad_high[a] as i128;
            extent(windows(padded, dilated(self.size[a], self.dilation[a]), self.stride[a]), a)
        };
        Ok((0..x.shape.rank()).map(along).collect::<Result<Vec<_>, _>>()?.into())
    }

    /// Offsets into a tensor of this shape of a window's elements that lie within it, in row-major order.
    pub fn elements(&self, shape: &Shape, window: &[usize]) -> Vec<usize> {
        let strides = shape.strides();
        let within = |a: usize| -> Vec<usize> {
            let (start, step, low) = (window[a] * self.stride[a], self.dilation[a], self.pad_low[a]);
            let first = low.saturating_sub(start).div_ceil(step);
            let end = (low + shape[a]).saturating_sub(start).div_ceil(step).min(self.size[a]);
            (first..end).map(|k| (start + k * step - low) * strides[a]).collect()
        };
        let axes: Vec<Vec<usize>> = (0..shape.rank()).map(within).collect();
        let counts: Vec<usize> = axes.iter().map(Vec::len).collect();
        Odometer::new(&counts).map(|index| index.iter().zip(&axes).map(|(&i, axis)| axis[i]).sum()).collect()
    }

    /// Adds the five lists.
    pub(super) fn write(&self, attributes: Attributes) -> Attributes {
        attributes
            .with("size", &self.size)
            .with("stride", &self.stride)
            .with("dilation", &self.dilation)
            .with("pad_low", &self.pad_low)
            .with("pad_high", &self.pad_high)
    }

    /// Reads the five lists.
    pub(super) fn read(a: &Attributes) -> AttrResult<Self> {
        Ok(Window {
            size: a.sizes("size")?,
            stride: a.sizes("stride")?,
            dilation: a.sizes("dilation")?,
            pad_low: a.sizes("pad_low")?,
            pad_high: a.sizes("pad_high")?,
        })
    }
}

impl Tensor {
    /// Reduces over sliding windows; padding is ignored.
    #[track_caller]
    pub fn reduce_window(&self, monoid: Monoid, window: Window) -> Tensor {
        self.graph().push1(Op::ReduceWindow { monoid, window }, &[self])
    }
}

fn parts(op: &Op) -> (Monoid, &Window) {
    match op {
        Op::ReduceWindow { monoid, window } => (*monoid, window),
        _ => unreachable!("a rule of reduce_window"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 1)?;
    let (monoid, window) = parts(op);
    check_monoid(monoid, types[0].dtype)?;
    if matches!(monoid, Monoid::And | Monoid::Or) && types[0].dtype != crate::DType::Bool {
        return Err(format!("'{}' over windows takes truth values, not {}", monoid.word(), types[0].dtype));
    }
    sized(types[0].with_shape(window.count(&types[0])?))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (monoid, window) = parts(op);
    let ty = results[0].clone();
    let every = Odometer::new(&ty.shape).map(|at| window.elements(x[0].shape(), &at));
    vec![if ty.dtype.is_float() {
        let start = neutral_float(monoid);
        let fold = |w: Vec<usize>| w.into_iter().fold(start, |a, i| combine_float(monoid, a, x[0].as_floats()[i]));
        let values = every.map(fold).collect();
        Array::floats(ty, values)
    } else {
        let start = neutral_int(monoid, ty.dtype);
        let combine = |a, i: usize| combine_int(monoid, ty.dtype, a, x[0].as_ints()[i]);
        let fold = |w: Vec<usize>| w.into_iter().fold(start, |a, i| crate::interp::wrap(ty.dtype, combine(a, i)));
        let values = every.map(fold).collect();
        Array::ints(ty, values)
    }]
}

/// sum: each element gets the sum of g over the windows that hold it. max, min: the first extreme of each window
/// gets its g. product: refused.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (monoid, window) = parts(vjp.op);
    let (x, g) = (&vjp.operands[0], vjp.cotangent());
    vec![match monoid {
        Monoid::Sum => Some(spread(window, x, g)),
        Monoid::Max => Some(x.select_and_scatter(Extreme::Max, window.clone(), g)),
        Monoid::Min => Some(x.select_and_scatter(Extreme::Min, window.clone(), g)),
        Monoid::Product => {
            let problem = Problem::new("reduce_window: the product over windows has no derivative")
                .help("take the sum of logarithms and its exponential, or stop the gradient here");
            vjp.graph.problem(problem, Location::caller());
            Some(vjp.graph.poison(x.ty().clone()))
        }
        Monoid::And | Monoid::Or => None,
    }]
}

/// dx[i] = Σₖ G[i + pad_low − k·dilation], G being g with stride − 1 zeros in between: windows one apart over G.
fn spread(window: &Window, x: &Tensor, g: &Tensor) -> Tensor {
    if g.shape().elements() == 0 || x.shape().elements() == 0 {
        return x.like(0.0);
    }
    // Extents of 1 have nothing in between, whatever the stride.
    let interior: Vec<usize> =
        g.shape().iter().zip(&window.stride).map(|(&n, s)| if n == 1 { 0 } else { s - 1 }).collect();
    let reach = |a: usize| (window.size[a] - 1) * window.dilation[a];
    let low: Vec<i64> = (0..x.rank()).map(|a| reach(a) as i64 - window.pad_low[a] as i64).collect();
    let length = |a: usize| dilated(g.shape()[a], interior[a] + 1) as i64;
    let high: Vec<i64> = (0..x.rank()).map(|a| (x.shape()[a] + reach(a)) as i64 - low[a] - length(a)).collect();
    let dense = Window { dilation: window.dilation.clone(), ..Window::dense(&window.size) };
    g.pad(&low, &high, &interior, 0.0).reduce_window(Monoid::Sum, dense)
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "reduce_window",
    formula: "y[o] = ⊕ x[o·stride + k·dilation − pad_low] over k",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (monoid, window) = parts(op);
            window.write(Attributes::new().with("monoid", monoid.word()))
        },
        parse: |a| Ok(Op::ReduceWindow { monoid: Monoid::from_word(a.str("monoid")?)?, window: Window::read(a)? }),
        infer,
        eval,
        flops: |op, _, results| {
            let per_window = parts(op).1.size.iter().map(|&n| n as u64);
            per_window.fold(results[0].shape.elements() as u64, u64::saturating_mul)
        },
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Norm(32.0),
    onnx: &[],
    samples,
};

/// Windows for samples, with the shape they slide over.
pub(super) fn window_cases() -> Vec<(&'static str, Vec<usize>, Window)> {
    let dense = Window::dense;
    vec![
        ("overlapping", vec![5, 4], dense(&[3, 2])),
        ("apart", vec![2, 4, 7], Window { stride: vec![1, 2, 3], ..dense(&[1, 2, 2]) }),
        ("strided, overlapping", vec![7], Window { stride: vec![2], ..dense(&[3]) }),
        ("padded", vec![4, 3], Window { pad_low: vec![1, 0], pad_high: vec![0, 2], ..dense(&[2, 3]) }),
        ("dilated", vec![6, 5], Window { dilation: vec![2, 3], stride: vec![1, 2], ..dense(&[3, 2]) }),
        (
            "dilated and padded",
            vec![4],
            Window { dilation: vec![3], pad_low: vec![3], pad_high: vec![3], ..dense(&[2]) },
        ),
        ("windows wholly in padding", vec![2], Window { pad_low: vec![3], pad_high: vec![2], ..dense(&[2]) }),
        ("one element", vec![1, 1], dense(&[1, 1])),
        ("does not fit", vec![2, 3], dense(&[3, 1])),
        ("nothing but padding", vec![0, 3], Window { pad_high: vec![2, 0], ..dense(&[1, 2]) }),
        ("scalar", vec![], dense(&[])),
    ]
}

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for monoid in [Monoid::Sum, Monoid::Max, Monoid::Min, Monoid::Product] {
        for (words, shape, window) in window_cases() {
            let slide = move |_: &_, x: &[Tensor]| vec![x[0].reduce_window(monoid, window.clone())];
            let x = values::tensor(shape, -2.0, 2.0, 1);
            let differentiable = monoid == Monoid::Sum || (monoid != Monoid::Product && !words.contains("padding"));
            let sample = Sample::floats(&format!("{}, {words}", monoid.word()), vec![x], slide);
            all.push(Sample { smooth: differentiable, ..sample });
        }
        let pairs = move |_: &_, x: &[Tensor]| vec![x[0].reduce_window(monoid, Window::dense(&[2]))];
        let ties = values::floats([5], &[1.0, 1.0, 0.0, 0.0, 1.0]);
        all.push(Sample::floats("equal values", vec![ties], pairs).not_smooth());
        all.push(Sample::floats("danger values", vec![values::danger()], pairs).not_smooth());
        all.push(Sample::integers("integers", vec![values::integers([4], &[1, 200, 100, -7])], pairs));
    }
    for monoid in [Monoid::And, Monoid::Or] {
        let pairs = move |_: &_, x: &[Tensor]| vec![x[0].reduce_window(monoid, Window::dense(&[2]))];
        let bits = values::integers([4], &[1, 1, 0, 0]);
        let label = format!("{} of truth values", monoid.word());
        all.push(Sample::integers(&label, vec![bits], pairs).with_dtypes(super::definition::BOOLS));
    }
    all
}
