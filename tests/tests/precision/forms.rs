//! Values at which plain f16 gives infinities or NaN, and the engine's forms do not.

use backfit_compile::precision::{Class, Compute, Engine, Policy};
use backfit_cpu::Cpu;
use backfit_ir::op::Monoid;
use backfit_ir::ops::adam_update::{AdamUpdate, adam_update};
use backfit_ir::ops::definition::values;
use backfit_ir::{DType, Graph, Literal, Tensor, Type};
use backfit_suites::compare::{distance, on_cpu, on_cpu_in};

type Formula = fn(&[Tensor]) -> Tensor;

/// Builds a formula of inputs of a dtype and runs it under a policy; the first result as f64.
fn run(policy: &Policy, dtype: DType, inputs: &[(&[usize], Vec<f64>)], build: Formula) -> Vec<f64> {
    let g = Graph::new();
    let mut tensors = Vec::new();
    let mut arguments = Vec::new();
    for (i, (shape, values)) in inputs.iter().enumerate() {
        let ty = Type::new(dtype, *shape);
        tensors.push(g.parameter(&format!("x{i}"), ty.clone(), backfit_ir::Role::Input, None));
        arguments.push(Literal::from_f64(ty, values));
    }
    g.result("y", &build(&tensors));
    on_cpu_in(&Cpu::default().threads(1), policy, &g.finish().unwrap(), &arguments).unwrap()[0].to_f64()
}

/// Plain f16 must give infinities, NaN or something else altogether where the engine's form is within `tolerance` of f64,
/// relative to the largest element.
fn rescued(inputs: &[(&[usize], Vec<f64>)], naive: Formula, same: Formula, tolerance: f64) {
    let exact = run(&Policy::f32(), DType::F64, inputs, same);
    let size = exact.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    let plain = run(&Policy::f32(), DType::F16, inputs, naive);
    let copes = plain.iter().zip(&exact).all(|(p, e)| (p - e).abs() < 0.1 * size);
    assert!(!copes, "plain f16 copes: {plain:?}");
    let found = run(&Policy::f16_engine(), DType::F32, inputs, same);
    for (f, e) in found.iter().zip(&exact) {
        assert!((f - e).abs() <= tolerance * size + 1e-4, "{found:?} instead of {exact:?}");
    }
}

fn large() -> Vec<f64> {
    (0..12).map(|i| f64::from(i - 5) * 900.0).collect()
}

#[test]
fn mean_of_squares_beyond_the_range() {
    let naive = |x: &[Tensor]| &x[0] * ((&x[0] * &x[0]).reduce_keep(Monoid::Sum, &[-1]) / 6.0 + 1e-5).rsqrt();
    rescued(&[(&[2, 6], large())], naive, |x| x[0].rms_norm(None, 1e-5), 2e-3);
}

#[test]
fn deviations_whose_squares_are_beyond_the_range() {
    let naive = |x: &[Tensor]| {
        let centered = &x[0] - &x[0].mean(&[-1]).reshape([2, 1]);
        &centered * ((&centered * &centered).reduce_keep(Monoid::Sum, &[-1]) / 6.0 + 1e-5).rsqrt()
    };
    rescued(&[(&[2, 6], large())], naive, |x| x[0].layer_norm(None, None, 1e-5), 4e-3);
}

#[test]
fn a_mean_whose_sum_is_beyond_the_range() {
    let same = |x: &[Tensor]| x[0].sum(&[0]) / 64.0;
    rescued(&[(&[64], vec![30000.0; 64])], same, same, 1e-3);
    rescued(&[(&[64], vec![30000.0; 64])], same, |x| x[0].mean(&[0]), 1e-3);
}

#[test]
fn an_epsilon_that_vanishes() {
    let same = |x: &[Tensor]| &x[0] / (x[0].abs() + 1e-8);
    rescued(&[(&[3], vec![0.0, 1.0, -2.0])], same, same, 2e-3);
}

