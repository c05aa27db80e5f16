//! Norms, convolutions, pooling, embedding and attention against hand-computed values.

use super::support::{all, complaint, floats, ids, near, one};
use backfit_ir::interp::Array;
use backfit_ir::ops::batch_norm::{self, BatchNormParameters};
use backfit_ir::ops::conv_transpose2d::ConvTranspose2d;
use backfit_ir::ops::conv2d::Conv2d;
use backfit_ir::ops::rotary_embedding::Rotary;
use backfit_ir::ops::scaled_dot_product_attention::Attention;
use backfit_ir::{Attributes, Graph, Literal, Tensor};
use std::panic::Location;

#[test]
fn row_norms() {
    let x = floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let s = 1.25f64.sqrt();
    near(
        &one(std::slice::from_ref(&x), |x| x[0].layer_norm(None, None, 0.0)),
        &[-1.5 / s, -0.5 / s, 0.5 / s, 1.5 / s],
        1e-15,
    );
    let w = floats(&[4], &[1.0, 2.0, 0.0, -1.0]);
    let r = 7.5f64.sqrt();
    near(&one(&[x.clone(), w.clone()], |x| x[0].rms_norm(Some(&x[1]), 0.0)), &[1.0 / r, 4.0 / r, 0.0, -4.0 / r], 1e-15);
    let grouped = |x: &[Tensor]| x[0].group_norm(2, None, Some(&x[1]), 0.0);
    near(&one(&[x, w], grouped), &[0.0, 3.0, -1.0, 0.0], 1e-15);
    let constant = floats(&[1, 2], &[7.0, 7.0]);
    near(&one(&[constant], |x| x[0].layer_norm(None, None, 1e-5)), &[0.0, 0.0], 0.0);
}

/// x `[3, 1]`, weight 2, bias 1, running mean 10, running variance 4, mask.
fn batch() -> Vec<Literal> {
    let one = |v| floats(&[1], &[v]);
    vec![
        floats(&[3, 1], &[1.0, 3.0, 99.0]),
        one(2.0),
        one(1.0),
        one(10.0),
        one(4.0),
        Literal::from_f32([3], &[1.0, 1.0, 0.0]),
    ]
}

fn normalised(x: &[Tensor]) -> Vec<Tensor> {
    let parameters = BatchNormParameters { weight: &x[1], bias: &x[2], running_mean: &x[3], running_var: &x[4] };
    let out = x[0].batch_norm(parameters, x.get(5), 0.1, 0.0);
    vec![out.y, out.running_mean, out.running_var]
}

fn floats_of(arrays: &[Array]) -> Vec<&[f64]> {
    arrays.iter().map(Array::as_floats).collect()
}

#[test]
fn batch_norm_counts_real_rows_only() {
    let out = all(&batch(), |_, x| normalised(x));
    let out = floats_of(&out);
    near(&out[0][..2], &[-1.0, 3.0], 1e-15);
    near(out[1], &[9.0 + 0.2], 1e-15);
    near(out[2], &[3.6 + 0.1 * 2.0], 1e-15);
    let mut empty = batch();
    empty[5] = Literal::from_f32([3], &[0.0; 3]);
    let out = all(&empty, |_, x| normalised(x));
    near(floats_of(&out)[1], &[10.0], 0.0);
    near(floats_of(&out)[2], &[4.0], 0.0);
}

#[test]
fn batch_norm_outside_training_uses_the_running_statistics() {
    let out = all(&batch()[..5], |g: &Graph, x| {
        let types: Vec<_> = x.iter().map(|t| t.ty().clone()).collect();
        let attributes = Attributes::new().with("momentum", 0.1).with("epsilon", 0.0);
        let function = g.instantiate(&batch_norm::DEF, &types, attributes, true, Location::caller()).unwrap();
        g.call(function, &x.iter().collect::<Vec<_>>())
    });
    near(floats_of(&out)[0], &[-8.0, -6.0, 90.0], 1e-15);
    near(floats_of(&out)[1], &[10.0], 0.0);
    near(floats_of(&out)[2], &[4.0], 0.0);
}

