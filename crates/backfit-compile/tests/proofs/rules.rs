//! Graphs for every rule of the simplification table.

use super::Build;
use backfit_ir::op::{Binary, Monoid, Unary};
use backfit_ir::ops::definition::{BOOLS, FLOATS, INTEGERS};
use backfit_ir::{DType, Graph, Literal, Op, Tensor, Type};

/// A rule, the dtypes for which it is proved, and graphs to which it applies.
pub struct Proof {
    pub rule: &'static str,
    pub dtypes: &'static [&'static [DType]],
    pub graphs: &'static [Build],
}

const ALL: &[&[DType]] = &[FLOATS, INTEGERS, BOOLS];
const NUMBERS: &[&[DType]] = &[FLOATS, INTEGERS];
const EXACT: &[&[DType]] = &[INTEGERS, BOOLS];

fn x(g: &Graph, dtype: DType) -> Tensor {
    // The same parameter, however often it is asked for.
    match g.inspect(|f| f.param_index("x").map(|i| f.params[i].value)) {
        Some(value) => g.tensor(value),
        None => g.input("x", dtype, [3, 4]),
    }
}

fn units(g: &Graph, dtype: DType) -> Tensor {
    g.input("x", dtype, [3, 1, 4, 1])
}

fn unary(op: Unary, t: &Tensor) -> Tensor {
    t.graph().push1(Op::Unary(op), &[t])
}

fn binary(op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
    a.graph().push1(Op::Binary(op), &[a, b])
}

fn broadcast(t: &Tensor, shape: &[usize], axes: &[usize]) -> Tensor {
    t.graph().push1(Op::Broadcast { shape: shape.into(), axes: axes.into() }, &[t])
}

fn reduce(t: &Tensor, monoid: Monoid, axes: &[usize]) -> Tensor {
    t.graph().push1(Op::Reduce { monoid, axes: axes.into(), accumulator: t.dtype().accumulator() }, &[t])
}

/// A number everywhere: broadcast, as a whole constant, and behind a reshape.
fn spread(x: &Tensor, value: f64) -> [Tensor; 3] {
    let g = x.graph();
    let whole = g.constant(Literal::from_f64(x.ty().clone(), &vec![value; x.shape().elements()]));
    let reshaped = broadcast(&g.scalar(x.dtype(), value), &[12], &[]).reshape([3, 4]);
    [x.like(value), whole, reshaped]
}

fn all_ones(x: &Tensor) -> Tensor {
    let ones = Literal::from_i64(Type::new(x.dtype(), []), &[-1]);
    broadcast(&x.graph().constant(ones), &[3, 4], &[])
}

fn each(left: bool, right: bool, op: Binary, value: f64) -> impl Fn(&Tensor) -> Vec<Tensor> {
    move |x| {
        let numbers = if x.dtype().is_float() { spread(x, value).to_vec() } else { integers(x, value) };
        let rights = numbers.iter().filter(|_| right).map(|n| binary(op, x, n));
        rights.chain(numbers.iter().filter(|_| left).map(|n| binary(op, n, x))).collect()
    }
}

fn integers(x: &Tensor, value: f64) -> Vec<Tensor> {
    vec![x.like(value), broadcast(&x.graph().scalar(x.dtype(), value), &[12], &[]).reshape([3, 4])]
}

