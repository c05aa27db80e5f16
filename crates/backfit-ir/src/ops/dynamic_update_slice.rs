//! `dynamic_update_slice(x, update, start…)`: x with a window replaced whose place is computed.
//!
//! One scalar start of any integer dtype per axis, clamped to 0..=n − size so that the window stays inside.
//! x of every dtype but packed ones, the update of the same. Errors: an update of another dtype or rank or larger
//! than x, starts that are not one integer scalar per axis. Source: StableHLO `dynamic_update_slice`.

use super::definition::{BOOLS, Derivative, Kind, OpDef, Primitive, Sample, Tolerance, Vjp, values};
use super::dynamic_slice::{check_window, window_offset};
use super::elementwise::{no_attributes, no_flops};
use super::structure::sized;
use crate::builder::Tensor;
use crate::interp::{Array, Odometer};
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// This tensor with `update` in place of the window at scalar start indices, one per axis, which are clamped.
    #[track_caller]
    pub fn dynamic_update_slice(&self, update: &Tensor, starts: &[&Tensor]) -> Tensor {
        self.graph().push1(Op::DynamicUpdateSlice, &[&[self, update], starts].concat())
    }
}

fn infer(_: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    let [x, update, starts @ ..] = types else {
        return Err("it takes a tensor, an update and one start index per axis".to_owned());
    };
    if update.dtype != x.dtype || update.shape.rank() != x.shape.rank() {
        return Err(format!("the update {update} is not of the dtype and rank of {x}"));
    }
    check_window(x, &update.shape, starts)?;
    sized(x.clone())
}

fn eval(_: &Op, x: &[&Array], _: &[Type]) -> Vec<Array> {
    let mut out = x[0].clone();
    let (strides, update) = (x[0].shape().strides(), x[1].shape());
    let first = window_offset(x[0].shape(), update, &x[2..]);
    for (from, index) in Odometer::new(update).enumerate() {
        let target = first + index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>();
        out.set(target, x[1], from);
    }
    vec![out]
}

/// dx: g with zeros in the window. dupdate: the window of g.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (g, update) = (vjp.cotangent(), &vjp.operands[1]);
    let starts: Vec<&Tensor> = vjp.operands[2..].iter().collect();
    let mut all = vec![None; vjp.operands.len()];
    all[0] = vjp.when(0, || g.dynamic_update_slice(&update.like(0.0), &starts));
    all[1] = vjp.when(1, || g.dynamic_slice(&starts, update.shape()));
    all
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "dynamic_update_slice",
    formula: "y = x, then y[clamp(start) + i] = update[i]",
    kind: Kind::Primitive(Primitive {
        attributes: no_attributes,
        parse: |_| Ok(Op::DynamicUpdateSlice),
        infer,
        eval,
        flops: no_flops,
    }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let put = |_: &_, x: &[Tensor]| vec![x[0].dynamic_update_slice(&x[1], &x[2..].iter().collect::<Vec<_>>())];
        let at = |v: i32| values::indices([], &[v]);
        let x = || values::tensor([4, 5], -2.0, 2.0, 1);
        let update = |shape: [usize; 2]| values::tensor(shape, -2.0, 2.0, 2);
        let bits = || vec![values::integers([3], &[0, 1, 0]), values::integers([1], &[1]), at(2)];
        let integers = vec![values::integers([3], &[1, -2, 3]), values::integers([2], &[7, 8]), at(1)];
        vec![
            Sample::floats("inside", vec![x(), update([2, 3]), at(1), at(2)], put),
            Sample::floats("clamped", vec![x(), update([2, 3]), at(-3), at(1 << 30)], put),
            Sample::floats("whole", vec![x(), update([4, 5]), at(2), at(0)], put),
            Sample::floats("nothing", vec![x(), update([0, 5]), at(7), at(0)], put),
            Sample::floats("scalar", vec![values::floats([], &[2.0]), values::floats([], &[3.0])], put),
            Sample::integers("integers", integers, put),
            Sample::integers("bits", bits(), put).with_dtypes(BOOLS),
        ]
    },
};
