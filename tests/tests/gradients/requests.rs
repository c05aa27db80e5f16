//! What a request asks for: targets, outputs, stops.

use super::{assert_near, count, evaluate, input, module, weighted, weights};
use backfit_grad::{Request, gradients, vjp};
use backfit_ir::interp::Options;
use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::ops::definition::values;
use backfit_ir::{DType, Graph, Literal, Module, Tensor};
use backfit_suites::compare::interpret;

/// A network of two layers: its input, weights, hidden layer and loss.
fn network(g: &Graph) -> ([Tensor; 3], Tensor, Tensor) {
    let inputs = [("x", [4, 3]), ("w1", [3, 5]), ("w2", [5, 2])].map(|(name, dims)| input(g, name, &dims));
    let hidden = inputs[0].matmul(&inputs[1]).tanh();
    let loss = weighted(&hidden.matmul(&inputs[2]), 1);
    (inputs, hidden, loss)
}

fn found(g: &Graph, loss: &Tensor, targets: &[&Tensor]) -> Module {
    module(g, &gradients(loss, targets).unwrap().iter().collect::<Vec<_>>())
}

#[test]
fn no_node_computes_a_gradient_that_nobody_asked_for() {
    // The two products of the forward pass; one for a gradient of weights, and those on the way to it.
    for (targets, products) in [(vec![2], 3), (vec![1], 4), (vec![1, 2], 5), (vec![0], 4), (vec![0, 1, 2], 6)] {
        let g = Graph::new();
        let (inputs, _, loss) = network(&g);
        let chosen: Vec<&Tensor> = targets.iter().map(|&i| &inputs[i]).collect();
        assert_eq!(count(&found(&g, &loss, &chosen), "dot_general"), products, "{targets:?}");
    }
}

#[test]
fn all_that_is_appended_is_used() {
    let g = Graph::new();
    let (inputs, _, loss) = network(&g);
    let before = g.inspect(|f| f.nodes.len());
    let module = found(&g, &loss, &[&inputs[1]]);
    let main = module.functions.last().unwrap();
    let unused = main.nodes[before..].iter().filter(|n| {
        let used = |v| main.nodes.iter().any(|m| m.operands.contains(v)) || main.results.iter().any(|r| r.value == *v);
        !n.results.iter().any(used)
    });
    assert!(main.nodes.len() > before);
    assert_eq!(unused.count(), 0);
}

#[test]
fn an_intermediate_value_is_a_target_like_any_other() {
    let g = Graph::new();
    let (inputs, hidden, loss) = network(&g);
    let found = gradients(&loss, &[&hidden, &inputs[1], &loss]).unwrap();
    let cotangent = weights(&hidden.matmul(&inputs[2]), 1);
    let by_hand = cotangent.matmul(&inputs[2].transpose(&[1, 0]));
    let slope = &by_hand * (1.0 - &hidden * &hidden);
    let by_hand = [by_hand, inputs[0].transpose(&[1, 0]).matmul(&slope), loss.like(1.0)];
    assert_near(&evaluate(&g, &found.iter().collect::<Vec<_>>()), &evaluate(&g, &by_hand.each_ref()));
}

#[test]
fn nothing_flows_through_a_stop() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let z = &x * &x;
    let y = &z * &x;
    let outputs = [(y.clone(), y.like(1.0))];
    let whole = vjp(&Request { outputs: &outputs, targets: &[&x, &z], stop: &[] }).unwrap();
    let stopped = vjp(&Request { outputs: &outputs, targets: &[&x, &z], stop: &[&z] }).unwrap();
    let values = |list: &[Option<Tensor>]| evaluate(&g, &list.iter().flatten().collect::<Vec<_>>());
    let by_hand = [&x * &x * 3.0, x.clone(), z.clone(), x.clone()];
    let by_hand = evaluate(&g, &by_hand.each_ref());
    assert_near(&values(&whole), &by_hand[..2]);
    assert_near(&values(&stopped), &by_hand[2..]);
}

#[test]
fn nothing_flows_through_detach() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let loss = (x.square().detach() * &x).sum_all();
    let found = gradients(&loss, &[&x]).unwrap();
    assert_near(&evaluate(&g, &[&found[0]]), &evaluate(&g, &[&x.square()]));
    let none = vjp(&Request { outputs: &[(x.detach(), x.like(1.0))], targets: &[&x], stop: &[] }).unwrap();
    assert!(none[0].is_none());
}

#[test]
fn what_only_feeds_a_detached_value_costs_nothing() {
    for constant in [Tensor::detach, Tensor::floor, Tensor::sign] {
        let g = Graph::new();
        let (inputs, hidden, _) = network(&g);
        let loss = weighted(&constant(&hidden).matmul(&inputs[2]), 1);
        let zero = gradients(&loss, &[&inputs[1]]).unwrap();
        assert_near(&evaluate(&g, &[&zero[0]]), &[vec![0.0; 15]]);
        let all = found(&g, &loss, &inputs.each_ref());
        assert_eq!(count(&all, "dot_general"), 4, "three forward products, and one for w2");
    }
}

