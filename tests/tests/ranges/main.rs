//! Range analysis: bounds contain what happens; every kind of warning is told with the user's line.

use backfit_compile::range::{Chip, Interval, Kind, Observations, Warning, bounds, declared_range, warnings};
use backfit_grad::gradients;
use backfit_ir::interp::{Array, Data, Moment, Options, run_watched};
use backfit_ir::{DType, FuncId, Graph, Init, Literal, Module, Place, Tensor, Type};
use backfit_suites::compare::last;
use backfit_suites::fuzz::generate;

fn numbers(array: &Array) -> Vec<f64> {
    match &array.data {
        Data::Float(values) => values.clone(),
        Data::Int(values) if array.ty.dtype == DType::U64 => values.iter().map(|&v| v as u64 as f64).collect(),
        Data::Int(values) => values.iter().map(|&v| v as f64).collect(),
    }
}

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    values: u64,
    /// Results of nodes whose bounds are finite.
    finite: u64,
}

/// Runs the last function of a module and compares every value on the way with its bounds.
fn contained(module: &Module, inputs: &[Literal], options: Options, name: &str, compared: &mut Compared) {
    let arguments: Vec<Array> = inputs.iter().map(Array::from_literal).collect();
    let ranges: Vec<Interval> = arguments.iter().map(|a| Interval::of(numbers(a))).collect();
    let bounds = bounds(module, last(module), &ranges);
    let watch = &mut |moment: Moment| {
        let Moment::Ran { function: of, node: index, results, .. } = moment else { return };
        let node = &module.function(of).nodes[index];
        for (&value, result) in node.results.iter().zip(results) {
            let bound = bounds.of(of, value).expect("every function that runs was walked");
            compared.finite += u64::from(bound.magnitude().is_finite());
            for number in numbers(result) {
                compared.values += 1;
                let operator = node.op.name();
                assert!(bound.contains(number), "{name}: {operator} {value} is {number:e}, not in {bound:?}\n{module}");
            }
        }
    };
    run_watched(module, last(module), &arguments, options, watch).unwrap();
}

#[test]
fn bounds_contain_every_value_of_random_programs() {
    let mut compared = Compared::default();
    for seed in 0..300 {
        let case = generate::case(seed);
        let options = Options { double: false, flush_subnormals: case.flush };
        contained(&case.module, &case.inputs, options, &format!("seed {seed}"), &mut compared);
    }
    println!("{compared:?}");
    assert!(compared.values > 100_000 && compared.finite > 1000, "{compared:?}");
}

#[test]
fn bounds_contain_every_value_of_every_operators_samples_in_every_dtype() {
    let mut compared = Compared::default();
    for case in backfit_suites::sample::cases() {
        for flush_subnormals in [false, true] {
            let options = Options { double: false, flush_subnormals };
            contained(&case.module().unwrap(), &case.inputs, options, &case.name, &mut compared);
        }
    }
    println!("{compared:?}");
    assert!(compared.values > 100_000 && compared.finite > 10_000, "{compared:?}");
}

/// A graph of one input within ±`range`, with the bounds of its result.
fn bounded(shape: [usize; 2], range: f64, build: impl Fn(&Tensor) -> Tensor) -> Interval {
    let g = Graph::new();
    let y = build(&g.input("x", DType::F32, shape));
    g.result("y", &y);
    let module = flat(&g.finish().unwrap());
    let f = module.function(FuncId(0));
    bounds(&module, FuncId(0), &[Interval::new(-range, range)]).of(FuncId(0), f.results[0].value).unwrap()
}

fn flat(module: &Module) -> Module {
    Module { functions: vec![backfit_ir::rewrite::inline_calls(module, last(module), |_| true)] }
}

#[test]
fn bounds_are_as_narrow_as_the_formula_allows() {
    let near = |found: Interval, low: f64, high: f64| {
        assert!(
            (found.low - low).abs() < 0.02 * high.abs() && (found.high - high).abs() < 0.02 * high.abs(),
            "{found:?}"
        );
    };
    near(bounded([4, 8], 2.0, |x| x.sum(&[1])), -16.0, 16.0);
    near(bounded([4, 8], 2.0, |x| x * x), 0.0, 4.0);
    near(bounded([4, 8], 2.0, |x| x.matmul(&x.transpose(&[1, 0]))), -32.0, 32.0);
    // Not e^(2 · 1000), as the exponential of a difference of two independent numbers would have.
    near(bounded([4, 8], 1000.0, |x| x.softmax(-1)), 0.0, 1.0);
    near(bounded([4, 8], 1000.0, |x| x.logsumexp(&[1])), -1000.0, 1000.0 + 8f64.ln());
}