#[test]
fn convolutions() {
    let x = floats(&[1, 1, 3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let w = floats(&[1, 1, 2, 2], &[1.0, 0.0, 0.0, -1.0]);
    let b = floats(&[1], &[10.0]);
    let dense = |x: &[Tensor]| x[0].conv2d(&x[1], Some(&x[2]), Conv2d::default());
    near(&one(&[x.clone(), w.clone(), b], dense), &[6.0, 6.0, 6.0, 6.0], 0.0);
    let strided =
        |x: &[Tensor]| x[0].conv2d(&x[1], None, Conv2d { stride: [2, 2], padding: [1, 1], ..Conv2d::default() });
    near(&one(&[x, w], strided), &[-1.0, -3.0, -7.0, -4.0], 0.0);
    let small = floats(&[1, 1, 1, 2], &[1.0, 2.0]);
    let w = floats(&[1, 1, 1, 3], &[1.0, 10.0, 100.0]);
    let options = ConvTranspose2d { stride: [1, 2], output_padding: [0, 1], ..ConvTranspose2d::default() };
    let transposed = |x: &[Tensor]| x[0].conv_transpose2d(&x[1], None, options);
    near(&one(&[small, w], transposed), &[1.0, 10.0, 102.0, 20.0, 200.0, 0.0], 0.0);
}

#[test]
fn poolings() {
    let x = [floats(&[1, 1, 2, 4], &[-1.0, -2.0, 3.0, 4.0, -5.0, -6.0, 7.0, 8.0])];
    near(&one(&x, |x| x[0].max_pool2d([2, 2], [2, 2], [0, 0])), &[-1.0, 8.0], 0.0);
    near(&one(&x, |x| x[0].max_pool2d([1, 2], [1, 4], [0, 1])), &[-1.0, 4.0, -5.0, 8.0], 0.0);
    near(&one(&x, |x| x[0].avg_pool2d([2, 2], [2, 2], [0, 0])), &[-3.5, 5.5], 0.0);
    near(&one(&x, |x| x[0].avg_pool2d([1, 2], [1, 4], [0, 1])), &[-0.5, 2.0, -2.5, 4.0], 0.0);
    near(&one(&x, |x| x[0].global_avg_pool2d()), &[1.0], 0.0);
    near(&one(&x, |x| x[0].global_max_pool2d()), &[8.0], 0.0);
}

#[test]
fn look_ups() {
    let table = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    near(&one(&[table.clone(), ids(&[2], &[2, 0])], |x| x[0].embedding(&x[1])), &[5.0, 6.0, 1.0, 2.0], 0.0);
    let along = [table, ids(&[3, 1], &[1, 0, 1])];
    near(&one(&along, |x| x[0].take_along_axis(&x[1], -1)), &[2.0, 3.0, 6.0], 0.0);
}

#[test]
fn attention() {
    let q = floats(&[1, 1, 2, 1], &[0.0, 0.0]);
    let v = floats(&[1, 1, 2, 1], &[1.0, 3.0]);
    let inputs = [q.clone(), q, v];
    let with = |options| move |x: &[Tensor]| x[0].scaled_dot_product_attention(&x[1], &x[2], options);
    near(&one(&inputs, with(Attention::default())), &[2.0, 2.0], 0.0);
    near(&one(&inputs, with(Attention { causal: true, ..Attention::default() })), &[1.0, 2.0], 0.0);
    let mask = floats(&[2, 2], &[f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY, f64::NEG_INFINITY]);
    let masked: Vec<Literal> = inputs.into_iter().chain([mask]).collect();
    let out = one(&masked, |x| {
        x[0].scaled_dot_product_attention(&x[1], &x[2], Attention { mask: Some(&x[3]), ..Attention::default() })
    });
    near(&out, &[3.0, 0.0], 0.0);
}

#[test]
fn rotations() {
    let x = floats(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    let (c, s) = (1f64.cos(), 1f64.sin());
    let (d, t) = (0.5f64.cos(), 0.5f64.sin());
    let options = Rotary { base: 4.0, ..Rotary::default() };
    let halves = [1.0, 2.0, 3.0, 4.0, c - 3.0 * s, 2.0 * d - 4.0 * t, 3.0 * c + s, 4.0 * d + 2.0 * t];
    near(&one(std::slice::from_ref(&x), |x| x[0].rotary_embedding(options)), &halves, 1e-15);
    let neighbours = [1.0, 2.0, 3.0, 4.0, c - 2.0 * s, 2.0 * c + s, 3.0 * d - 4.0 * t, 4.0 * d + 3.0 * t];
    near(&one(&[x], |x| x[0].rotary_embedding(Rotary { interleaved: true, ..options })), &neighbours, 1e-15);
}

#[test]
fn complaints() {
    let says = |text: &str, what: String| assert!(what.starts_with(text), "{what}");
    let x = floats(&[1, 3, 4, 4], &[0.0; 48]);
    let w = floats(&[2, 2, 3, 3], &[0.0; 36]);
    let wrong = complaint(&[x.clone(), w], |x| x[0].conv2d(&x[1], None, Conv2d::default()));
    says("conv2d: x f64[1,3,4,4] has 3 channels, weight f64[2,2,3,3] takes 2", wrong);
    let wrong = complaint(std::slice::from_ref(&x), |x| x[0].max_pool2d([2, 2], [0, 1], [0, 0]));
    says("max_pool2d: kernel [2, 2] and stride [0, 1] must be at least 1", wrong);
    let wrong = complaint(std::slice::from_ref(&x), |x| x[0].group_norm(2, None, None, 1e-5));
    says("group_norm: 2 groups do not divide the 3 channels of f64[1,3,4,4]", wrong);
    let wrong = complaint(&[x.clone(), floats(&[3], &[0.0; 3])], |x| x[0].layer_norm(None, Some(&x[1]), 1e-5));
    says("layer_norm: bias is f64[3]; its shape must be [4]", wrong);
    let wrong = complaint(&[x], |x| x[0].rms_norm(None, -1.0));
    says("rms_norm: epsilon is -1.0; it must be finite and not negative", wrong.replace("-1;", "-1.0;"));
}
