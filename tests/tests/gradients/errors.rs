//! What reverse mode refuses, and how it says so.

use super::{input, weighted};
use backfit_grad::{Request, gradients, vjp};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, Error, Graph, Literal, Place, Tensor};

/// The place of the only problem must be this line of this file.
#[track_caller]
fn assert_line(error: &Error, line: u32) {
    assert_eq!(error.problems().len(), 1, "{error}");
    match &error.problems()[0].place {
        Some(Place::Source(loc)) => {
            assert!(loc.file.ends_with("errors.rs"), "{loc}");
            assert_eq!(loc.line, line, "{error}");
        }
        other => panic!("the place is {other:?}"),
    }
}

/// A float that has no derivative.
fn hits(x: &Tensor) -> Tensor {
    x.accuracy(&x.graph().constant(Literal::from_i32([2], &[0, 1]))).cast(DType::F64)
}

#[test]
fn a_missing_derivative_names_the_operator_the_line_and_the_path() {
    let g = Graph::new();
    let x = input(&g, "x", &[2, 3]);
    let target = g.constant(Literal::from_i32([2], &[0, 1]));
    let accuracy = x.accuracy(&target);
    let line = line!() - 1;
    let scaled = &accuracy * 2.0;
    let error = gradients(&scaled.exp(), &[&x]).unwrap_err();
    assert_line(&error, line);
    let text = error.to_string();
    assert!(text.contains("'accuracy' has no derivative: it counts"), "{text}");
    let (multiplied, exponent) = (format!("errors.rs:{}", line + 2), format!("errors.rs:{}", line + 3));
    let path = text.lines().find(|l| l.contains("the loss depends on it through")).expect("a path");
    let first = path.find("exp (").expect("the exponential");
    assert!(path.find("mul (").expect("the product") > first, "{path}");
    assert!(path.contains(&multiplied) && path.contains(&exponent), "{path}");
    assert!(text.contains("detach"), "{text}");
}

#[test]
fn detach_and_other_targets_get_around_a_missing_derivative() {
    let g = Graph::new();
    let (x, y) = (input(&g, "x", &[2, 3]), input(&g, "y", &[2, 3]));
    assert!(gradients(&(hits(&x.detach()) + x.sum_all()), &[&x]).is_ok());
    assert!(gradients(&(hits(&x) + y.sum_all()), &[&y]).is_ok());
    assert!(gradients(&(hits(&x) + y.sum_all()), &[&x]).is_err());
}

#[test]
fn a_missing_derivative_within_functions_and_loops_tells_the_way_there() {
    let g = Graph::new();
    let f = g.function("score");
    let x = input(&f, "x", &[2, 3]);
    let line = line!() + 1;
    let found = x.accuracy(&f.constant(Literal::from_i32([2], &[0, 1])));
    f.result("x", &(&x * found.cast(DType::F64)));
    let score = g.define(f).unwrap();
    let x = input(&g, "x", &[2, 3]);

    let called = line!() + 1;
    let y = g.call(score, &[&x]);
    let error = gradients(&weighted(&y[0], 1), &[&x]).unwrap_err();
    assert_line(&error, line);
    let way = format!("it is reached through 'call' at {}:{called}", file!());
    assert!(error.to_string().contains(&way), "{error}\n{way}");

    let scan = Scan { body: score, carries: 1, constants: 0, trip_count: 3, reverse: false };
    let y = g.scan(scan, &[&x], &[], &[]);
    let error = gradients(&weighted(&y[0], 1), &[&x]).unwrap_err();
    assert_line(&error, line);
    assert!(error.to_string().contains("it is reached through 'scan'"), "{error}");
}

#[test]
fn a_loss_must_be_a_float_scalar() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let line = line!() + 1;
    let error = gradients(&x.exp(), &[&x]).unwrap_err();
    assert_line(&error, line);
    assert!(error.to_string().contains("the loss is f64[3]; it must be a float scalar"), "{error}");
    let error = gradients(&x.cast(DType::I32).sum_all(), &[&x]).unwrap_err();
    assert!(error.to_string().contains("it must be a float scalar"), "{error}");
}

#[test]
fn a_cotangent_must_have_the_type_of_its_value() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let outputs = [(x.exp(), g.scalar(DType::F64, 1.0))];
    let line = line!() + 1;
    let error = vjp(&Request { outputs: &outputs, targets: &[&x], stop: &[] }).unwrap_err();
    assert_line(&error, line);
    assert!(error.to_string().contains("the cotangent of a value of type f64[3] is f64[]"), "{error}");
}

#[test]
fn problems_of_the_graph_are_reported_instead_of_gradients() {
    let g = Graph::new();
    let (x, y) = (input(&g, "x", &[3]), input(&g, "y", &[4]));
    let line = line!() + 1;
    let sum = &x + &y;
    let error = gradients(&sum.sum_all(), &[&x]).unwrap_err();
    assert_line(&error, line);
    assert!(error.to_string().contains("do not broadcast"), "{error}");
}