#[test]
fn cotangents_may_enter_at_several_values_and_one_may_feed_another() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let y = x.sin();
    let z = &y * &x;
    let cotangents = [weights(&y, 1), weights(&z, 2), weights(&x, 3)];
    let outputs: Vec<_> = [y.clone(), z, x.clone()].into_iter().zip(cotangents.clone()).collect();
    let found = vjp(&Request { outputs: &outputs, targets: &[&x], stop: &[] }).unwrap();
    let [a, b, c] = &cotangents;
    let by_hand = (a + b * &x) * x.cos() + b * &y + c;
    assert_near(&evaluate(&g, &[found[0].as_ref().unwrap()]), &evaluate(&g, &[&by_hand]));
}

#[test]
fn what_the_loss_does_not_depend_on_has_a_zero_gradient_or_none() {
    let g = Graph::new();
    let (x, other) = (input(&g, "x", &[3]), input(&g, "other", &[2, 2]));
    let loss = x.sum_all();
    let zero = gradients(&loss, &[&other]).unwrap();
    assert_eq!(zero[0].ty(), other.ty());
    assert_near(&evaluate(&g, &[&zero[0]]), &[vec![0.0; 4]]);
    let found = vjp(&Request { outputs: &[(loss.clone(), loss.like(1.0))], targets: &[&other, &x], stop: &[] });
    let found = found.unwrap();
    assert!(found[0].is_none() && found[1].is_some());
}

#[test]
fn a_target_may_be_asked_for_twice_and_a_value_used_many_times() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let loss = (&x * &x + x.exp() * &x - &x).sum_all();
    let found = gradients(&loss, &[&x, &x]).unwrap();
    let by_hand = &x * 2.0 + x.exp() * (&x + 1.0) - 1.0;
    let by_hand = evaluate(&g, &[&by_hand]).remove(0);
    assert_near(&evaluate(&g, &found.iter().collect::<Vec<_>>()), &[by_hand.clone(), by_hand]);
}

#[test]
fn gradients_do_not_pass_through_integers_and_truth_values() {
    let g = Graph::new();
    let x = input(&g, "x", &[3]);
    let mask = x.gt(&x.like(0.0)).cast(DType::F64);
    let loss = (&x * &mask + x.cast(DType::I32).cast(DType::F64)).sum_all();
    let found = gradients(&loss, &[&x]).unwrap();
    assert_near(&evaluate(&g, &[&found[0]]), &evaluate(&g, &[&mask]));
}

#[test]
fn the_same_graph_always_gets_the_same_gradients_in_the_same_order() {
    let build = || {
        let g = Graph::new();
        let (inputs, hidden, loss) = network(&g);
        let loss = loss + weighted(&hidden.softmax(-1), 2) + weighted(&(&inputs[0] * &inputs[0]), 3);
        found(&g, &loss, &inputs.each_ref())
    };
    assert_eq!(build(), build());
}

#[test]
fn padded_rows_of_a_batch_norm_reach_no_gradient_whatever_they_hold() {
    let real = values::uniform(9, -1.0, 2.0, 1);
    // The gradients of x, weight and bias with rows of NaN between the real ones, or without.
    let run = |padded: bool| {
        let rows = if padded { 5 } else { 3 };
        let g = Graph::new();
        let x = g.input("x", DType::F64, [rows, 3]);
        let [weight, bias, running_mean, running_var] =
            ["weight", "bias", "running_mean", "running_var"].map(|name| g.input(name, DType::F64, [3]));
        let parameters = BatchNormParameters {
            weight: &weight,
            bias: &bias,
            running_mean: &running_mean,
            running_var: &running_var,
        };
        let mask = Literal::from_f32([rows], &[1.0, 0.0, 1.0, 1.0, 0.0][..rows]);
        let mask = padded.then(|| g.constant(mask));
        let out = x.batch_norm(parameters, mask.as_ref(), 0.1, 1e-5);
        let squares = (&out.y * &out.y * &out.y).sum(&[1]);
        let squares = match &mask {
            Some(mask) => squares * mask.cast(DType::F64),
            None => squares,
        };
        let loss = squares.sum_all() + out.running_var.sum_all();
        let found = gradients(&loss, &[&x, &weight, &bias]).unwrap();
        let module = module(&g, &found.iter().collect::<Vec<_>>());
        let nan = [f64::NAN; 3];
        let values = match padded {
            true => [&real[..3], &nan, &real[3..], &nan].concat(),
            false => real.clone(),
        };
        let channels = [0.5, 1.5, -1.0].map(|v| Literal::from_f64(weight.ty().clone(), &[v, v + 1.0, v - 0.5]));
        let [weight, bias, mean] = channels;
        let arguments = [Literal::from_f64(x.ty().clone(), &values), weight.clone(), bias, mean, weight];
        interpret(&module, &arguments, Options::default()).unwrap().iter().map(Literal::to_f64).collect::<Vec<_>>()
    };
    let (mut padded, expected) = (run(true), run(false));
    let rows: Vec<f64> = padded[0].drain(..).collect();
    assert_eq!([&rows[3..6], &rows[12..]].concat(), [0.0; 6]);
    padded[0] = [&rows[..3], &rows[6..12]].concat();
    assert_near(&padded, &expected);
}
