//! Activations, softmax and statistics against values computed with 50 digits (mpmath).

use super::support::{complaint, floats, ids, near, one};
use backfit_ir::Tensor;

const INFINITE: f64 = f64::INFINITY;

fn at(x: &[f64], apply: fn(&Tensor) -> Tensor) -> Vec<f64> {
    one(&[floats(&[x.len()], x)], |t| apply(&t[0]))
}

#[test]
fn rectifiers() {
    let x = [-2.0, -0.0, 0.0, 0.5, 7.0, f64::NAN];
    near(&at(&x, Tensor::relu), &[0.0, 0.0, 0.0, 0.5, 7.0, f64::NAN], 0.0);
    near(&at(&x, Tensor::relu6), &[0.0, 0.0, 0.0, 0.5, 6.0, f64::NAN], 0.0);
    near(&at(&x, |x| x.leaky_relu(0.25)), &[-0.5, 0.0, 0.0, 0.5, 7.0, f64::NAN], 0.0);
    near(&at(&x, |x| x.elu(2.0)), &[-1.7293294335267746, 0.0, 0.0, 0.5, 7.0, f64::NAN], 1e-15);
    near(&at(&x, |x| x.clip_by_value(-1.0, 0.25)), &[-1.0, 0.0, 0.0, 0.25, 0.25, f64::NAN], 0.0);
}

#[test]
fn sigmoids_are_exact_on_both_sides() {
    let y = at(&[-1000.0, -40.0, -1.0, 0.0, 1.0, 40.0, 1000.0], Tensor::sigmoid);
    near(&y[1..2], &[4.248354255291589e-18], 1e-15);
    near(&y, &[0.0, 0.0, 0.2689414213699951, 0.5, 0.7310585786300049, 1.0, 1.0], 1e-15);
    let y = at(&[-100.0, -1.0, 0.0, 1.0, 100.0, 1e4], Tensor::softplus);
    near(&y[..1], &[3.720075976020836e-44], 1e-15);
    near(&y[1..5], &[0.3132616875182228, std::f64::consts::LN_2, 1.3132616875182228, 100.0], 1e-15);
    assert_eq!(y[5], 1e4);
    near(&at(&[-1e4, 1.0, 1e4], Tensor::silu), &[0.0, 0.7310585786300049, 1e4], 1e-15);
}

#[test]
fn gelus() {
    near(&at(&[-1.0, 1.0, 100.0], Tensor::gelu), &[-0.15865525393145705, 0.8413447460685429, 100.0], 1e-15);
    near(&at(&[-1.0, 1.0, 100.0], Tensor::gelu_tanh), &[-0.1588080093917233, 0.8411919906082767, 100.0], 1e-15);
}

#[test]
fn softmaxes_are_stable() {
    let x = [1e4, 9999.0, -1e4];
    near(&at(&x, |x| x.softmax(0)), &[0.7310585786300049, 0.2689414213699951, 0.0], 1e-15);
    near(&at(&x, |x| x.log_softmax(0)), &[-0.3132616875182228, -1.3132616875182228, -20000.31326168752], 1e-15);
    near(&at(&x, |x| x.logsumexp(&[0])), &[10000.31326168752], 1e-15);
    near(&at(&[-INFINITE, -INFINITE], |x| x.logsumexp(&[0])), &[-INFINITE], 0.0);
    near(&at(&[-INFINITE, 0.0], |x| x.softmax(0)), &[0.0, 1.0], 0.0);
    near(&at(&[INFINITE, 0.0], |x| x.logsumexp(&[0])), &[INFINITE], 0.0);
}

#[test]
fn statistics() {
    let x = [floats(&[2, 3], &[1.0, 2.0, 6.0, 1e8, 1e8 + 1.0, 1e8 + 2.0])];
    near(&one(&x, |x| x[0].mean(&[1])), &[3.0, 1e8 + 1.0], 1e-16);
    near(&one(&x, |x| x[0].variance(&[-1], 0)), &[14.0 / 3.0, 2.0 / 3.0], 1e-15);
    near(&one(&x, |x| x[0].variance(&[-1], 1)), &[7.0, 1.0], 1e-15);
    near(&one(&x, |x| x[0].mean_all()), &[(3e8 + 12.0) / 6.0], 1e-15);
}

#[test]
fn products() {
    let (x, w) = (floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), floats(&[2, 3], &[1.0, 0.0, -1.0, 2.0, 1.0, 0.5]));
    let b = floats(&[2], &[0.5, -0.5]);
    near(&one(&[x.clone(), w.clone(), b], |x| x[0].linear(&x[1], Some(&x[2]))), &[-1.5, 5.0, -1.5, 15.5], 0.0);
    near(&one(&[x.clone(), w], |x| x[0].matmul(&x[1].transpose(&[1, 0]))), &[-2.0, 5.5, -2.0, 16.0], 0.0);
    let v = floats(&[3], &[1.0, 1.0, 2.0]);
    near(&one(&[x, v.clone()], |x| x[0].matmul(&x[1])), &[9.0, 21.0], 0.0);
    near(&one(&[v.clone(), v], |x| x[0].matmul(&x[1])), &[6.0], 0.0);
}

#[test]
fn complaints() {
    let (x, i) = (floats(&[2, 3], &[0.0; 6]), ids(&[2], &[0, 1]));
    let says = |text: &str, what: String| assert!(what.starts_with(text), "{what}");
    says("relu: it takes a float dtype, not i32", complaint(std::slice::from_ref(&i), |x| x[0].relu()));
    says("softmax: f64[2,3] has no axis 2", complaint(std::slice::from_ref(&x), |x| x[0].softmax(2)));
    says(
        "mean: axes [0, -2] of f64[2,3] name an axis twice",
        complaint(std::slice::from_ref(&x), |x| x[0].mean(&[0, -2])),
    );
    says("elu: alpha is NaN; it must be finite", complaint(std::slice::from_ref(&x), |x| x[0].elu(f64::NAN)));
    says(
        "linear: x f64[2,3] has 3 features, weight f64[2,4] takes 4",
        complaint(&[x.clone(), floats(&[2, 4], &[0.0; 8])], |x| x[0].linear(&x[1], None)),
    );
    says(
        "linear: weight is i32[2]; it must have the 2 axes [out, in]",
        complaint(&[x, i], |x| x[0].linear(&x[1], None)),
    );
}
