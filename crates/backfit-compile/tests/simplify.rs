//! Passes keep every bit: each rule of the simplification table, folding, merging, dead code and layout, on random
//! values with NaN, infinities, signed zeros and subnormal numbers.

mod proofs;

use backfit_compile::passes::simplify::{RULES, Rule, Simpler};
use backfit_compile::passes::{cse, fold, layout, simplify};
use backfit_compile::pipeline::{Options, lower};
use backfit_ir::op::{Binary, Monoid, Unary};
use backfit_ir::rewrite::{Rewriter, dead_code};
use backfit_ir::{DType, FuncId, Function, Graph, Literal, Module, Op, Tensor, Type};
use proofs::rules::PROOFS;
use proofs::{function, same_bits};

/// The function after one rule alone, and how often it applied.
fn with_rule(rule: &Rule, f: &Function) -> (Function, usize) {
    let mut rewriter = Rewriter::new(f);
    let mut applied = 0;
    for node in &f.nodes {
        match (rule.apply)(f, node) {
            Some(Simpler::Value(value)) => rewriter.forward(node.results[0], value),
            Some(Simpler::Node(op, operands)) => {
                let operands = rewriter.values(&operands);
                rewriter.replace_node(node, op, operands);
            }
            None => {
                rewriter.copy_node(node);
                continue;
            }
        }
        applied += 1;
    }
    (rewriter.finish(), applied)
}

#[test]
fn every_rule_keeps_all_bits() {
    for rule in RULES {
        let proofs: Vec<_> = PROOFS.iter().filter(|p| p.rule == rule.name).collect();
        assert!(!proofs.is_empty(), "'{}' has no proof", rule.name);
        for (proof, dtype) in
            proofs.into_iter().flat_map(|p| p.dtypes.iter().flat_map(|l| l.iter()).map(move |d| (p, *d)))
        {
            for (index, build) in proof.graphs.iter().enumerate() {
                let what = format!("{}, graph {index}, {dtype}", rule.name);
                let before = function(*build, dtype);
                let (after, applied) = with_rule(rule, &before);
                assert!(applied >= before.results.len(), "{what}: applied {applied} times");
                same_bits(&before, &after, &what);
                let (all, counts) = simplify::run(&before);
                assert!(counts.iter().any(|(name, _)| *name == rule.name), "{what}: others come before it: {counts:?}");
                same_bits(&before, &all, &what);
            }
        }
    }
}

#[test]
fn every_proof_is_of_a_rule() {
    for proof in PROOFS {
        assert!(RULES.iter().any(|rule| rule.name == proof.rule), "there is no rule '{}'", proof.rule);
    }
}

/// Near misses: nothing may apply to these.
#[test]
fn rules_leave_alone_what_differs_in_a_bit() {
    let near: &[proofs::Build] = &[
        |g, d| vec![&g.input("x", d, [3]) + 0.0],
        |g, d| vec![g.input("x", d, [3]) - -0.0],
        |g, d| vec![g.input("x", d, [3]) * -1.0],
        |g, d| vec![1.0 / g.input("x", d, [3])],
        |g, d| vec![0.0 - g.input("x", d, [3])],
        |g, d| vec![g.input("x", d, [3, 1]).sum(&[1])],
        |g, d| vec![g.input("x", d, [2, 3]).reverse(&[0]).reverse(&[1])],
        |g, d| vec![g.input("x", d, [2, 3]).transpose(&[1, 0]).reshape([2, 3])],
        |g, d| vec![g.input("x", d, [4]).slice(&[0], &[4], &[2])],
        |g, d| vec![g.input("x", d, [4]).pad(&[1], &[-1], &[0], 0.0)],
        |g, d| vec![g.input("x", d, [3]).cast(DType::F64).cast(d)],
        |g, d| vec![g.push1(Op::Broadcast { shape: [3, 3].into(), axes: vec![1] }, &[&g.input("x", d, [3])])],
    ];
    for (index, build) in near.iter().enumerate() {
        let f = function(*build, DType::F32);
        let (after, counts) = simplify::run(&f);
        // Subtracting −0 adds nothing that a rule may know of.
        assert!(counts.is_empty(), "graph {index}: {counts:?}");
        same_bits(&f, &after, "a near miss");
    }
}

