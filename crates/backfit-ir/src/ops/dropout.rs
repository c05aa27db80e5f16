//! `dropout(x, key)`: every element is kept with probability 1 − rate and then scaled by 1 / (1 − rate), else it is 0.
//!
//! Srivastava et al. 2014. x: floats, key: `u32[4]`. An element is kept where a number of U[0, 1) in f32 is not below the rate.
//! Outside training it is the identity.

use super::composite::{accepted, float, number};
use super::definition::{Body, Composite, Derivative, Kind, OpDef, Sample, Tolerance, values};
use super::elementwise::arity;
use super::fold_in::{check_key, key};
use crate::attributes::Attributes;
use crate::builder::Tensor;
use crate::dtype::DType;
use crate::shape::Type;

impl Tensor {
    /// Dropout with a key of its own from [`Graph::random_key`](crate::Graph::random_key), in the main function.
    /// With a rate of 0 it is this tensor, and nothing is drawn.
    #[track_caller]
    pub fn dropout(&self, rate: f64) -> Tensor {
        if rate == 0.0 {
            return self.clone();
        }
        self.dropout_with(&self.graph().random_key(), rate)
    }

    /// Dropout with a key that is given, a `u32[4]`.
    #[track_caller]
    pub fn dropout_with(&self, key: &Tensor, rate: f64) -> Tensor {
        self.compose(&DEF, &[key], Attributes::new().with("rate", rate))
    }
}

fn check(types: &[Type], attributes: &Attributes) -> Result<(), String> {
    number(attributes, "rate", "between 0 and 1", |v| (0.0..=1.0).contains(&v))?;
    arity(types, 2)?;
    float("x", &types[0])?;
    check_key(&types[1])
}

fn body(b: &Body) -> Vec<Tensor> {
    let (x, rate) = (&b.operands[0], accepted(b.attributes.float("rate")));
    let u = b.operands[1].random_uniform(x.shape(), 0.0, 1.0, DType::F32);
    let scale = if rate < 1.0 { 1.0 / (1.0 - rate) } else { 0.0 };
    vec![u.ge(&u.like(rate)).select(&(x * scale), &x.like(0.0))]
}

/// The definition.
pub static DEF: OpDef = OpDef {
    name: "dropout",
    formula: "y = x / (1 − rate) where u ≥ rate, else 0",
    kind: Kind::Composite(Composite { results: 1, check, body, inference: Some(|b| vec![b.operands[0].clone()]) }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Element(1.0),
    onnx: &[],
    samples: || {
        let at = |rate| move |_: &_, x: &[Tensor]| vec![x[0].dropout_with(&x[1], rate)];
        let inputs = || vec![values::tensor([4, 5], -2.0, 2.0, 1), key([1, 2, 3, 4])];
        vec![
            Sample::floats("half", inputs(), at(0.5)),
            Sample::floats("a quarter", inputs(), at(0.25)),
            Sample::floats("nothing", inputs(), at(0.0)),
            Sample::floats("everything", inputs(), at(1.0)),
        ]
    },
};