#[test]
fn weights_have_the_range_they_start_with() {
    let g = Graph::new();
    let weight = |name: &str, init| g.weight(name, Type::new(DType::F32, [2]), init);
    weight("uniform", Init::Uniform { low: -0.25, high: 0.5 });
    weight("normal", Init::Normal { mean: 1.0, std: 0.5 });
    g.result("y", &weight("literal", Init::Literal(Literal::from_f32([2], &[3.0, -1.0]))));
    let module = g.finish().unwrap();
    let f = &module.functions[0];
    let ranges: Vec<Interval> = f.params.iter().map(|p| declared_range(p, f.ty(p.value))).collect();
    assert_eq!(ranges, [Interval::new(-0.25, 0.5), Interval::new(-2.0, 4.0), Interval::new(-1.0, 3.0)]);
}

/// The warnings of a graph, by bounds, and by one run.
fn warned(g: &Graph, inputs: &[Literal], chip: &Chip) -> [Vec<Warning>; 2] {
    let module = flat(&g.finish().unwrap());
    let ranges: Vec<Interval> = inputs.iter().map(Interval::of_literal).collect();
    let bounds = bounds(&module, FuncId(0), &ranges);
    let mut seen = Observations::default();
    seen.run(&module, FuncId(0), inputs).unwrap();
    [warnings(&module, &bounds, None, chip), warnings(&module, &bounds, Some(&seen), chip)]
}

/// There must be one warning of this kind and no other, at this line of this file.
fn only(found: &[Warning], kind: Kind, line: u32) {
    assert_eq!(found.iter().map(|w| w.kind).collect::<Vec<_>>(), [kind], "{found:?}");
    let Some(Place::Source(loc)) = &found[0].problem.place else { panic!("no line: {found:?}") };
    assert_eq!((&*loc.file, loc.line), (file!(), line));
    assert!(found[0].problem.help.is_some());
}

#[test]
fn overflow_is_told_where_it_arises_and_not_again() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [3]);
    let (line, large) = (line!(), &x * 300.0);
    g.result("y", &(large + 1.0));
    let inputs = [Literal::from_f32([3], &[1.0, 400.0, -2.0])];
    for found in warned(&g, &inputs, &Chip::of(DType::F16)) {
        only(&found, Kind::Overflow, line);
    }
    assert_eq!(warned(&g, &inputs, &Chip::of(DType::BF16)), [vec![], vec![]]);
}

#[test]
fn products_above_the_ceiling_of_a_chip() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [1, 4]);
    let (line, product) = (line!(), x.matmul(&x.reshape([4, 1])));
    g.result("y", &product);
    let inputs = [Literal::from_f32([1, 4], &[100.0; 4])];
    for found in warned(&g, &inputs, &Chip::f16_engine()) {
        only(&found, Kind::ProductCeiling, line);
    }
    let high = Chip { product_ceiling: 50_000.0, ..Chip::f16_engine() };
    assert_eq!(warned(&g, &inputs, &high), [vec![], vec![]]);
}

#[test]
fn counts_that_are_too_large_to_be_exact() {
    let g = Graph::new();
    let x = g.input("x", DType::Bool, [3000]);
    let (line, count) = (line!(), x.cast(DType::F32).sum_all());
    g.result("y", &count);
    let inputs = [Literal::from_f64(Type::new(DType::Bool, [3000]), &[1.0; 3000])];
    for found in warned(&g, &inputs, &Chip::of(DType::F16)) {
        only(&found, Kind::InexactSum, line);
    }
    assert_eq!(warned(&g, &inputs, &Chip { exact_sum: 4096.0, ..Chip::of(DType::F16) }), [vec![], vec![]]);
}

#[test]
fn gradients_that_vanish() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [4]);
    let (line, cubes) = (line!(), &x * &(&x * &x));
    let loss = cubes.sum_all() * 1e-5;
    g.result("dx", &gradients(&loss, &[&x]).unwrap()[0]);
    let inputs = [Literal::from_f32([4], &[0.01, 0.02, 1.0, 0.03])];
    let [possible, seen] = warned(&g, &inputs, &Chip::of(DType::F16));
    assert_eq!(possible, []);
    only(&seen, Kind::GradientUnderflow, line);
    assert_eq!(warned(&g, &inputs, &Chip::of(DType::BF16)), [vec![], vec![]]);
}

#[test]
fn differences_of_nearly_equal_numbers() {
    let g = Graph::new();
    let [x, y] = ["x", "y"].map(|name| g.input(name, DType::F32, [2]));
    let (line, difference) = (line!(), &x - &y);
    g.result("y", &difference);
    let inputs = [Literal::from_f32([2], &[1000.0, 5.0]), Literal::from_f32([2], &[999.5, 4.0])];
    let [possible, seen] = warned(&g, &inputs, &Chip::of(DType::F16));
    assert_eq!(possible, []);
    only(&seen, Kind::Cancellation, line);
    assert_eq!(warned(&g, &inputs, &Chip::of(DType::F32)), [vec![], vec![]]);
}