#[test]
fn logits_whose_exponentials_are_beyond_the_range() {
    let naive = |x: &[Tensor]| x[0].exp().sum(&[-1]).log();
    rescued(&[(&[2, 3], vec![40.0, 20.0, 12.0, 30.0, -30.0, 30.0])], naive, |x| x[0].logsumexp(&[-1]), 1e-3);
    let naive = |x: &[Tensor]| x[0].exp() / x[0].exp().reduce_keep(Monoid::Sum, &[-1]);
    rescued(&[(&[2, 3], vec![40.0, 20.0, 12.0, 30.0, -30.0, 30.0])], naive, |x| x[0].softmax(-1), 1e-3);
}

#[test]
fn running_sums_are_those_of_f64_in_every_direction() {
    for (reverse, exclusive) in [(false, false), (false, true), (true, false), (true, true)] {
        let g = Graph::new();
        let x = values::tensor([3, 5, 2], -2.0, 2.0, 1);
        let input = g.input("x", DType::F32, [3, 5, 2]);
        g.result("y", &input.cumulative(Monoid::Sum, 1, reverse, exclusive));
        let module = g.finish().unwrap();
        let argument = Literal::from_f64(x.ty().with_dtype(DType::F32), &x.to_f64());
        let cpu = Cpu::default().threads(1);
        let exact = on_cpu(&cpu, &module, std::slice::from_ref(&argument)).unwrap();
        let found = on_cpu_in(&cpu, &Policy::f16_engine(), &module, &[argument]).unwrap();
        assert!(distance(&found[0], &exact[0]) < 1e-3);
    }
}

/// Adam's weight, mean and mean square after steps on these gradients, in f64.
fn adam(gradients: &[Vec<f64>], decay: f64, decoupled: bool) -> Vec<[f64; 3]> {
    let (rate, beta1, beta2, epsilon): (f64, f64, f64, f64) = (1e-2, 0.9, 0.999, 1e-8);
    let mut state = vec![[0.5, 0.0, 0.0]; gradients[0].len()];
    for (step, gradients) in gradients.iter().enumerate() {
        let [c1, c2] = [beta1, beta2].map(|beta| 1.0 - beta.powi(step as i32 + 1));
        for ([w, m, v], g) in state.iter_mut().zip(gradients) {
            let g = if decoupled { *g } else { g + decay * *w };
            if decoupled {
                *w *= 1.0 - rate * decay;
            }
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *w -= rate * (*m / c1) / ((*v / c2).sqrt() + epsilon);
        }
    }
    state
}

#[test]
fn adam_in_f16_follows_adam_in_f64() {
    // Squares of the smallest of these gradients vanish in f16, those of the largest overflow.
    let sizes: Vec<f64> = [1e-3, 1e-2, 0.3, 20.0, 1e3].iter().flat_map(|s| [*s; 8]).collect();
    let noise = values::uniform(40 * 30, -0.5, 1.5, 3);
    let gradients: Vec<Vec<f64>> =
        noise.chunks(40).map(|noise| noise.iter().zip(&sizes).map(|(n, s)| n * s).collect()).collect();
    for (decay, decoupled) in [(0.0, false), (0.01, true)] {
        let g = Graph::new();
        let tensors = ["w", "m", "v", "g"].map(|name| g.input(name, DType::F32, [40]));
        let scalars = ["lr", "c1", "c2"].map(|name| g.input(name, DType::F32, [] as [usize; 0]));
        let [w, m, v, gradient] = &tensors;
        let rule = AdamUpdate { weight_decay: decay, decoupled, ..AdamUpdate::default() };
        let new = adam_update(w, m, v, gradient, scalars.each_ref(), rule);
        new.iter().enumerate().for_each(|(i, new)| g.result(&format!("y{i}"), new));
        let module = g.finish().unwrap();
        let vector = |values: &[f64]| Literal::from_f64(Type::new(DType::F32, [40]), values);
        let mut state = vec![vector(&[0.5; 40]), vector(&[0.0; 40]), vector(&[0.0; 40])];
        let policy = Policy::f16_engine().with(Class::Update, Compute::F16);
        for (step, gradients) in gradients.iter().enumerate() {
            let [c1, c2] = [0.9f64, 0.999].map(|beta| 1.0 - beta.powi(step as i32 + 1));
            let scalars = [1e-2, c1, c2].map(|v| Literal::scalar(DType::F32, v));
            let inputs = [&state[..], &[vector(gradients)], &scalars].concat();
            state = on_cpu_in(&Cpu::default().threads(1), &policy, &module, &inputs).unwrap();
        }
        let exact = adam(&gradients, decay, decoupled);
        for (i, exact) in exact.iter().enumerate() {
            let [w, v] = [0, 2].map(|part| state[part].to_f64()[i]);
            let moved = (exact[0] - 0.5).abs();
            assert!((w - exact[0]).abs() < 0.08 * moved + 2e-3, "weight {i}: {w} instead of {}", exact[0]);
            assert!((v.sqrt() / exact[2].sqrt() - 1.0).abs() < 0.03, "square {i}: {v} instead of {}", exact[2]);
        }
    }
}

