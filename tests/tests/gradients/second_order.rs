//! Gradients of gradients against central differences of gradients.

use super::{input, weighted};
use backfit_grad::{grad_check, gradients};
use backfit_ir::ops::batch_norm::BatchNormParameters;
use backfit_ir::ops::conv2d::Conv2d;
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{DType, Graph, Literal, Tensor};

type Build = fn(&[Tensor]) -> Tensor;

/// Checks ∂/∂x Σ c · ∂/∂x Σ w · y for inputs of these shapes.
fn failure(name: &str, shapes: &[&[usize]], build: Build) -> Option<String> {
    let g = Graph::new();
    let x: Vec<Tensor> = shapes.iter().enumerate().map(|(i, dims)| input(&g, &format!("x{i}"), dims)).collect();
    let loss = weighted(&build(&x), 100);
    let first = match gradients(&loss, &x.iter().collect::<Vec<_>>()) {
        Ok(first) => first,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let terms = first.iter().enumerate().map(|(i, gradient)| weighted(gradient, i as u64 + 1));
    let scalar = terms.reduce(|a, b| a + b).expect("an input");
    match grad_check(&scalar, &[]) {
        Ok(report) if report.worst() <= 1e-7 => None,
        Ok(report) => Some(format!("{name}: {report}")),
        Err(error) => Some(format!("{name}: {error}")),
    }
}

fn check(cases: &[(&str, &[&[usize]], Build)]) {
    let failures: Vec<String> =
        cases.iter().filter_map(|(name, shapes, build)| failure(name, shapes, *build)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_second_derivatives_of_activations_are_right() {
    check(&[
        ("gelu", &[&[3, 4]], |x| x[0].gelu()),
        ("gelu_tanh", &[&[3, 4]], |x| x[0].gelu_tanh()),
        ("silu", &[&[3, 4]], |x| x[0].silu()),
        ("sigmoid", &[&[3, 4]], |x| x[0].sigmoid()),
        ("softplus", &[&[3, 4]], |x| x[0].softplus()),
        ("softmax", &[&[3, 4]], |x| x[0].softmax(-1)),
        ("log_softmax", &[&[3, 4]], |x| x[0].log_softmax(0)),
        ("logsumexp", &[&[3, 4]], |x| x[0].logsumexp(&[1])),
        ("variance", &[&[3, 4]], |x| x[0].variance(&[0], 1)),
        ("pow of positive numbers", &[&[3], &[3]], |x| x[0].exp().pow(&x[1])),
    ]);
}

#[test]
fn the_second_derivatives_of_layers_are_right() {
    check(&[
        ("linear and tanh", &[&[2, 3], &[4, 3], &[4]], |x| x[0].linear(&x[1], Some(&x[2])).tanh()),
        ("layer_norm", &[&[3, 4], &[4], &[4]], |x| x[0].layer_norm(Some(&x[1]), Some(&x[2]), 1e-5)),
        ("rms_norm", &[&[3, 4], &[4]], |x| x[0].rms_norm(Some(&x[1]), 1e-5)),
        ("group_norm", &[&[2, 4, 3], &[4]], |x| x[0].group_norm(2, Some(&x[1]), None, 1e-5)),
        ("batch_norm", &[&[4, 2], &[2], &[2]], |x| {
            let (weight, bias, zeros) = (&x[1], &x[2], &x[1].like(0.0));
            let parameters = BatchNormParameters { weight, bias, running_mean: zeros, running_var: zeros };
            x[0].batch_norm(parameters, None, 0.1, 1e-5).y
        }),
        ("conv2d and sin", &[&[1, 2, 4, 4], &[3, 2, 2, 2]], |x| {
            x[0].conv2d(&x[1], None, Conv2d { padding: [1, 0], stride: [2, 1], ..Conv2d::default() }).sin()
        }),
        ("max_pool2d of squares", &[&[1, 1, 4, 4]], |x| x[0].square().max_pool2d([2, 2], [2, 2], [0, 0])),
        ("avg_pool2d of cubes", &[&[1, 1, 4, 4]], |x| (x[0].square() * &x[0]).avg_pool2d([3, 3], [1, 1], [1, 1])),
        ("rotary and exp", &[&[1, 1, 3, 4]], |x| x[0].rotary_embedding(Rotary::default()).exp()),
        ("attention", &[&[1, 2, 3, 2], &[1, 1, 3, 2], &[1, 1, 3, 2]], |x| {
            x[0].scaled_dot_product_attention(&x[1], &x[2], Attention { causal: true, ..Attention::default() })
        }),
    ]);
}

#[test]
fn the_second_derivatives_of_losses_are_right() {
    check(&[
        ("cross_entropy", &[&[3, 4]], |x| {
            x[0].cross_entropy(&x[0].graph().constant(Literal::from_i32([3], &[1, 0, 3])))
        }),
        ("cross_entropy of probabilities", &[&[3, 4], &[3, 4]], |x| x[0].cross_entropy(&x[1].softmax(-1))),
        ("binary cross entropy", &[&[5], &[5]], |x| x[0].binary_cross_entropy_with_logits(&x[1].sigmoid())),
        ("mse", &[&[5], &[5]], |x| x[0].mse(&x[1])),
        ("norm of a product", &[&[2, 3], &[3, 2]], |x| x[0].matmul(&x[1]).square().sum_all().sqrt()),
    ]);
}

#[test]
fn third_derivatives_are_right() {
    let g = Graph::new();
    let x = g.input("x", DType::F64, [3]);
    let mut y = (&x * &x.sin()).softmax(0);
    for seed in 0..2 {
        y = gradients(&weighted(&y, seed), &[&x]).unwrap().remove(0);
    }
    let report = grad_check(&weighted(&y, 7), &[]).unwrap();
    assert!(report.worst() <= 1e-7, "{report}");
}
