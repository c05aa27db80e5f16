//! Gradients through functions of the module.

use super::{assert_near, count, evaluate, input, module, weighted};
use backfit_grad::{Request, grad_check, gradients, vjp};
use backfit_ir::{DType, FuncId, Graph, Tensor};

/// tanh(x · w) and its row sums.
fn formula(x: &Tensor, w: &Tensor) -> [Tensor; 2] {
    let y = x.matmul(w).tanh();
    let sums = y.sum(&[1]);
    [y, sums]
}

fn dense(g: &Graph) -> FuncId {
    let f = g.function("dense");
    let results = formula(&input(&f, "x", &[2, 3]), &input(&f, "w", &[3, 3]));
    f.result("y", &results[0]);
    f.result("sums", &results[1]);
    g.define(f).expect("a function")
}

/// A graph with inputs x and w and a scalar of two layers of the same weights, by calls or inline.
fn twice(calls: bool) -> (Graph, [Tensor; 2], Tensor) {
    let g = Graph::new();
    let (x, w) = (input(&g, "x", &[2, 3]), input(&g, "w", &[3, 3]));
    let layer = |x: &Tensor, w: &Tensor, f: Option<FuncId>| match f {
        Some(f) => g.call(f, &[x, w]),
        None => formula(x, w).to_vec(),
    };
    let f = calls.then(|| dense(&g));
    let first = layer(&x, &w, f);
    let second = layer(&first[0], &w, f);
    let loss = weighted(&second[0], 1) + weighted(&first[1], 2);
    (g, [x, w], loss)
}

#[test]
fn a_function_called_twice_has_the_gradients_of_its_inlined_body() {
    let [called, inlined] = [true, false].map(|calls| {
        let (g, [x, w], loss) = twice(calls);
        let found = gradients(&loss, &[&x, &w]).unwrap();
        evaluate(&g, &[&loss, &found[0], &found[1]])
    });
    assert_near(&called, &inlined);
}

#[test]
fn gradients_and_second_derivatives_through_calls_equal_central_differences() {
    let (_, [x, w], loss) = twice(true);
    assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
    let first = gradients(&loss, &[&x, &w]).unwrap();
    let report = grad_check(&(weighted(&first[0], 3) + weighted(&first[1], 4)), &[]).unwrap();
    assert!(report.worst() <= 1e-7, "{report}");
}

#[test]
fn calls_with_the_same_wants_share_one_derivative() {
    let (g, [x, w], loss) = twice(true);
    let found = gradients(&loss, &[&x, &w]).unwrap();
    let module = module(&g, &found.iter().collect::<Vec<_>>());
    let named = |name: &str| module.functions.iter().filter(|f| f.name.starts_with(name)).count();
    // The outer call has a cotangent for its first result only, the inner one for both.
    assert_eq!(named("dense.backward"), 2);
}

#[test]
fn an_argument_that_is_not_asked_for_costs_no_product() {
    let [one, both] = [1, 2].map(|wanted| {
        let g = Graph::new();
        let (x, w) = (input(&g, "x", &[2, 3]), input(&g, "w", &[3, 3]));
        let y = g.call(dense(&g), &[&x, &w]);
        let targets = [&w, &x];
        let found = gradients(&weighted(&y[0], 1), &targets[..wanted]).unwrap();
        count(&module(&g, &found.iter().collect::<Vec<_>>()), "dot_general")
    });
    assert_eq!((one, both), (2, 3));
}

#[test]
fn functions_that_call_functions_are_differentiated() {
    let g = Graph::new();
    let inner = dense(&g);
    let f = g.function("twice");
    let (x, w) = (input(&f, "x", &[2, 3]), input(&f, "w", &[3, 3]));
    let y = f.call(inner, &[&f.call(inner, &[&x, &w])[0], &w]);
    f.result("y", &y[1]);
    let outer = g.define(f).unwrap();
    let (x, w) = (input(&g, "x", &[2, 3]), input(&g, "w", &[3, 3]));
    let loss = weighted(&g.call(outer, &[&x, &w])[0], 1);
    assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
    let first = gradients(&loss, &[&w]).unwrap();
    assert!(grad_check(&weighted(&first[0], 2), &[]).unwrap().worst() <= 1e-7);
}

#[test]
fn a_function_may_return_its_parameter_twice_and_ignore_others() {
    let g = Graph::new();
    let f = g.function("copies");
    let x = input(&f, "x", &[3]);
    input(&f, "unused", &[2]);
    f.result("a", &x);
    f.result("b", &x);
    f.result("c", &(&x * 2.0));
    let copies = g.define(f).unwrap();
    let (x, unused) = (input(&g, "x", &[3]), input(&g, "unused", &[2]));
    let y = g.call(copies, &[&x, &unused]);
    let one = y[0].like(1.0);
    let outputs: Vec<_> = y.iter().map(|y| (y.clone(), one.clone())).collect();
    let found = vjp(&Request { outputs: &outputs, targets: &[&x, &unused], stop: &[] }).unwrap();
    assert!(found[1].is_none());
    assert_near(&evaluate(&g, &[found[0].as_ref().unwrap()]), &[vec![4.0; 3]]);
}

#[test]
fn integer_arguments_and_results_pass_through_calls() {
    let g = Graph::new();
    let f = g.function("pick");
    let (x, at) = (input(&f, "x", &[4]), f.input("at", DType::I32, [2]));
    f.result("picked", &x.gather(&at, 0).square());
    f.result("next", &(&at + 1.0));
    let pick = g.define(f).unwrap();
    let (x, at) = (input(&g, "x", &[4]), g.input("at", DType::I32, [2]));
    let first = g.call(pick, &[&x, &at]);
    let second = g.call(pick, &[&x, &first[1]]);
    let loss = weighted(&first[0], 1) + weighted(&second[0], 2);
    assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
}
