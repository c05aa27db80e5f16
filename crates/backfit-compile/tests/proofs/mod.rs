//! Small graphs on which passes apply, run before and after on random values.

pub mod rules;

use backfit_ir::interp::{Array, Options, run};
use backfit_ir::{Class, DType, FuncId, Function, Graph, Literal, Module, Tensor, Type};

/// A graph for one dtype: it declares its inputs, and returns what is to be computed.
pub type Build = fn(&Graph, DType) -> Vec<Tensor>;

/// The function `main` of a graph.
pub fn function(build: Build, dtype: DType) -> Function {
    let g = Graph::new();
    let results = build(&g, dtype);
    results.iter().enumerate().for_each(|(i, t)| g.result(&format!("y{i}"), t));
    let module = g.finish().unwrap_or_else(|error| panic!("{dtype}: {error}"));
    let main = FuncId(module.functions.len() as u32 - 1);
    backfit_ir::rewrite::inline_calls(&module, main, |_| true)
}

/// Values of a type: random ones, and all that are special.
pub fn values(ty: &Type, seed: u64) -> Literal {
    const FLOATS: [f64; 12] =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-310, 6e-8, 3.4e38, -65504.0];
    const INTEGERS: [i64; 10] = [i64::MIN, i64::MAX, i32::MIN as i64, 127, 128, 255, 0, 1, -1, 65535];
    let n = ty.shape.elements();
    let random = backfit_ir::ops::definition::values::uniform(2 * n, 0.0, 1.0, seed);
    let pick = |i: usize, of: usize| (random[n + i] * of as f64) as usize;
    match ty.dtype.class() {
        Class::Float => {
            let value = |i: usize| if random[i] < 0.5 { FLOATS[pick(i, FLOATS.len())] } else { random[i] * 8.0 - 6.0 };
            Literal::from_f64(ty.clone(), &(0..n).map(value).collect::<Vec<_>>())
        }
        Class::Bool => Literal::from_i64(ty.clone(), &(0..n).map(|i| i64::from(random[i] < 0.5)).collect::<Vec<_>>()),
        _ => {
            let value =
                |i: usize| if random[i] < 0.5 { INTEGERS[pick(i, INTEGERS.len())] } else { pick(i, 100) as i64 };
            Literal::from_i64(ty.clone(), &(0..n).map(value).collect::<Vec<_>>())
        }
    }
}

/// The bits of all results of a function on random values.
pub fn evaluate(f: &Function, seed: u64, flush_subnormals: bool) -> Vec<Literal> {
    let module = Module { functions: vec![f.clone()] };
    backfit_ir::verify(&module, backfit_ir::Stage::Built).unwrap_or_else(|error| panic!("{error}"));
    let arguments = f.params.iter().enumerate().map(|(i, p)| values(f.ty(p.value), seed * 31 + i as u64));
    let arguments: Vec<Array> = arguments.map(|literal| Array::from_literal(&literal)).collect();
    let results = run(&module, FuncId(0), &arguments, Options { double: false, flush_subnormals });
    results.unwrap_or_else(|error| panic!("{error}")).iter().map(Array::to_literal).collect()
}

/// Panics where two functions differ in a bit on random values.
pub fn same_bits(before: &Function, after: &Function, what: &str) {
    for seed in 0..20 {
        for flush in [false, true] {
            let (a, b) = (evaluate(before, seed, flush), evaluate(after, seed, flush));
            assert_eq!(a, b, "{what}: seed {seed}, flush {flush}");
        }
    }
}
