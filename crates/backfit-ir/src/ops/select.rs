//! `select(condition, on_true, on_false)`: picks one of two, elementwise over every dtype; the condition is bool.
//!
//! The other one does not matter, not even where it is NaN. The cotangent goes to the one that was picked,
//! and zero to the other: a rule that must not see NaN or ∞ has to keep them out of its operands, too.

use super::definition::{Derivative, OpDef, Sample, Tolerance, values};
use super::elementwise::{Elementwise, Takes, arity, samples};
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::literal::Literal;
use crate::op::Op;
use crate::shape::Type;

impl Tensor {
    /// `on_true` where this bool tensor is true, else `on_false`; all three are broadcast.
    #[track_caller]
    pub fn select(&self, on_true: &Tensor, on_false: &Tensor) -> Tensor {
        Tensor::elementwise(Op::Select, [self, on_true, on_false]).or_poison(on_true.dtype())
    }
}

fn infer(_: &Op, types: &[Type]) -> Result<Vec<Type>, String> {
    arity(types, 3)?;
    let (condition, on_true, on_false) = (&types[0], &types[1], &types[2]);
    if condition.dtype != DType::Bool || condition.shape != on_true.shape {
        return Err(format!("the condition is {condition}; it must be bool{}", on_true.shape));
    }
    if on_true != on_false {
        return Err(format!("the choices are {on_true} and {on_false}; they must be of one type"));
    }
    Takes::All.check(on_true.dtype)?;
    Ok(vec![on_true.clone()])
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = condition ? a : b",
    parse: |_| Ok(Op::Select),
    infer,
    eval: |_, x, ty| {
        let mut y = x[2].clone();
        x[0].as_ints().iter().enumerate().filter(|(_, c)| **c != 0).for_each(|(i, _)| y.set(i, x[1], i));
        debug_assert_eq!(y.ty, ty[0]);
        vec![y]
    },
    derivative: Derivative::Rule(|vjp| {
        let (condition, g) = (&vjp.operands[0], vjp.cotangent());
        let zero = || g.like(0.0);
        vec![None, vjp.when(1, || condition.select(g, &zero())), vjp.when(2, || condition.select(&zero(), g))]
    }),
    tolerance: Tolerance::Exact,
    onnx: &["Where"],
    samples: || {
        let checks = |shape: &[usize]| {
            let ty = Type::new(DType::Bool, shape);
            let bits: Vec<i64> = (0..ty.shape.elements() as i64).map(|i| i % 3 % 2).collect();
            Literal::from_i64(ty, &bits)
        };
        let two = |a: &[usize], b: &[usize]| [values::tensor(a, -4.0, 4.0, 1), values::tensor(b, -4.0, 4.0, 2)];
        let case = |label, c: &[usize], choices: [Literal; 2]| {
            let [a, b] = choices;
            Sample::floats(label, vec![checks(c), a, b], |_, x| vec![x[0].select(&x[1], &x[2])])
        };
        let danger = || [values::danger(), values::floats([1], &[2.0])];
        let integers = vec![checks(&[20]), values::integers([20], samples::EXTREMES), values::integers([], &[5])];
        let bools = vec![checks(&[6]), values::integers([6], &[1, 1, 1, 0, 0, 0]), values::integers([1], &[1])];
        vec![
            case("equal shapes", &[2, 7], two(&[2, 7], &[2, 7])),
            case("all broadcast", &[3, 1, 1], two(&[2, 1], &[5])),
            case("scalar condition", &[], two(&[3], &[])),
            case("no elements", &[0], two(&[1], &[])),
            case("danger values", &[10], danger()).not_smooth(),
            Sample::integers("integers", integers, |_, x| vec![x[0].select(&x[1], &x[2])]),
            Sample::integers("truth values", bools, |_, x| vec![x[0].select(&x[1], &x[2])])
                .with_dtypes(super::definition::BOOLS),
        ]
    },
}
.define("select");