#[test]
fn adam_where_gradients_are_zero() {
    // m, v, g; the update's direction with the epsilon of 1e-8.
    let naive = |x: &[Tensor]| &x[0] / &((&x[1] * 0.999 + &x[2] * &x[2] * 0.001).sqrt() + 1e-8);
    let zeros: &[(&[usize], Vec<f64>)] = &[(&[2], vec![0.0; 2]), (&[2], vec![0.0; 2]), (&[2], vec![0.0; 2])];
    assert!(run(&Policy::f32(), DType::F16, zeros, naive).iter().all(|v| v.is_nan()));
    let update = |x: &[Tensor]| {
        let one = x[0].graph().scalar(DType::F32, 0.1);
        adam_update(&x[0], &x[0], &x[1], &x[2], [&one, &one, &one], AdamUpdate::default()).remove(0)
    };
    let policy = Policy::f16_engine().with(Class::Update, Compute::F16);
    assert_eq!(run(&policy, DType::F32, zeros, update), [0.0; 2]);
}

#[test]
fn products_stay_below_the_ceiling_that_the_engine_has() {
    let inputs: &[(&[usize], Vec<f64>)] = &[(&[2, 4], vec![150.0; 8]), (&[4, 1], vec![100.0; 4])];
    let product = |x: &[Tensor]| x[0].matmul(&x[1]);
    assert_eq!(run(&Policy::f16(), DType::F32, inputs, product), [60000.0; 2]);
    assert_eq!(run(&Policy::f16_engine(), DType::F32, inputs, product), [32752.0; 2]);
    let low = Policy::f16_engine().on_engine(Engine { product_ceiling: 1024.0 });
    assert_eq!(run(&low, DType::F32, inputs, product), [1024.0; 2]);
}

#[test]
fn norms_take_weights_of_another_dtype() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [4, 8]);
    let w = g.input("w", DType::BF16, [8]);
    g.result("y", &x.layer_norm(Some(&w), None, 1e-5));
    g.result("z", &x.rms_norm(Some(&w), 1e-5));
    let module = g.finish().unwrap();
    let arguments = [
        Literal::from_f64(x.ty().clone(), &values::uniform(32, -2.0, 3.0, 1)),
        Literal::from_f64(w.ty().clone(), &values::uniform(8, 0.5, 1.5, 2)),
    ];
    let cpu = Cpu::default().threads(1);
    let exact = on_cpu(&cpu, &module, &arguments).unwrap();
    let found = on_cpu_in(&cpu, &Policy::f16_engine(), &module, &arguments).unwrap();
    for (found, exact) in found.iter().zip(&exact) {
        assert!(distance(found, exact) < 4e-3);
    }
}

#[test]
fn a_mean_of_more_elements_than_f16_has_steps_is_not_zero() {
    // 2^25 elements: 1 over their number is zero in f16.
    let g = Graph::new();
    let x = g.input("x", DType::F32, [1]);
    g.result("y", &x.broadcast_to([1 << 25]).mean(&[0]));
    let module = g.finish().unwrap();
    let argument = Literal::from_f64(x.ty().clone(), &[3.0]);
    let found = on_cpu_in(&Cpu::default().threads(2), &Policy::f16_engine(), &module, &[argument]).unwrap();
    assert_eq!(found[0].to_f64(), [3.0]);
}
