//! Derivatives against central differences, first and second.

use crate::harness::{execute, f, gives, gradient, inputs, samples};
use backfit_ir::interp::Data;
use backfit_ir::op::{Extreme, Monoid, ScatterMode};
use backfit_ir::ops::convolution::Convolution;
use backfit_ir::ops::definition::Sample;
use backfit_ir::ops::definition::values::uniform;
use backfit_ir::ops::reduce_window::Window;
use backfit_ir::{DType, Graph, Literal, Tensor};

/// Σ weights · tensors, over all elements.
fn contract(tensors: &[Tensor], weights: &[Tensor]) -> Tensor {
    let terms = tensors.iter().zip(weights).map(|(t, w)| (t * w).sum_all());
    terms.reduce(|a, b| &a + &b).expect("there is at least one")
}

fn weights(tensors: &[Tensor], seed: u64) -> Vec<Tensor> {
    let weight = |(i, t): (usize, &Tensor)| {
        let values = uniform(t.shape().elements(), -1.0, 1.0, seed + i as u64);
        t.graph().constant(Literal::from_f64(t.ty().clone(), &values))
    };
    tensors.iter().enumerate().map(weight).collect()
}

fn floats(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().filter(|t| t.dtype().is_float()).cloned().collect()
}

/// The scalar whose gradient is checked: results weighted, or, for the second order, their gradient weighted.
fn objective(sample: &Sample, graph: &Graph, x: &[Tensor], second: bool) -> Tensor {
    let results = floats(&(sample.build)(graph, &x[..x.len() - 1]));
    // The cotangents depend on an input too, so that the second order sees how rules depend on them.
    let cotangents: Vec<Tensor> =
        weights(&results, 7).iter().map(|w| w * &(&x[x.len() - 1].reshape([]) + 1.0)).collect();
    if !second {
        return contract(&results, &cotangents);
    }
    let pairs: Vec<_> = results.into_iter().zip(cotangents).collect();
    let first = gradient(graph, &pairs, &floats(&x[..x.len() - 1]));
    contract(&first, &weights(&first, 11))
}

fn value(sample: &Sample, literals: &[Literal], second: bool) -> f64 {
    let graph = Graph::new();
    let y = objective(sample, &graph, &inputs(&graph, literals), second);
    execute(&graph, &[y], literals, true)[0].as_floats()[0]
}

fn nudged(literals: &[Literal], which: usize, element: usize, by: f64) -> Vec<Literal> {
    let mut changed = literals.to_vec();
    let mut values = changed[which].to_f64();
    values[element] += by;
    changed[which] = Literal::from_f64(changed[which].ty().clone(), &values);
    changed
}

fn check(name: &str, sample: &Sample, second: bool) {
    let mut literals = sample.inputs.clone();
    literals.push(Literal::scalar(DType::F64, 0.5));
    let graph = Graph::new();
    let x = inputs(&graph, &literals);
    let y = objective(sample, &graph, &x, second);
    let sources = floats(&x);
    let found = gradient(&graph, &[(y.clone(), y.like(1.0))], &sources);
    let found = execute(&graph, &found, &literals, true);
    let places = (0..literals.len()).filter(|&i| literals[i].ty().dtype.is_float());
    for (which, gradient) in places.zip(&found) {
        for (element, &slope) in gradient.as_floats().iter().enumerate() {
            let step = 1e-5;
            let at = |by: f64| value(sample, &nudged(&literals, which, element, by), second);
            let expected = (at(step) - at(-step)) / (2.0 * step);
            let close = (slope - expected).abs() <= 1e-6 * (1.0 + expected.abs());
            let order = if second { "second" } else { "first" };
            assert!(
                close,
                "{name}: {}, {order} order, input {which}[{element}]: {slope}, not {expected}",
                sample.label
            );
        }
    }
}

fn smooth() -> Vec<(&'static str, Sample)> {
    samples().into_iter().filter(|(_, s)| s.smooth && s.inputs.iter().any(|l| l.ty().dtype.is_float())).collect()
}

#[test]
fn gradients_are_central_differences() {
    smooth().iter().for_each(|(name, sample)| check(name, sample, false));
}

#[test]
fn gradients_of_gradients_are_central_differences() {
    smooth().iter().for_each(|(name, sample)| check(name, sample, true));
}

/// The gradient of Σ w·y for an f32 function of one tensor.
fn slope(x: &Literal, w: &[f64], build: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
    let graph = Graph::new();
    let x_in = inputs(&graph, std::slice::from_ref(x));
    let y = build(&x_in[0]);
    let cotangent = graph.constant(Literal::from_f64(y.ty().clone(), w));
    let found = gradient(&graph, &[(y, cotangent)], &x_in);
    execute(&graph, &found, std::slice::from_ref(x), false)[0].as_floats().to_vec()
}