pub const PROOFS: &[Proof] = &[
    Proof {
        rule: "reshape(x) = x, same shape",
        dtypes: ALL,
        graphs: &[|g, d| vec![g.push1(Op::Reshape([3, 4].into()), &[&x(g, d)])]],
    },
    Proof {
        rule: "reshape(reshape(x)) = reshape(x)",
        dtypes: ALL,
        graphs: &[|g, d| vec![x(g, d).reshape([12]).reshape([2, 6])]],
    },
    Proof {
        rule: "transpose(x) = x, identity",
        dtypes: ALL,
        graphs: &[|g, d| vec![g.push1(Op::Transpose(vec![0, 1]), &[&x(g, d)])]],
    },
    Proof {
        rule: "transpose(transpose(x)) = transpose(x)",
        dtypes: ALL,
        graphs: &[
            |g, d| vec![x(g, d).transpose(&[1, 0]).transpose(&[1, 0])],
            |g, d| vec![g.input("x", d, [2, 3, 4]).transpose(&[2, 0, 1]).transpose(&[0, 2, 1])],
        ],
    },
    Proof {
        rule: "transpose(x) = reshape(x), only unit axes move",
        dtypes: ALL,
        graphs: &[|g, d| vec![units(g, d).transpose(&[1, 0, 3, 2])]],
    },
    Proof {
        rule: "broadcast(x) = x, same shape",
        dtypes: ALL,
        graphs: &[|g, d| vec![broadcast(&x(g, d), &[3, 4], &[0, 1])]],
    },
    Proof {
        rule: "broadcast(x) = reshape(x), same elements",
        dtypes: ALL,
        graphs: &[|g, d| vec![broadcast(&x(g, d), &[1, 3, 1, 4], &[1, 3])]],
    },
    Proof {
        rule: "broadcast(broadcast(x)) = broadcast(x)",
        dtypes: ALL,
        graphs: &[|g, d| vec![broadcast(&broadcast(&g.input("x", d, [3, 1]), &[3, 4], &[0, 1]), &[2, 3, 4], &[1, 2])]],
    },
    Proof {
        rule: "broadcast(reshape(x)) = broadcast(x), reshape adds unit axes",
        dtypes: ALL,
        graphs: &[
            |g, d| vec![broadcast(&x(g, d).reshape([3, 1, 4]), &[3, 5, 4], &[0, 1, 2])],
            |g, d| vec![broadcast(&g.input("x", d, [1, 3]).reshape([1, 1, 3]), &[2, 5, 3], &[0, 1, 2])],
            |g, d| vec![broadcast(&g.input("x", d, [0usize; 0]).reshape([1, 1]), &[2, 5], &[0, 1])],
            |g, d| vec![broadcast(&g.input("x", d, [1]).reshape([1, 1, 1]), &[2, 5, 3], &[0, 1, 2])],
        ],
    },
    Proof {
        rule: "slice(x) = x, whole",
        dtypes: ALL,
        graphs: &[
            |g, d| vec![x(g, d).slice(&[0, 0], &[3, 4], &[1, 1])],
            |g, d| vec![units(g, d).slice(&[0; 4], &[3, 1, 4, 1], &[1, 1, 1, 2])],
        ],
    },
    Proof {
        rule: "pad(x) = x, nothing added",
        dtypes: ALL,
        graphs: &[|g, d| vec![x(g, d).pad_with(&[0, 0], &[0, 0], &[0, 0], &g.input("value", d, [0usize; 0]))]],
    },
    Proof { rule: "concatenate(x) = x", dtypes: ALL, graphs: &[|g, d| vec![g.concatenate(&[&x(g, d)], 1)]] },
    Proof {
        rule: "reduce(x) = x, no axes",
        dtypes: NUMBERS,
        graphs: &[
            |g, d| vec![reduce(&x(g, d), Monoid::Max, &[])],
            |g, d| vec![reduce(&x(g, d), Monoid::Product, &[])],
            |g, d| vec![reduce(&x(g, d), Monoid::Min, &[])],
        ],
    },
    Proof {
        rule: "reduce(x) = x, no axes",
        dtypes: EXACT,
        graphs: &[|g, d| vec![reduce(&x(g, d), Monoid::And, &[]), reduce(&x(g, d), Monoid::Or, &[])]],
    },
    Proof {
        rule: "reduce(x) = reshape(x), unit axes",
        dtypes: NUMBERS,
        graphs: &[
            |g, d| vec![reduce(&units(g, d), Monoid::Max, &[1])],
            |g, d| vec![reduce(&units(g, d), Monoid::Product, &[1, 3])],
            |g, d| vec![reduce(&units(g, d), Monoid::Min, &[3])],
        ],
    },
    Proof {
        rule: "reduce(x) = reshape(x), unit axes",
        dtypes: &[INTEGERS],
        graphs: &[|g, d| vec![reduce(&units(g, d), Monoid::Sum, &[1])]],
    },
    Proof { rule: "cast(x) = x, same dtype", dtypes: ALL, graphs: &[|g, d| vec![g.push1(Op::Cast(d), &[&x(g, d)])]] },
    Proof {
        rule: "neg(neg(x)) = x, not(not(x)) = x, reverse(reverse(x)) = x",
        dtypes: NUMBERS,
        graphs: &[
            |g, d| vec![unary(Unary::Neg, &unary(Unary::Neg, &x(g, d)))],
            |g, d| vec![x(g, d).reverse(&[0, 1]).reverse(&[0, 1])],
        ],
    },
    Proof {
        rule: "neg(neg(x)) = x, not(not(x)) = x, reverse(reverse(x)) = x",
        dtypes: EXACT,
        graphs: &[|g, d| vec![unary(Unary::Not, &unary(Unary::Not, &x(g, d)))]],
    },
    Proof {
        rule: "x · 1 = x, x / 1 = x",
        dtypes: NUMBERS,
        graphs: &[
            |g, d| each(true, true, Binary::Mul, 1.0)(&x(g, d)),
            |g, d| each(false, true, Binary::Div, 1.0)(&x(g, d)),
        ],
    },
    Proof {
        rule: "x − 0 = x, x + (−0) = x",
        dtypes: NUMBERS,
        graphs: &[
            |g, d| each(false, true, Binary::Sub, 0.0)(&x(g, d)),
            |g, d| each(true, true, Binary::Add, -0.0)(&x(g, d)),
        ],
    },
    Proof {
        rule: "select(c, x, x) = x",
        dtypes: ALL,
        graphs: &[|g, d| {
            vec![g.input("c", DType::Bool, [3, 4]).select(
                &g.parameter("x", Type::new(d, [3, 4]), backfit_ir::Role::Input, None),
                &g.tensor(backfit_ir::ValueId(1)),
            )]
        }],
    },
    Proof {
        rule: "select(true, x, y) = x, select(false, x, y) = y",
        dtypes: ALL,
        graphs: &[|g, d| {
            let (x, y) = (x(g, d), g.input("y", d, [3, 4]));
            let condition = |value| g.full(Type::new(DType::Bool, [3, 4]), value);
            vec![condition(1.0).select(&x, &y), condition(0.0).select(&x, &y)]
        }],
    },
    Proof {
        rule: "maximum(x, x) = x, minimum(x, x) = x",
        dtypes: NUMBERS,
        graphs: &[|g, d| {
            let x = x(g, d);
            vec![binary(Binary::Maximum, &x, &x), binary(Binary::Minimum, &x, &x)]
        }],
    },
    Proof {
        rule: "and(x, true) = x, or(x, false) = x",
        dtypes: EXACT,
        graphs: &[|g, d| {
            let x = x(g, d);
            let (ones, zeros) = (all_ones(&x), x.like(0.0));
            vec![
                binary(Binary::And, &x, &ones),
                binary(Binary::And, &ones, &x),
                binary(Binary::Or, &x, &zeros),
                binary(Binary::Or, &zeros, &x),
            ]
        }],
    },
];
