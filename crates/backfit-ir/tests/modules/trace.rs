//! Where numbers that are not finite come from.

use backfit_ir::interp::{Array, NonFinite, Options, Worst, trace};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, FuncId, Graph, Literal, Tensor, Type};

/// What a trace of `build` finds on these numbers.
fn found(x: &[f32], build: impl Fn(&Graph, &Tensor) -> Tensor) -> Vec<NonFinite> {
    let g = Graph::new();
    let input = g.input("x", DType::F32, [x.len()]);
    g.result("y", &build(&g, &input));
    let module = g.finish().unwrap();
    let x = Array::from_literal(&Literal::from_f32([x.len()], x));
    trace(&module, FuncId(module.functions.len() as u32 - 1), &[x], Options::default()).unwrap()
}

/// Operator and worst number of each place.
fn places(found: &[NonFinite]) -> Vec<(Option<&str>, Worst)> {
    found.iter().map(|f| (f.operator.as_deref(), f.result.worst)).collect()
}

#[test]
fn infinities_and_the_nan_that_comes_of_them_are_two_places() {
    let found = found(&[1.0, 3e38], |_, x| {
        let twice = x + x;
        &twice - &twice
    });
    assert_eq!(places(&found), [(Some("add"), Worst::Infinite), (Some("sub"), Worst::Nan)]);
    assert_eq!((found[0].operands[0].worst, found[0].operands[0].largest as f32), (Worst::Finite, 3e38));
    assert_eq!((found[1].operands[0].worst, found[1].operands[0].largest), (Worst::Infinite, 2.0));
}

#[test]
fn parameters_come_first_and_what_they_spread_is_not_told() {
    let found = found(&[f32::NAN, f32::INFINITY], |_, x| (x * 2.0).exp());
    assert_eq!(places(&found), [(None, Worst::Nan)]);
    assert!(found[0].problem().to_string().starts_with("'x: f32[2]' has NaN as it comes in\n  at "));
}

#[test]
fn infinite_constants_of_masks_are_no_places_but_a_row_that_is_masked_whole_is() {
    let masked = |visible: f64| {
        found(&[1.0, 2.0], move |_, x| {
            let mask = x.gt(&x.like(visible));
            mask.select(x, &x.like(f64::NEG_INFINITY)).softmax(0)
        })
    };
    assert!(masked(1.5).is_empty());
    let whole = masked(9.0);
    assert_eq!(places(&whole), [(Some("sub in softmax"), Worst::Nan)]);
}

#[test]
fn operators_within_composites_have_the_line_of_the_call() {
    let line = line!() + 3;
    let found = found(&[1.0, 3e38], |_, x| {
        let small = (x * 1e-30).square();
        small + x.square()
    });
    assert_eq!(places(&found), [(Some("mul in square"), Worst::Infinite)]);
    assert_eq!((&*found[0].loc.file, found[0].loc.line), (file!(), line));
}

#[test]
fn operators_within_loops_are_told_once() {
    let found = found(&[2.0], |g, x| {
        let body = g.function("body");
        let c = body.parameter("c", Type::new(DType::F32, [1]), backfit_ir::Role::Input, None);
        body.result("next", &(&c * &c));
        let body = g.define(body).unwrap();
        let scan = Scan { body, carries: 1, constants: 0, trip_count: 9, reverse: false };
        g.scan(scan, &[x], &[], &[]).remove(0)
    });
    // 2^(2^7) is the first power beyond f32.
    assert_eq!(places(&found), [(Some("mul"), Worst::Infinite)]);
    assert_eq!(found[0].operands[0].largest, 2f64.powi(64));
}
