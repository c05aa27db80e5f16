use super::*;

/// Distance of `got` from the true value in units in the last place of the nearest f32 (whose spacing
/// is that of the binade of the true value).
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() || (rounded == 0.0 && got == 0.0) {
        return f64::INFINITY;
    }
    if rounded.is_infinite() && got.is_infinite() {
        return f64::INFINITY;
    }
    // Beyond the greatest float, count as if the exponent range went on.
    let got = if got.is_infinite() { f64::from(got.signum()) * 2f64.powi(128) } else { f64::from(got) };
    let exponent = (want.abs().log2().floor() as i32).clamp(-126, 127);
    (got - want).abs() / 2f64.powi(exponent - 23)
}

fn sweep(name: &str, bound: f64, f: impl Fn(f32) -> f32, truth: impl Fn(f64) -> f64) {
    let step = if cfg!(miri) { 16_777_259 } else { 1009 };
    let (mut worst, mut at) = (0.0, 0.0);
    let special = [0.0f32, f32::INFINITY, f32::NAN, 1.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, 0.5];
    let all = (0..=u32::MAX).step_by(step).map(f32::from_bits);
    for x in all.chain(special).chain(special.map(|x| -x)) {
        let error = ulps(f(x), truth(f64::from(x)));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    println!("{name}: {worst:.3} ulp at {at:e}");
    assert!(worst <= bound, "{name}({at:e}) = {:e} is off by {worst} ulp", f(at));
}

#[test]
fn exponentials_and_logarithms_keep_their_stated_errors() {
    sweep("exp", 1.0, exp, libm::exp);
    sweep("expm1", 2.0, expm1, libm::expm1);
    sweep("log", 1.0, log, libm::log);
    sweep("log1p", 2.0, log1p, libm::log1p);
    sweep("tanh", 3.0, tanh, libm::tanh);
    sweep("erf", 2.0, erf, libm::erf);
}

#[test]
fn trigonometric_functions_keep_their_stated_errors() {
    let small = |f: fn(f32) -> f32, large: fn(f32) -> f32| {
        move |x: f32| if x.abs() < LARGE_ANGLE || !x.is_finite() { f(x) } else { large(x) }
    };
    sweep("sin", 1.0, small(sin, libm::sinf), libm::sin);
    sweep("cos", 1.0, small(cos, libm::cosf), libm::cos);
    sweep("tan", 1.0, small(tan, libm::tanf), libm::tan);
}

/// Pairs that mix wide and ordinary ranges.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let special = [0.0f32, 1.0, 2.0, 0.5, 3.0, 1e-45, 1e30, f32::INFINITY, f32::NAN, 2.5, 16_777_217.0, 33.0];
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let random = (0..if cfg!(miri) { 100 } else { 1_000_000 }).map(move |i| {
        let (a, b) = (next(), next());
        let unit = |u: u32| u as f32 / 2f32.powi(32);
        match i % 3 {
            0 => (f32::from_bits(a), f32::from_bits(b)),
            1 => (unit(a) * 10.0, unit(b) * 40.0 - 20.0),
            _ => (1.0 + (unit(a) - 0.5) * 1e-2, (unit(b) - 0.5) * 1e4),
        }
    });
    let signed = special.into_iter().chain(special.map(|x| -x)).collect::<Vec<_>>();
    let grid = signed.clone().into_iter().flat_map(move |a| signed.clone().into_iter().map(move |b| (a, b)));
    random.chain(grid)
}

#[test]
fn functions_of_two_values_keep_their_stated_errors() {
    for (name, f, truth) in
        [("pow", pow as fn(f32, f32) -> f32, libm::pow as fn(f64, f64) -> f64), ("atan2", atan2, libm::atan2)]
    {
        let (mut worst, mut at) = (0.0, (0.0, 0.0));
        for (a, b) in pairs() {
            let error = ulps(f(a, b), truth(f64::from(a), f64::from(b)));
            if error > worst {
                (worst, at) = (error, (a, b));
            }
        }
        println!("{name}: {worst:.3} ulp at {at:?}");
        assert!(worst <= 1.0, "{name}{at:?} = {:e} is off by {worst} ulp", f(at.0, at.1));
    }
}

#[test]
fn maximum_and_minimum_propagate_nan_and_order_zeros() {
    let nan = f32::NAN;
    assert!(maximum(nan, 1.0).is_nan() && maximum(1.0, nan).is_nan() && minimum(nan, 1.0).is_nan());
    assert!(minimum(1.0, nan).is_nan());
    for (a, b) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
        assert_eq!(maximum(a, b).to_bits(), 0.0f32.to_bits());
        assert_eq!(minimum(a, b).to_bits(), (-0.0f32).to_bits());
    }
    assert_eq!((maximum(-2.0, 3.0), minimum(-2.0, 3.0)), (3.0, -2.0));
}
