//! Building and running small graphs, and a reverse sweep over primitives.

use backfit_ir::interp::{Array, Options, run};
use backfit_ir::ops::definition::{Derivative, Sample};
use backfit_ir::{Attributes, DType, FuncId, Graph, Literal, Op, Role, Tensor, Type, ValueId, Vjp};
use std::collections::HashMap;

pub const INFINITY: f64 = f64::INFINITY;
pub const NAN: f64 = f64::NAN;
pub const NEG_INFINITY: f64 = f64::NEG_INFINITY;

/// The names of the operators under test.
pub const NAMES: [&str; 19] = [
    "iota",
    "arg_reduce",
    "cumulative",
    "broadcast",
    "slice",
    "pad",
    "concatenate",
    "reverse",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "scatter",
    "sort",
    "convolution",
    "reduce_window",
    "select_and_scatter",
    "rng_bits",
    "barrier",
    "reshape",
];

/// Every sample of the operators under test; integers are truth values where the operator takes nothing else.
pub fn samples() -> Vec<(&'static str, Sample)> {
    let defs = NAMES.iter().map(|name| backfit_ir::ops::find(name).expect("it is in the registry"));
    let of = |sample: Sample| match sample.dtypes {
        [DType::Bool] => Sample { inputs: sample.inputs.iter().map(truth).collect(), ..sample },
        _ => sample,
    };
    defs.flat_map(|def| (def.samples)().into_iter().map(move |sample| (def.name, of(sample)))).collect()
}

fn truth(value: &Literal) -> Literal {
    match value.ty().dtype {
        DType::I64 => Literal::from_i64(value.ty().with_dtype(DType::Bool), &value.to_i64()),
        _ => value.clone(),
    }
}

/// Inputs of a graph, one per literal.
pub fn inputs(graph: &Graph, literals: &[Literal]) -> Vec<Tensor> {
    let input = |(i, l): (usize, &Literal)| graph.parameter(&format!("x{i}"), l.ty().clone(), Role::Input, None);
    literals.iter().enumerate().map(input).collect()
}

/// Runs a graph whose inputs are these literals and returns these results.
pub fn execute(graph: &Graph, results: &[Tensor], literals: &[Literal], double: bool) -> Vec<Array> {
    results.iter().enumerate().for_each(|(i, y)| graph.result(&format!("y{i}"), y));
    let module = graph.finish().unwrap_or_else(|error| panic!("{error}"));
    let arguments: Vec<Array> = literals.iter().map(Array::from_literal).collect();
    let options = Options { double, flush_subnormals: false };
    run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, options).expect("the arguments fit")
}

/// The results of a function of these literals.
pub fn evaluate(literals: &[Literal], build: impl Fn(&Graph, &[Tensor]) -> Vec<Tensor>) -> Vec<Array> {
    let graph = Graph::new();
    let results = build(&graph, &inputs(&graph, literals));
    execute(&graph, &results, literals, false)
}

/// An f32 literal.
pub fn f(shape: &[usize], values: &[f64]) -> Literal {
    Literal::from_f64(Type::new(DType::F32, shape), values)
}

/// An integer literal.
pub fn i(dtype: DType, shape: &[usize], values: &[i64]) -> Literal {
    Literal::from_i64(Type::new(dtype, shape), values)
}

/// Checks the first result of a function of float or integer literals.
#[track_caller]
pub fn gives(literals: &[Literal], build: impl Fn(&Graph, &[Tensor]) -> Tensor, shape: &[usize], expected: &[f64]) {
    let y = evaluate(literals, |g, x| vec![build(g, x)]).swap_remove(0);
    assert_eq!(y.shape().dims(), shape);
    let values = y.to_literal().to_f64();
    let same = values.len() == expected.len() && values.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "{values:?} instead of {expected:?}");
}

/// Checks that building fails with a message that holds these words.
#[track_caller]
pub fn refuses(words: &str, literals: &[Literal], build: impl Fn(&Graph, &[Tensor]) -> Tensor) {
    let graph = Graph::new();
    let y = build(&graph, &inputs(&graph, literals));
    let problems = graph.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].to_string().contains(words), "'{}' does not say '{words}'", problems[0]);
    assert!(y.value().is_none());
}

/// The cotangents of `sources` where results have these cotangents.
pub fn gradient(graph: &Graph, results: &[(Tensor, Tensor)], sources: &[Tensor]) -> Vec<Tensor> {
    let mut cotangents: HashMap<ValueId, Tensor> = HashMap::new();
    let add = |all: &mut HashMap<ValueId, Tensor>, value: ValueId, more: Tensor| {
        let sum = all.remove(&value).map_or(more.clone(), |known| &known + &more);
        all.insert(value, sum);
    };
    let before = graph.problems();
    assert!(before.is_empty(), "{before:?}");
    for (y, c) in results {
        add(&mut cotangents, y.value().expect("it was built"), c.clone());
    }
    for node in graph.inspect(|f| f.nodes.clone()).iter().rev() {
        let of_results: Vec<_> = node.results.iter().map(|v| cotangents.get(v).cloned()).collect();
        if of_results.iter().all(Option::is_none) || matches!(node.op, Op::Constant(_)) {
            continue;
        }
        let rule = match node.op.definition().derivative {
            Derivative::Rule(rule) => rule,
            Derivative::Zero => continue,
            _ => panic!("{} has no rule", node.op.name()),
        };
        let tensors = |ids: &[ValueId]| ids.iter().map(|&v| graph.tensor(v)).collect::<Vec<_>>();
        let operands = tensors(&node.operands);
        let wanted: Vec<bool> = operands.iter().map(|t| t.dtype().is_float()).collect();
        let vjp = Vjp {
            graph,
            op: &node.op,
            attributes: &Attributes::new(),
            operands: &operands,
            results: &tensors(&node.results),
            cotangents: &of_results,
            wanted: &wanted,
        };
        let found = rule(&vjp);
        assert_eq!(found.len(), operands.len(), "{}: one cotangent per operand", node.op.name());
        for ((operand, cotangent), wanted) in operands.iter().zip(found).zip(wanted) {
            if let Some(cotangent) = cotangent.filter(|_| wanted) {
                assert_eq!(cotangent.ty(), operand.ty(), "{}: a cotangent has its operand's type", node.op.name());
                add(&mut cotangents, operand.value().expect("it was built"), cotangent);
            }
        }
    }
    let problems = graph.problems();
    assert!(problems.is_empty(), "{problems:?}");
    let found = |t: &Tensor| cotangents.get(&t.value()?).cloned();
    sources.iter().map(|t| found(t).unwrap_or_else(|| t.like(0.0))).collect()
}
