//! `compare(a, b)`: a relation tested elementwise over equal types; the result is bool.
//!
//! Floats as IEEE 754: −0 equals +0, and a comparison with NaN is false, but for `ne`, which is true.
//! Unsigned integers are compared as such; false is less than true.

use super::definition::{Derivative, OpDef, Sample, Tolerance};
use super::elementwise::{Elementwise, Takes, infer_binary, order, samples};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::interp::{Array, Data};
use crate::op::{Comparison, Keyword, Op};
use crate::shape::Type;
use std::cmp::Ordering;

impl Tensor {
    /// Tests a relation after broadcasting; the result is bool.
    #[track_caller]
    pub fn compare(&self, relation: Comparison, other: &Tensor) -> Tensor {
        self.binary(Op::Compare(relation), other).or_poison(DType::Bool)
    }

    /// Whether elements are equal. False for NaN.
    #[track_caller]
    pub fn eq(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Eq, other)
    }

    /// Whether elements differ. True for NaN.
    #[track_caller]
    pub fn ne(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Ne, other)
    }

    /// Whether elements are less than the other's. False for NaN.
    #[track_caller]
    pub fn lt(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Lt, other)
    }

    /// Whether elements are less than the other's or equal. False for NaN.
    #[track_caller]
    pub fn le(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Le, other)
    }

    /// Whether elements are greater than the other's. False for NaN.
    #[track_caller]
    pub fn gt(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Gt, other)
    }

    /// Whether elements are greater than the other's or equal. False for NaN.
    #[track_caller]
    pub fn ge(&self, other: &Tensor) -> Tensor {
        self.compare(Comparison::Ge, other)
    }
}

fn relation(op: &Op) -> Comparison {
    match op {
        Op::Compare(relation) => *relation,
        _ => unreachable!("a rule of compare"),
    }
}

/// Whether a relation holds between things in this order; `None` is unordered.
fn holds(relation: Comparison, order: Option<Ordering>) -> bool {
    match relation {
        Comparison::Eq => order == Some(Ordering::Equal),
        Comparison::Ne => order != Some(Ordering::Equal),
        Comparison::Lt => order.is_some_and(Ordering::is_lt),
        Comparison::Le => order.is_some_and(Ordering::is_le),
        Comparison::Gt => order.is_some_and(Ordering::is_gt),
        Comparison::Ge => order.is_some_and(Ordering::is_ge),
    }
}

fn eval(op: &Op, x: &[&Array], ty: &[Type]) -> Vec<Array> {
    let test = |order| i64::from(holds(relation(op), order));
    let out = match (&x[0].data, &x[1].data) {
        (Data::Float(a), Data::Float(b)) => a.iter().zip(b).map(|(a, b)| test(a.partial_cmp(b))).collect(),
        _ => {
            let pairs = x[0].as_ints().iter().zip(x[1].as_ints());
            pairs.map(|(&a, &b)| test(Some(order(x[0].ty.dtype, a, b)))).collect()
        }
    };
    vec![Array::ints(ty[0].clone(), out)]
}

/// The definition.
pub static DEF: OpDef = Elementwise {
    formula: "y = a ⋚ b",
    parse: |a| Ok(Op::Compare(Comparison::from_word(a.str("relation")?)?)),
    infer: |_, types| Ok(vec![infer_binary(types, Takes::All)?[0].with_dtype(DType::Bool)]),
    eval,
    derivative: Derivative::NotDifferentiable("the result is a truth value"),
    tolerance: Tolerance::Exact,
    onnx: &[],
    samples: || Comparison::WORDS.iter().flat_map(|&(relation, word)| cases(relation, word)).collect(),
}
.define_with("compare", |op| Attributes::new().with("relation", relation(op).word()));

fn cases(relation: Comparison, word: &str) -> Vec<Sample> {
    let test = move |a: &Tensor, b: &Tensor| a.compare(relation, b);
    let mut all = samples::binary((-4.0, 4.0), (-4.0, 4.0), test);
    all.push(samples::binary_integers(test));
    all.push(samples::binary_bools(test));
    all.into_iter()
        .map(|sample| Sample { label: format!("{word}: {}", sample.label), smooth: false, ..sample })
        .collect()
}
