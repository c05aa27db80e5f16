//! An operator of one's own: `swish(x) = x · sigmoid(β x)`, with its derivative written by hand.

use backfit::ir::ops::definition::{Body, Composite, Derivative, Kind, Sample, Tolerance, values};
use backfit::{Attributes, OpDef, Tensor, Type, Vjp};

/// `x · sigmoid(β x)`, element by element.
#[track_caller]
pub fn swish(x: &Tensor, beta: f64) -> Tensor {
    x.graph().composite(&SWISH, &[x], Attributes::new().with("beta", beta)).swap_remove(0)
}

/// What Backfit has to know about it. A target may take it whole; all others see its body.
pub static SWISH: OpDef = OpDef {
    name: "swish",
    formula: "y = x · sigmoid(β x)",
    kind: Kind::Composite(Composite { results: 1, check, body, inference: None }),
    derivative: Derivative::Rule(vjp),
    tolerance: Tolerance::Element(16.0),
    onnx: &[],
    samples: || {
        vec![Sample::floats("β = 1.5", vec![values::tensor([3, 4], -4.0, 4.0, 1)], |_, x| vec![swish(&x[0], 1.5)])]
    },
};

fn check(operands: &[Type], attributes: &Attributes) -> Result<(), String> {
    attributes.float("beta")?;
    match operands {
        [x] if x.dtype.is_float() => Ok(()),
        _ => Err("it takes one tensor of floats".to_owned()),
    }
}

fn beta(attributes: &Attributes) -> f64 {
    attributes.float("beta").expect("it was checked")
}

fn body(b: &Body) -> Vec<Tensor> {
    let x = &b.operands[0];
    vec![x * &(x * beta(b.attributes)).sigmoid()]
}

/// With s = sigmoid(β x): y′ = s + β x s (1 − s) = s + β y (1 − s). It uses the result, which is there already.
fn vjp(vjp: &Vjp) -> Vec<Option<Tensor>> {
    let (x, y, beta) = (&vjp.operands[0], &vjp.results[0], beta(vjp.attributes));
    let s = (x * beta).sigmoid();
    let slope = &s + &(y * beta * (1.0 - &s));
    vec![Some(vjp.cotangent() * &slope)]
}
