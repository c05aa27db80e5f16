//! Random numbers: their distribution, keys, dropout.

use super::support::{all, floats, near};
use backfit_ir::interp::Array;
use backfit_ir::ops::dropout;
use backfit_ir::ops::rng_bits::philox;
use backfit_ir::{Attributes, DType, Graph, Init, Literal, RNG_KEY, Role, Tensor, Type};
use std::panic::Location;

fn key() -> Literal {
    Literal::from_i64(Type::new(DType::U32, [4]), &[1, 2, 3, 0])
}

fn drawn(draw: impl FnOnce(&Tensor) -> Tensor) -> Array {
    all(&[key()], |_, x| vec![draw(&x[0])]).remove(0)
}

fn moments(x: &Array) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.as_floats().iter().sum::<f64>() / n;
    (mean, x.as_floats().iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn keys_fold_in_numbers() {
    let number = Literal::from_i64(Type::new(DType::U32, []), &[9]);
    let out = all(&[key(), number], |_, x| vec![x[0].fold_in(&x[1])]);
    let expected: Vec<i64> = philox([0, 0, 3, 9], [1, 2]).map(i64::from).to_vec();
    assert_eq!(out[0].as_ints(), expected);
}

#[test]
fn uniform_numbers() {
    for (dtype, step) in [(DType::F64, 53), (DType::F32, 24), (DType::F16, 11), (DType::BF16, 8)] {
        let x = drawn(|k| k.random_uniform([100, 100], 0.0, 1.0, dtype));
        let (mean, variance) = moments(&x);
        assert!((mean - 0.5).abs() < 0.02 && (variance - 1.0 / 12.0).abs() < 0.004, "{dtype}: {mean} {variance}");
        let whole = |v: f64| (v * 2f64.powi(step)).fract() == 0.0;
        assert!(x.as_floats().iter().all(|&v| (0.0..1.0).contains(&v) && whole(v)), "{dtype}");
    }
    let words = philox([0, 0, 3, 0], [1, 2]);
    let first = drawn(|k| k.random_uniform([4], 2.0, 4.0, DType::F32));
    near(first.as_floats(), &words.map(|w| 2.0 + 2.0 * f64::from(w >> 8) / f64::from(1 << 24)), 1e-7);
}

#[test]
fn normal_numbers() {
    let x = drawn(|k| k.random_normal([20_000], 3.0, 2.0, DType::F32));
    let (mean, variance) = moments(&x);
    assert!((mean - 3.0).abs() < 0.05 && (variance - 4.0).abs() < 0.15, "{mean} {variance}");
    let within = x.as_floats().iter().filter(|v| (**v - 3.0).abs() < 2.0).count();
    assert!((within as f64 / 20_000.0 - 0.6827).abs() < 0.01, "{within}");
    assert!(x.as_floats().iter().all(|v| v.is_finite()));
}

#[test]
fn dropout_keeps_its_share_and_the_mean() {
    let out = all(&[floats(&[10_000], &[1.0; 10_000]), key()], |_, x| vec![x[0].dropout_with(&x[1], 0.25)]);
    let kept = out[0].as_floats().iter().filter(|&&v| v != 0.0).count();
    assert!((7300..7700).contains(&kept), "{kept}");
    assert!(out[0].as_floats().iter().all(|&v| v == 0.0 || v == 1.0 / 0.75));
}

#[test]
fn dropout_outside_training_is_the_identity() {
    let out = all(&[floats(&[3], &[1.0, 2.0, 3.0]), key()], |g: &Graph, x| {
        let types = [x[0].ty().clone(), x[1].ty().clone()];
        let attributes = Attributes::new().with("rate", 0.5);
        let function = g.instantiate(&dropout::DEF, &types, attributes, true, Location::caller()).unwrap();
        g.call(function, &[&x[0], &x[1]])
    });
    near(out[0].as_floats(), &[1.0, 2.0, 3.0], 0.0);
}

#[test]
fn the_main_function_has_one_random_state() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [8]);
    g.result("y", &x.dropout(0.5).dropout(0.5));
    let module = g.finish().unwrap();
    let main = module.functions.last().unwrap();
    let states: Vec<_> = main.params.iter().filter(|p| p.role == Role::State).collect();
    assert_eq!(states.len(), 1);
    assert_eq!((states[0].name.as_str(), &states[0].init), (RNG_KEY, &Some(Init::ZEROS)));
    assert_eq!(module.functions.iter().filter(|f| f.name.starts_with("fold_in")).count(), 1);
}

#[test]
fn other_functions_are_told_to_take_a_key() {
    let g = Graph::new();
    let body = g.function("block");
    let x = body.input("x", DType::F32, [8]);
    body.result("y", &x.dropout(0.5));
    assert!(g.define(body).is_none());
    assert!(g.problems()[0].to_string().contains("pass the key as an operand"), "{:?}", g.problems());
}