#[test]
fn numbers_that_a_float_cannot_tell_from_all_bits_are_not_neutral() {
    let build: proofs::Build = |g, d| {
        let nearly = Literal::from_i64(Type::new(d, [3]), &[-2; 3]);
        vec![g.push1(Op::Binary(Binary::And), &[&g.input("x", d, [3]), &g.constant(nearly)])]
    };
    for dtype in [DType::U64, DType::I64, DType::U8] {
        let f = function(build, dtype);
        let (after, counts) = simplify::run(&f);
        assert!(counts.is_empty(), "{dtype}: {counts:?}");
        same_bits(&f, &after, "all bits but one");
    }
}

/// A graph of constants with every operator that is folded.
fn constants(g: &Graph, dtype: DType) -> Vec<Tensor> {
    let ty = Type::new(dtype, [2, 5]);
    let (a, b) = (g.constant(proofs::values(&ty, 1)), g.constant(proofs::values(&ty, 2)));
    let unary = [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Sqrt, Unary::Reciprocal, Unary::Floor, Unary::RoundEven];
    let binary = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem, Binary::Maximum, Binary::Minimum];
    let mut all: Vec<Tensor> = unary.map(|op| g.push1(Op::Unary(op), &[&a])).into();
    all.extend(binary.map(|op| g.push1(Op::Binary(op), &[&a, &b])));
    let less = a.lt(&b);
    all.extend([less.select(&a, &b), a.clamp(&b, &a), a.cast(DType::I32), a.reduce_precision(5, 6), less]);
    all.extend([a.reshape([10]), a.transpose(&[1, 0]), a.slice(&[0, 1], &[2, 5], &[1, 2]), a.reverse(&[1])]);
    all.extend([a.pad(&[1, 0], &[0, -1], &[0, 1], 2.0), g.concatenate(&[&a, &b], 0)]);
    all
}

#[test]
fn folded_constants_have_the_bits_that_would_be_computed() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let f = function(constants, dtype);
        for flush in [false, true] {
            let (folded, count) = fold::run(&f, flush);
            assert_eq!(count, f.results.len(), "{dtype}");
            assert!(dead_code(&folded).nodes.iter().all(|n| matches!(n.op, Op::Constant(_))), "{dtype}");
            assert_eq!(proofs::evaluate(&f, 0, flush), proofs::evaluate(&folded, 0, flush), "{dtype}, flush {flush}");
        }
    }
}

#[test]
fn sums_products_and_transcendental_functions_are_not_folded() {
    let f = function(
        |g, d| {
            let x = g.constant(proofs::values(&Type::new(d, [4, 4]), 3));
            vec![x.exp(), x.sum_all(), x.matmul(&x), g.push1(Op::Binary(Binary::Pow), &[&x, &x]), x.cumsum(0)]
        },
        DType::F32,
    );
    assert_eq!(fold::run(&f, true).1, 0);
}

#[test]
fn equal_nodes_are_merged_and_keep_their_bits() {
    let build: proofs::Build = |g, d| {
        let x = g.input("x", d, [3, 4]);
        let side = || (&x.exp() + &x.like(2.0)).sum(&[1]);
        vec![side(), &side() * &side(), x.transpose(&[1, 0]), x.transpose(&[1, 0]).exp()]
    };
    let f = function(build, DType::F32);
    let (merged, count) = cse::run(&f);
    let merged = dead_code(&merged);
    assert_eq!((count, merged.nodes.iter().filter(|n| n.op.name() == "exp").count()), (11, 2));
    same_bits(&f, &merged, "merging");
}

#[test]
fn constants_of_other_bits_are_not_merged() {
    let build: proofs::Build = |g, d| {
        let x = g.input("x", d, [3]);
        let number = |v: f64| g.constant(Literal::from_f64(Type::new(d, [3]), &[v; 3]));
        vec![&x / &number(0.0), &x / &number(-0.0), &x / &number(f64::NAN)]
    };
    let f = function(build, DType::F32);
    assert_eq!(cse::run(&f).1, 0);
}

