//! `clamp(low, x, high) = min(max(x, low), high)`, elementwise over numbers.
//!
//! `high` wins where it is below `low`. Floats: NaN where any of the three is NaN; zeros as in `maximum` and `minimum`.
//! Unsigned integers are compared as such.
//!
//! The cotangent goes to x strictly between the bounds, to `low` where x is below it, to `high` where it cuts;
//! exactly on a bound it goes nowhere.

use super::definition::{Derivative, OpDef, Sample, Tolerance, Vjp, values};
use super::elementwise::{Elementwise, Takes, arity, infer_binary, order, samples};
use crate::builder::Tensor;
use crate::interp::Array;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// This tensor held between bounds; all three are broadcast. NaN where any of them is NaN.
    #[track_caller]
    pub fn clamp(&self, low: &Tensor, high: &Tensor) -> Tensor {
        Tensor::elementwise(Op::Clamp, [low, self, high])
    }
}

fn infer(_: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 3)?;
    infer_binary(&types[1..], Takes::Numbers)?;
    infer_binary(&types[..2], Takes::Numbers)
}

fn eval(_: &Op, x: &[&Array], ty: &[Type]) -> Vec<Array> {
    let [low, x, high] = [x[0], x[1], x[2]];
    let greater = |a, b| if order(ty[0].dtype, a, b).is_gt() { a } else { b };
    let lesser = |a, b| if order(ty[0].dtype, a, b).is_lt() { a } else { b };
    let raised = x.zip(low, ty[0].clone(), libm::fmaximum, greater);
    vec![raised.zip(high, ty[0].clone(), libm::fminimum, lesser)]
}

fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (low, x, high, g) = (&vjp.operands[0], &vjp.operands[1], &vjp.operands[2], vjp.cotangent());
    let where_true = |condition: Tensor| condition.select(g, &g.like(0.0));
    vec![
        vjp.when(0, || where_true(low.gt(x).and(&low.lt(high)))),
        vjp.when(1, || where_true(x.gt(low).and(&x.lt(high)))),
        vjp.when(2, || where_true(high.lt(x).or(&high.lt(low)))),
    ]
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = min(max(x, low), high)",
    parse: |_| Ok(Op::Clamp),
    infer,
    eval,
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || {
        let clamp = |_: &_, x: &[Tensor]| vec![x[1].clamp(&x[0], &x[2])];
        let number = |v: f64| values::floats([], &[v]);
        let bounds = |low, x, high| vec![number(low), x, number(high)];
        let broadcast = vec![
            values::tensor([3, 1], -2.0, 0.0, 1),
            values::tensor([4], -4.0, 4.0, 2),
            values::tensor([2, 1, 1], 0.5, 2.0, 3),
        ];
        let integers = |low, high| {
            vec![
                values::integers([], &[low]),
                values::integers([20], samples::EXTREMES),
                values::integers([1], &[high]),
            ]
        };
        vec![
            Sample::floats("scalar bounds", bounds(-1.53, values::tensor([3, 5], -4.0, 4.0, 1), 1.53), clamp),
            Sample::floats("all broadcast", broadcast, clamp),
            Sample::floats("bounds crossed", bounds(1.0, values::tensor([9], -4.0, 4.0, 1), -1.01), clamp),
            Sample::floats("no elements", bounds(-1.0, values::floats([0], &[]), 1.0), clamp),
            Sample::floats("danger values", bounds(-1.0, values::danger(), 1.0), clamp).not_smooth(),
            Sample::floats("infinite bounds", bounds(f64::NEG_INFINITY, values::danger(), f64::INFINITY), clamp)
                .not_smooth(),
            Sample::floats("bounds that are no numbers", bounds(f64::NAN, values::danger(), 1.0), clamp).not_smooth(),
            Sample::floats("zero bounds", bounds(-0.0, values::danger(), 0.0), clamp).not_smooth(),
            Sample::integers("integers", integers(2, 100), clamp),
            Sample::integers("integers, bounds crossed", integers(100, 3), clamp),
        ]
    },
}
.define("clamp");
