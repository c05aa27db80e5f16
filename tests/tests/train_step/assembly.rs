//! What a step is made of, and what it refuses.

use super::{input, weight};
use backfit_grad::{Adam, FINITE, LOSS, Sgd, TrainModule, TrainStep};
use backfit_ir::rewrite::inline_calls;
use backfit_ir::{DType, Error, FuncId, Graph, Init, Role, Tensor, Type};

/// Two layers, of which the first, or none, is frozen; its loss is Σ y².
fn network(frozen: bool) -> TrainModule {
    let g = Graph::new();
    let x = input(&g, "x", &[4, 3]);
    let role = Role::Weight { trainable: !frozen };
    let w1 = g.parameter("w1", Type::new(DType::F64, [3, 5]), role, Some(Init::ONES));
    let w2 = g.weight("w2", Type::new(DType::F64, [5, 2]), Init::ONES);
    let loss = x.matmul(&w1).tanh().matmul(&w2).square().sum_all();
    TrainStep::new(&loss).optimizer(Adam::new(1e-3)).build().unwrap()
}

fn count(train: &TrainModule, function: FuncId, operator: &str) -> usize {
    inline_calls(&train.module, function, |_| true).nodes.iter().filter(|n| n.op.name() == operator).count()
}

fn names(train: &TrainModule) -> Vec<&str> {
    train.residents.iter().map(|r| r.name.as_str()).collect()
}

#[test]
fn frozen_weights_cost_neither_gradient_nor_state() {
    let (whole, frozen) = (network(false), network(true));
    let state = |name: &str| ["m", "v"].map(|slot| format!("optimizer.{slot}.{name}"));
    let expected = [vec!["w1".to_owned(), "w2".to_owned()], state("w1").to_vec(), state("w2").to_vec()].concat();
    assert_eq!(names(&whole), expected);
    assert_eq!(names(&frozen), [vec!["w1".to_owned(), "w2".to_owned()], state("w2").to_vec()].concat());
    // The forward pass has two products; the gradients of w2, and then of w1, one and two more.
    assert_eq!(count(&whole, whole.step, "dot_general"), 5);
    assert_eq!(count(&frozen, frozen.step, "dot_general"), 3);
    let step = frozen.module.function(frozen.step);
    let updated: Vec<&str> = step.results.iter().filter(|r| r.alias.is_some()).map(|r| r.name.as_str()).collect();
    assert_eq!(updated, ["w2", "optimizer.m.w2", "optimizer.v.w2"]);
}

#[test]
fn evaluation_has_neither_backward_pass_nor_updates() {
    let train = network(false);
    assert_eq!(count(&train, train.eval, "dot_general"), 2);
    let eval = train.module.function(train.eval);
    assert_eq!(eval.results.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), [LOSS]);
    assert!(train.predict.is_none());
}

#[test]
fn results_are_the_loss_the_reports_and_whether_all_was_finite() {
    let g = Graph::new();
    let w = weight(&g, "w", &[2], &[1.0, 2.0]);
    let loss = w.square().sum_all();
    let step = TrainStep::new(&loss).optimizer(Sgd::new(0.1)).report("sum", &w.sum_all()).predict(&w);
    let returned = |train: &TrainModule, id: FuncId| {
        let results = &train.module.function(id).results;
        results.iter().filter(|r| r.alias.is_none()).map(|r| r.name.clone()).collect::<Vec<_>>()
    };
    let train = step.build().unwrap();
    assert_eq!(returned(&train, train.step), [LOSS, "sum", FINITE]);
    assert_eq!(returned(&train, train.eval), [LOSS, "sum"]);
    assert_eq!(returned(&train, train.predict.unwrap()), ["prediction"]);
    let unguarded = step.unguarded().build().unwrap();
    assert_eq!(returned(&unguarded, unguarded.step), [LOSS, "sum"]);
}

#[test]
fn two_builds_of_a_step_are_equal() {
    let [a, b] = [(), ()].map(|()| network(false));
    assert_eq!(a.module, b.module);
}

fn refused(loss: &Tensor) -> Error {
    TrainStep::new(loss).optimizer(Sgd::new(0.1)).build().map(|_| ()).unwrap_err()
}

#[test]
fn a_step_needs_an_optimizer() {
    let g = Graph::new();
    let loss = weight(&g, "w", &[1], &[1.0]).sum_all();
    let error = TrainStep::new(&loss).build().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("the training step has no optimizer"), "{error}");
    assert!(error.to_string().contains("help: add `.optimizer("), "{error}");
}

#[test]
fn a_step_needs_a_trainable_weight() {
    let g = Graph::new();
    let error = refused(&input(&g, "x", &[3]).sum_all());
    assert!(error.to_string().contains("there is no trainable weight"), "{error}");
}

#[test]
fn weights_that_the_loss_does_not_reach_are_all_named_with_their_lines() {
    let g = Graph::new();
    let used = weight(&g, "used", &[1], &[1.0]);
    g.weight("lost", Type::new(DType::F64, [2]), Init::ZEROS);
    let line = line!() - 1;
    g.weight("also lost", Type::new(DType::F64, [2]), Init::ZEROS);
    let error = refused(&used.sum_all());
    assert_eq!(error.problems().len(), 2);
    let text = error.to_string();
    assert!(
        text.contains(&format!("the loss does not depend on the weight 'lost'\n  at {}:{line}", file!())),
        "{text}"
    );
    assert!(text.contains(&format!("'also lost'\n  at {}:{}", file!(), line + 2)), "{text}");
}

#[test]
fn a_loss_that_is_no_float_scalar_is_refused_at_its_line() {
    let g = Graph::new();
    let w = weight(&g, "w", &[2], &[1.0, 2.0]);
    let error = refused(&w.exp());
    assert!(error.to_string().contains("the loss is f64[2]; it must be a float scalar"), "{error}");
}

#[test]
fn a_missing_derivative_is_refused_with_its_line() {
    let g = Graph::new();
    let w = weight(&g, "w", &[1, 2], &[1.0, 2.0]);
    let line = line!() + 1;
    let error = refused(&w.accuracy(&g.constant(backfit_ir::Literal::from_i32([1], &[0]))));
    assert!(error.to_string().contains("'accuracy' has no derivative"), "{error}");
    assert!(error.to_string().contains(&format!("assembly.rs:{line}")), "{error}");
}
