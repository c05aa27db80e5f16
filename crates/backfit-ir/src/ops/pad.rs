//! `pad(x, value)`: adds `value`, a scalar, around and between elements; negative edges cut.
//!
//! Along each axis the extent becomes low + n + (n − 1)·interior + high; edges cut after the interior is added.
//! Every dtype but packed ones. Errors: lists that have not one entry per axis, a value that is not a scalar of
//! x's dtype, edges that cut more than there is. Source: StableHLO `pad`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::{arity, no_flops};
use super::structure::{LIMIT, dilated, extent, one_each, sized};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::interp::{Array, Odometer};
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// Adds a number around (`low`, `high`; negative cuts) and between (`interior`) elements, per axis.
    #[track_caller]
    pub fn pad(&self, low: &[i64], high: &[i64], interior: &[usize], value: f64) -> Tensor {
        self.pad_with(low, high, interior, &self.graph().scalar(self.dtype(), value))
    }

    /// As [`Tensor::pad`], with a scalar tensor.
    #[track_caller]
    pub fn pad_with(&self, low: &[i64], high: &[i64], interior: &[usize], value: &Tensor) -> Tensor {
        let (low, high, interior) = (low.to_vec(), high.to_vec(), interior.to_vec());
        self.graph().push1(Op::Pad { low, high, interior }, &[self, value])
    }
}

fn parts(op: &Op) -> (&[i64], &[i64], &[usize]) {
    match op {
        Op::Pad { low, high, interior } => (low, high, interior),
        _ => unreachable!("a rule of pad"),
    }
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 2)?;
    let (low, high, interior) = parts(op);
    let (ty, value) = (&types[0], &types[1]);
    for (words, entries) in [("low", low.len()), ("high", high.len()), ("interior", interior.len())] {
        one_each(words, entries, ty.shape.rank())?;
    }
    if *value != Type::new(ty.dtype, []) {
        return Err(format!("the value is {value}; it must be a scalar {}[]", ty.dtype));
    }
    let mut dims = Vec::with_capacity(low.len());
    for axis in 0..low.len() {
        let amounts = [low[axis].unsigned_abs(), high[axis].unsigned_abs(), interior[axis] as u64];
        if amounts.iter().any(|&v| v > LIMIT as u64) {
            return Err(format!("the padding of axis {axis} is too large to address"));
        }
        let inner = dilated(ty.shape[axis], interior[axis] + 1);
        let padded = i128::from(low[axis]) + inner + i128::from(high[axis]);
        if padded < 0 {
            return Err(format!("edges {} and {} cut more of axis {axis} than its {inner}", low[axis], high[axis]));
        }
        dims.push(extent(padded, axis)?);
    }
    sized(ty.with_shape(dims))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (low, _, interior) = parts(op);
    let shape = &results[0].shape;
    let strides = shape.strides();
    let mut out = x[1].pick(results[0].clone(), |_| 0);
    'elements: for (from, index) in Odometer::new(x[0].shape()).enumerate() {
        let mut target = 0;
        for axis in 0..index.len() {
            let spread = (index[axis] * (interior[axis] + 1)) as i64 + low[axis];
            match usize::try_from(spread) {
                Ok(i) if i < shape[axis] => target += i * strides[axis],
                _ => continue 'elements,
            }
        }
        out.set(target, x[0], from);
    }
    vec![out]
}

/// dx is g where x's elements are, with zeros for those that were cut; dvalue the sum of g everywhere else.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (low, high, interior) = parts(vjp.op);
    let (x, g) = (&vjp.operands[0], vjp.cotangent());
    let back = |edges: &[i64]| edges.iter().map(|e| -e).collect::<Vec<_>>();
    let dx = || {
        let whole = g.pad(&back(low), &back(high), &vec![0; x.rank()], 0.0);
        let steps: Vec<usize> = interior.iter().map(|i| i + 1).collect();
        whole.slice(&vec![0; x.rank()], whole.shape(), &steps)
    };
    let dvalue = || {
        let inside = vjp.graph.full(Type::new(DType::Bool, x.shape()), 1.0).pad(low, high, interior, 0.0);
        vjp.graph.push1(Op::Select, &[&inside, &g.like(0.0), g]).sum_all()
    };
    vec![vjp.when(0, dx), vjp.when(1, dvalue)]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "pad",
    formula: "y[low + i·(interior + 1)] = x[i], value elsewhere",
    kind: Kind::Primitive(Primitive {
        attributes: |op| {
            let (low, high, interior) = parts(op);
            Attributes::new().with("low", low.to_vec()).with("high", high.to_vec()).with("interior", interior)
        },
        parse: |a| Ok(Op::Pad { low: a.ints("low")?, high: a.ints("high")?, interior: a.sizes("interior")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let pad = |low: &'static [i64], high: &'static [i64], interior: &'static [usize]| {
            move |_: &_, x: &[Tensor]| vec![x[0].pad_with(low, high, interior, &x[1])]
        };
        let x = || vec![values::tensor([2, 3], -2.0, 2.0, 1), values::floats([], &[0.5])];
        let int = || vec![values::integers([3], &[1, -2, 3]), values::integers([], &[7])];
        let bits = || vec![values::integers([2], &[1, 1]), values::integers([], &[0])];
        vec![
            Sample::floats("edges", x(), pad(&[1, 0], &[0, 2], &[0, 0])),
            Sample::floats("interior", x(), pad(&[1, 2], &[1, 0], &[2, 1])),
            Sample::floats("cut", x(), pad(&[-1, -1], &[0, -1], &[0, 0])),
            Sample::floats("cut between elements", x(), pad(&[-2, -1], &[1, -2], &[2, 2])),
            Sample::floats("cut everything", x(), pad(&[0, -2], &[0, -1], &[0, 0])),
            Sample::floats(
                "nothing",
                vec![values::floats([0], &[]), values::floats([], &[2.0])],
                pad(&[1], &[2], &[3]),
            ),
            Sample::floats("scalar", vec![values::floats([], &[1.0]), values::floats([], &[2.0])], pad(&[], &[], &[])),
            Sample::integers("integers", int(), pad(&[1], &[1], &[1])),
            Sample::integers("bits", bits(), pad(&[1], &[0], &[1])).with_dtypes(BOOLS),
        ]
    },
};
