//! `dynamic_slice(x, start…)`: a window of fixed sizes whose place is computed.
//!
//! One scalar start of any integer dtype per axis, clamped to 0..=n − size so that the window stays inside.
//! x of every dtype but packed ones. Errors: not one start and one size per axis, starts that are not integer
//! scalars, sizes beyond the extents. Source: StableHLO `dynamic_slice`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::elementwise::no_flops;
use super::structure::{clamped, index_like, one_each, sized};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::interp::Array;
use crate::op::Op;
use crate::shape::{Shape, Type};

impl Tensor {
    /// The window of these sizes at scalar start indices, one per axis, which are clamped.
    #[track_caller]
    pub fn dynamic_slice(&self, starts: &[&Tensor], sizes: &[usize]) -> Tensor {
        self.graph().push1(Op::DynamicSlice { sizes: sizes.to_vec() }, &[&[self], starts].concat())
    }
}

fn sizes(op: &Op) -> &[usize] {
    match op {
        Op::DynamicSlice { sizes } => sizes,
        _ => unreachable!("a rule of dynamic_slice"),
    }
}

/// Refuses starts that are not one integer scalar per axis, and windows that do not fit into x.
pub(super) fn check_window(x: &Type, sizes: &[usize], starts: &[Type]) -> Result<(), String> {
    one_each("sizes", sizes.len(), x.shape.rank())?;
    if starts.len() != x.shape.rank() {
        return Err(format!("{} start indices for the {} axes of {x}", starts.len(), x.shape.rank()));
    }
    for start in starts {
        index_like(start)?;
        if start.shape.rank() != 0 {
            return Err(format!("a start index is {start}; it must be a scalar"));
        }
    }
    match (0..sizes.len()).find(|&a| sizes[a] > x.shape[a]) {
        Some(axis) => Err(format!("a window of {} does not fit into axis {axis} of {x}", sizes[axis])),
        None => Ok(()),
    }
}

/// The offset of the window's first element, with starts clamped.
pub(super) fn window_offset(x: &Shape, sizes: &[usize], starts: &[&Array]) -> usize {
    let place = |a: usize| clamped(starts[a], 0, x[a] - sizes[a]);
    x.strides().into_iter().enumerate().map(|(a, stride)| place(a) * stride).sum()
}

fn infer(op: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    let (x, starts) = types.split_first().ok_or("it takes a tensor and one start index per axis")?;
    check_window(x, sizes(op), starts)?;
    sized(x.with_shape(sizes(op)))
}

fn eval(op: &Op, x: &[&Array], results: &[Type]) -> Vec<Array> {
    let (from, shape) = (x[0].shape().strides(), &results[0].shape);
    let (to, first) = (shape.strides(), window_offset(x[0].shape(), sizes(op), &x[1..]));
    let index = |i: usize| first + (0..to.len()).map(|a| i / to[a] % shape[a] * from[a]).sum::<usize>();
    vec![x[0].pick(results[0].clone(), index)]
}

/// Zeros with g put where the window was.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (x, starts) = (&vjp.operands[0], vjp.operands[1..].iter().collect::<Vec<_>>());
    let mut all = vec![None; vjp.operands.len()];
    all[0] = vjp.when(0, || x.like(0.0).dynamic_update_slice(vjp.cotangent(), &starts));
    all
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "dynamic_slice",
    formula: "y[i] = x[clamp(start) + i]",
    kind: Kind::Primitive(Primitive {
        attributes: |op| Attributes::new().with("sizes", sizes(op)),
        parse: |a| Ok(Op::DynamicSlice { sizes: a.sizes("sizes")? }),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let cut = |sizes: &'static [usize]| {
            move |_: &_, x: &[Tensor]| vec![x[0].dynamic_slice(&x[1..].iter().collect::<Vec<_>>(), sizes)]
        };
        let at = |v: i32| values::indices([], &[v]);
        let x = || values::tensor([4, 5], -2.0, 2.0, 1);
        let bits = values::integers([3], &[0, 1, 0]);
        vec![
            Sample::floats("inside", vec![x(), at(1), at(2)], cut(&[2, 3])),
            Sample::floats("clamped", vec![x(), at(-3), at(1 << 30)], cut(&[2, 3])),
            Sample::floats("whole", vec![x(), at(2), at(0)], cut(&[4, 5])),
            Sample::floats("nothing", vec![x(), at(7), at(0)], cut(&[0, 5])),
            Sample::floats("scalar", vec![values::floats([], &[2.0])], cut(&[])),
            Sample::integers("integers", vec![values::integers([3], &[1, -2, 3]), at(1)], cut(&[2])),
            Sample::integers("bits", vec![bits, at(1)], cut(&[1])).with_dtypes(BOOLS),
        ]
    },
};