#[test]
fn max_pooling_gives_the_cotangent_to_the_first_of_equal_elements() {
    let pool = |x: &Tensor| x.reduce_window(Monoid::Max, Window::dense(&[2]));
    assert_eq!(slope(&f(&[4], &[1.0, 1.0, 0.0, 0.0]), &[1.0, 2.0, 4.0], pool), [1.0, 2.0, 4.0, 0.0]);
}

#[test]
fn running_extremes_give_cotangents_to_the_first_of_equal_elements() {
    let x = f(&[5], &[1.0, 3.0, 3.0, 2.0, 5.0]);
    let run = |x: &Tensor| x.cumulative(Monoid::Max, 0, false, false);
    assert_eq!(slope(&x, &[1.0, 2.0, 4.0, 8.0, 16.0], run), [1.0, 14.0, 0.0, 0.0, 16.0]);
}

#[test]
fn the_gradient_of_a_running_product_is_right_at_zeros() {
    let x = f(&[4], &[2.0, 0.0, 3.0, 0.0]);
    let run = |x: &Tensor| x.cumulative(Monoid::Product, 0, false, false);
    // y = (a, ab, abc, abcd): with b = d = 0, d/da = 1, d/db = a + ac, the others vanish.
    assert_eq!(slope(&x, &[1.0; 4], run), [1.0, 8.0, 0.0, 0.0]);
}

#[test]
fn a_gradient_through_select_and_scatter_reaches_only_what_was_chosen() {
    let x = Literal::from_f32([4], &[f32::NEG_INFINITY, f32::NAN, 2.0, 2.0]);
    let graph = Graph::new();
    let sources = [x, f(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0])];
    let t = inputs(&graph, &sources);
    let window = Window { pad_low: vec![1], pad_high: vec![1], ..Window::dense(&[2]) };
    let y = t[0].select_and_scatter(Extreme::Max, window, &t[1]);
    let cotangent = graph.constant(f(&[4], &[1.0, 2.0, 4.0, 8.0]));
    let found = gradient(&graph, &[(y.clone(), cotangent)], &t);
    let found = execute(&graph, &[found, vec![y]].concat(), &sources, false);
    assert_eq!(found[0].data, Data::Float(vec![0.0; 4]));
    assert_eq!(found[1].data, Data::Float(vec![1.0, 2.0, 2.0, 4.0, 8.0]));
    assert_eq!(found[2].data, Data::Float(vec![1.0, 5.0, 4.0, 5.0]));
}

#[test]
fn an_overwritten_update_gets_no_cotangent() {
    let updates = f(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let set = |u: &Tensor| {
        let indices = u.graph().constant(Literal::from_i32([4], &[0, 1, 0, 9]));
        u.graph().constant(f(&[2], &[0.0, 0.0])).scatter(ScatterMode::Set, 0, &indices, u)
    };
    assert_eq!(slope(&updates, &[5.0, 7.0], set), [0.0, 7.0, 5.0, 0.0]);
}

#[test]
fn sorting_permutes_the_cotangents_of_payloads_too() {
    let payload = f(&[3], &[1.0, 2.0, 3.0]);
    let sorted = |p: &Tensor| p.graph().constant(f(&[3], &[5.0, 9.0, 7.0])).sort(0, true, &[p]).swap_remove(1);
    assert_eq!(slope(&payload, &[1.0, 2.0, 3.0], sorted), [3.0, 1.0, 2.0]);
}

#[test]
fn a_product_over_windows_says_that_it_has_no_derivative() {
    let graph = Graph::new();
    let x = graph.input("x", DType::F32, [4]);
    let y = x.reduce_window(Monoid::Product, Window::dense(&[2]));
    let swept = std::panic::catch_unwind(|| gradient(&graph, &[(y.clone(), y.like(1.0))], std::slice::from_ref(&x)));
    assert!(swept.is_err());
    let problems = graph.problems();
    assert!(problems[0].what.contains("the product over windows has no derivative"), "{problems:?}");
    assert!(problems[0].help.is_some());
}

#[test]
fn operands_of_a_convolution_narrower_than_its_result_get_gradients_of_their_own_dtype() {
    let wide = |x: &Tensor| {
        let half = x.cast(DType::F16);
        half.convolution(&half, Convolution { result: DType::F32, ..Convolution::dense(1, DType::F16) })
    };
    assert_eq!(slope(&f(&[1, 1, 2], &[1.0, 2.0]), &[3.0], wide), [6.0, 12.0]);
}

#[test]
fn a_barrier_passes_on_only_the_cotangents_that_there_are() {
    gives(
        &[f(&[2], &[1.0, 2.0])],
        |g, x| {
            let out = g.barrier(&[&x[0], &(&x[0] * 2.0)]);
            gradient(g, &[(out[1].clone(), out[1].like(1.0))], x).swap_remove(0)
        },
        &[2],
        &[2.0, 2.0],
    );
}
