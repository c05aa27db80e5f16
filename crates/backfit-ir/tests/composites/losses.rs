//! Losses, metrics and optimizer updates against hand-computed values.

use super::support::{all, complaint, floats, ids, near, one};
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use backfit_ir::ops::clip_by_global_norm::clip_by_global_norm;
use backfit_ir::ops::cross_entropy::CrossEntropy;
use backfit_ir::ops::reduction::{LossOptions, Reduction};
use backfit_ir::ops::sgd_update::{SgdUpdate, sgd_update};
use backfit_ir::{DType, Literal, Tensor};

fn logits() -> Literal {
    floats(&[2, 2], &[0.0, 3f64.ln(), 0.0, 0.0])
}

#[test]
fn cross_entropies() {
    let (quarter, half, three) = (4f64.ln(), 2f64.ln(), (4.0f64 / 3.0).ln());
    let hard = [logits(), ids(&[2], &[0, 1])];
    near(&one(&hard, |x| x[0].cross_entropy(&x[1])), &[(quarter + half) / 2.0], 1e-15);
    let with = |o: CrossEntropy<'_>, x: &[Tensor]| x[0].cross_entropy_with(&x[1], o);
    let none = |x: &[Tensor]| with(CrossEntropy { reduction: Reduction::None, ..Default::default() }, x);
    near(&one(&hard, none), &[quarter, half], 1e-15);
    let smooth =
        |x: &[Tensor]| with(CrossEntropy { label_smoothing: 0.5, reduction: Reduction::Sum, weights: None }, x);
    near(&one(&hard, smooth), &[0.75 * quarter + 0.25 * three + half], 1e-15);
    let weighted = [logits(), ids(&[2], &[0, 1]), floats(&[2], &[3.0, 0.0])];
    let by = |x: &[Tensor]| x[0].cross_entropy_with(&x[1], CrossEntropy { weights: Some(&x[2]), ..Default::default() });
    near(&one(&weighted, by), &[quarter], 1e-15);
    let soft = [logits(), floats(&[2, 2], &[0.25, 0.75, 1.0, 0.0])];
    near(&one(&soft, |x| x[0].cross_entropy(&x[1])), &[(0.25 * quarter + 0.75 * three + half) / 2.0], 1e-15);
}

#[test]
fn cross_entropy_is_stable_and_ignores_ids_of_no_class() {
    let far = [floats(&[2, 2], &[1e4, -1e4, -1e4, 1e4]), ids(&[2], &[0, 0])];
    near(&one(&far, |x| x[0].softmax_cross_entropy(&x[1], 0.0)), &[0.0, 2e4], 1e-15);
    let outside = [logits(), ids(&[2], &[-100, 2])];
    near(&one(&outside, |x| x[0].softmax_cross_entropy(&x[1], 0.25)), &[0.0, 0.0], 0.0);
    let masked = [floats(&[1, 3], &[f64::NEG_INFINITY, 0.0, 0.0]), ids(&[1], &[1])];
    near(&one(&masked, |x| x[0].cross_entropy(&x[1])), &[2f64.ln()], 1e-15);
}

#[test]
fn half_precision_gives_an_f32_loss() {
    let half = Literal::from_f64(logits().ty().with_dtype(DType::F16), &logits().to_f64());
    let out = all(&[half, ids(&[2], &[0, 1])], |_, x| vec![x[0].cross_entropy(&x[1])]);
    assert_eq!(out[0].ty.to_string(), "f32[]");
    near(out[0].as_floats(), &[(4f64.ln() + 2f64.ln()) / 2.0], 1e-3);
}

fn weighted_by(weights: &Tensor, reduction: Reduction) -> LossOptions<'_> {
    LossOptions { weights: Some(weights), reduction }
}