#[test]
fn nothing_is_merged_across_a_barrier() {
    let build: proofs::Build = |g, d| {
        let x = g.input("x", d, [3]);
        let behind = g.push(Op::Barrier, &[&x]).remove(0);
        let again = g.push(Op::Barrier, &[&x]).remove(0);
        vec![x.exp(), behind.exp(), again.exp()]
    };
    let f = function(build, DType::F32);
    let (merged, count) = cse::run(&f);
    assert_eq!((count, dead_code(&merged).nodes.len()), (0, 5));
    let module = Module { functions: vec![f.clone()] };
    let lowered = lower(&module, &[FuncId(0)], &Options::default()).unwrap();
    assert_eq!(lowered.module.functions[0].nodes.len(), 5, "{}", lowered.module);
    same_bits(&f, &lowered.module.functions[0], "lowering");
}

#[test]
fn transposes_disappear_into_products_and_keep_all_bits() {
    let graphs: &[(usize, proofs::Build)] = &[
        (1, |g, d| vec![g.input("a", d, [4, 3]).transpose(&[1, 0]).matmul(&g.input("b", d, [4, 5]))]),
        (1, |g, d| vec![g.input("a", d, [3, 4]).matmul(&g.input("b", d, [4, 5])).transpose(&[1, 0])]),
        (2, |g, d| {
            let (a, b) = (g.input("a", d, [4, 3]), g.input("b", d, [5, 4]));
            vec![a.transpose(&[1, 0]).matmul(&b.transpose(&[1, 0])).transpose(&[1, 0])]
        }),
        (1, |g, d| {
            let (a, b) = (g.input("a", d, [2, 4, 3]), g.input("b", d, [2, 4, 5]));
            vec![a.transpose(&[0, 2, 1]).dot_general(&b, &[(0, 0)], &[(2, 1)])]
        }),
        // The free axes are exchanged: this transpose must stay.
        (0, |g, d| {
            let (a, b) = (g.input("a", d, [2, 3, 4]), g.input("b", d, [4, 5]));
            vec![a.transpose(&[1, 0, 2]).dot_general(&b, &[], &[(2, 0)])]
        }),
        (0, |g, d| {
            vec![g.input("a", d, [2, 3, 4]).dot_general(&g.input("b", d, [4, 5]), &[], &[(2, 0)]).transpose(&[1, 0, 2])]
        }),
    ];
    for (index, (least, build)) in graphs.iter().enumerate() {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32] {
            let f = function(*build, dtype);
            let (mut current, mut total) = (f.clone(), 0);
            loop {
                let (next, folded) = layout::run(&current);
                (current, total) = (next, total + folded);
                if folded == 0 {
                    break;
                }
            }
            assert!(if *least == 0 { total == 0 } else { total >= *least }, "graph {index}: {total} folded");
            same_bits(&f, &current, &format!("graph {index}, {dtype}"));
        }
    }
}

#[test]
fn the_whole_pipeline_keeps_all_bits() {
    let build: proofs::Build = |g, d| {
        let x = g.input("x", d, [3, 4]);
        let y = (&x * 1.0).transpose(&[1, 0]).reshape([4, 1, 3]).reshape([4, 3]).transpose(&[1, 0]);
        let z = y.reduce(Monoid::Max, &[]) - 0.0;
        vec![&z + &x, z.exp(), y.sum(&[1]), (&x.like(2.0) * &x.like(3.0)) * z]
    };
    for dtype in [DType::F32, DType::F64] {
        let f = function(build, dtype);
        let lowered = lower(&Module { functions: vec![f.clone()] }, &[FuncId(0)], &Options::default()).unwrap();
        let after = &lowered.module.functions[0];
        assert!(after.nodes.len() < f.nodes.len());
        same_bits(&f, after, "lowering");
    }
}