#[test]
fn elementwise_losses() {
    let pair = [floats(&[2, 2], &[1.0, -1.0, 4.0, 0.0]), floats(&[2, 2], &[0.0, 1.0, 1.0, 0.0])];
    near(&one(&pair, |x| x[0].mse(&x[1])), &[14.0 / 4.0], 1e-15);
    near(&one(&pair, |x| x[0].l1(&x[1])), &[6.0 / 4.0], 1e-15);
    near(&one(&pair, |x| x[0].huber(&x[1], 2.0)), &[(0.5 + 2.0 + 4.0) / 4.0], 1e-15);
    let weighted: Vec<Literal> = pair.into_iter().chain([floats(&[2], &[1.0, 3.0])]).collect();
    near(&one(&weighted, |x| x[0].mse_with(&x[1], weighted_by(&x[2], Reduction::Mean))), &[(5.0 + 27.0) / 8.0], 1e-15);
    near(&one(&weighted, |x| x[0].mse_with(&x[1], weighted_by(&x[2], Reduction::Sum))), &[32.0], 1e-15);
    let far = [floats(&[3], &[800.0, -800.0, 0.0]), floats(&[3], &[0.0, 0.0, 0.5])];
    let none = LossOptions { weights: None, reduction: Reduction::None };
    let bce = |x: &[Tensor]| x[0].binary_cross_entropy_with_logits_with(&x[1], none);
    near(&one(&far, bce), &[800.0, 0.0, 2f64.ln()], 1e-15);
}

#[test]
fn accuracies() {
    let x = [floats(&[4, 2], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]), ids(&[4], &[0, 1, 0, 1])];
    near(&one(&x, |x| x[0].accuracy(&x[1])), &[0.75], 0.0);
    let padded: Vec<Literal> = x.into_iter().chain([floats(&[4], &[1.0, 0.0, 0.0, 1.0])]).collect();
    near(&one(&padded, |x| x[0].accuracy_with(&x[1], Some(&x[2]))), &[0.5], 0.0);
}

#[test]
fn updates() {
    let s = |v| floats(&[], &[v]);
    let inputs = [s(1.0), s(0.5), s(2.0), s(0.1)];
    let rule = SgdUpdate { momentum: 0.9, nesterov: false, weight_decay: 0.1 };
    let out = all(&inputs, |_, x| sgd_update(&x[0], &x[1], Some(&x[2]), &x[3], rule));
    near(out[0].as_floats(), &[1.0 - 0.1 * 2.4], 1e-15);
    near(out[1].as_floats(), &[2.4], 1e-15);
    // The first step of Adam moves by the learning rate, whatever the gradient.
    let inputs = [s(1.0), s(0.0), s(0.0), s(-7.0), s(0.01), s(1.0 - 0.9), s(1.0 - 0.999)];
    let out =
        all(&inputs, |_, x| adam_update(&x[0], &x[1], &x[2], &x[3], [&x[4], &x[5], &x[6]], AdamUpdate::default()));
    near(out[0].as_floats(), &[1.01], 1e-10);
    near(out[1].as_floats(), &[-0.7], 1e-15);
    near(out[2].as_floats(), &[0.049], 1e-14);
    let clipped = all(&[floats(&[2], &[3.0, 0.0]), s(4.0)], |_, x| {
        let (clipped, norm) = clip_by_global_norm(x, 1.0);
        clipped.into_iter().chain(norm).collect()
    });
    near(clipped[0].as_floats(), &[3.0 / (5.0 + 1e-6), 0.0], 1e-15);
    near(clipped[2].as_floats(), &[5.0], 1e-15);
}

#[test]
fn complaints() {
    let says = |text: &str, what: String| assert!(what.starts_with(text), "{what}");
    let wrong = complaint(&[logits(), ids(&[3], &[0, 1, 0])], |x| x[0].cross_entropy(&x[1]));
    says("cross_entropy: a target of class ids is i32[3]; its shape must be [2]", wrong);
    let wrong = complaint(&[logits(), floats(&[2], &[0.0, 1.0])], |x| x[0].cross_entropy(&x[1]));
    says("cross_entropy: a target of probabilities is f64[2]; its shape must be [2,2]", wrong);
    let weights = [logits(), logits(), floats(&[3], &[1.0; 3])];
    let wrong =
        complaint(&weights, |x| x[0].mse_with(&x[1], LossOptions { weights: Some(&x[2]), ..Default::default() }));
    says("mse: weights are f64[3]; their axes must be the first ones of the losses, whose shape is [2,2]", wrong);
}
