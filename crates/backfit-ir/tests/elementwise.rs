//! The elementwise primitives against IEEE 754, Rust's own integers, and their own type rules.

use backfit_ir::dtype::Class;
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::op::{Binary, Unary};
use backfit_ir::ops::definition::{INTEGERS, Kind};
use backfit_ir::ops::elementwise::samples::{EXTREMES, pairs};
use backfit_ir::ops::{OpDef, REGISTRY};
use backfit_ir::{DType, Graph, Literal, Op, Place, Role, Tensor, Type};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;
const TINY: f64 = f64::from_bits(1);
const DOUBLE: Options = Options { double: true, flush_subnormals: false };

type UnaryFn = fn(&Tensor) -> Tensor;
type BinaryFn = fn(&Tensor, &Tensor) -> Tensor;

/// Builds a function of these inputs and runs it.
fn evaluate(inputs: &[Literal], options: Options, build: impl Fn(&Graph, &[Tensor]) -> Vec<Tensor>) -> Vec<Array> {
    let g = Graph::new();
    let named = inputs.iter().enumerate();
    let tensors: Vec<Tensor> =
        named.map(|(i, x)| g.parameter(&format!("x{i}"), x.ty().clone(), Role::Input, None)).collect();
    for (i, result) in build(&g, &tensors).iter().enumerate() {
        g.result(&format!("y{i}"), result);
    }
    let module = g.finish().unwrap_or_else(|e| panic!("{e}"));
    let arguments: Vec<Array> = inputs.iter().map(Array::from_literal).collect();
    run(&module, backfit_ir::FuncId(module.functions.len() as u32 - 1), &arguments, options).unwrap()
}

fn literal(dtype: DType, values: &[f64]) -> Literal {
    Literal::from_f64(Type::new(dtype, [values.len()]), values)
}

fn floats1(dtype: DType, op: UnaryFn, x: &[f64]) -> Vec<f64> {
    evaluate(&[literal(dtype, x)], Options::default(), |_, x| vec![op(&x[0])])[0].to_literal().to_f64()
}

fn floats2(dtype: DType, op: BinaryFn, x: &[f64], y: &[f64]) -> Vec<f64> {
    evaluate(&[literal(dtype, x), literal(dtype, y)], Options::default(), |_, x| vec![op(&x[0], &x[1])])[0]
        .to_literal()
        .to_f64()
}

/// Equal, with the sign of zeros; NaN equals NaN; inexact where a tolerance is given.
#[track_caller]
fn assert_same(name: &str, at: &dyn std::fmt::Debug, found: f64, expected: f64, relative: f64) {
    let same = if expected.is_nan() {
        found.is_nan()
    } else if expected == 0.0 || expected.is_infinite() || relative == 0.0 {
        found == expected && found.is_sign_negative() == expected.is_sign_negative()
    } else {
        (found - expected).abs() <= relative * expected.abs()
    };
    assert!(same, "{name} at {at:?}: {found:?} instead of {expected:?}");
}

fn check1(name: &str, op: UnaryFn, table: &[(f64, f64)]) {
    let (x, y): (Vec<f64>, Vec<f64>) = table.iter().copied().unzip();
    for (i, found) in floats1(DType::F64, op, &x).into_iter().enumerate() {
        assert_same(name, &x[i], found, y[i], 1e-15);
    }
}

fn check2(name: &str, op: BinaryFn, table: &[(f64, f64, f64)]) {
    let column = |f: fn(&(f64, f64, f64)) -> f64| table.iter().map(f).collect::<Vec<f64>>();
    let (a, b, y) = (column(|r| r.0), column(|r| r.1), column(|r| r.2));
    for (i, found) in floats2(DType::F64, op, &a, &b).into_iter().enumerate() {
        assert_same(name, &(a[i], b[i]), found, y[i], 1e-15);
    }
}

fn is_elementwise(name: &str) -> bool {
    let others = ["compare", "select", "clamp", "cast", "bitcast", "reduce_precision"];
    let parse = |def: &&OpDef| match &def.kind {
        Kind::Primitive(p) => (p.parse)(&Default::default()).ok(),
        Kind::Composite(_) => None,
    };
    let def = REGISTRY.iter().copied().find(|def| def.name == name).expect("it is in the registry");
    others.contains(&name) || matches!(parse(&def), Some(Op::Unary(_) | Op::Binary(_)))
}

/// A sample's inputs in a dtype: f64 inputs become that float, i64 inputs that integer or bool.
fn converted(input: &Literal, dtype: DType) -> Literal {
    let ty = input.ty().with_dtype(dtype);
    match input.ty().dtype {
        DType::F64 if dtype.is_float() => Literal::from_f64(ty, &input.to_f64()),
        DType::I64 if !dtype.is_float() => Literal::from_i64(ty, &input.to_i64()),
        _ => input.clone(),
    }
}

#[test]
fn every_unary_and_binary_operator_is_in_the_registry_under_its_own_name() {
    use Binary::*;
    use Unary::*;
    let unary = [
        Neg, Abs, Sign, Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Reciprocal, Sin, Cos, Tan, Tanh, Erf, Floor, Ceil,
        RoundEven, IsFinite, Not,
    ];
    let binary = [Add, Sub, Mul, Div, Rem, Pow, Atan2, Maximum, Minimum, And, Or, Xor, ShiftLeft, ShiftRight];
    for op in unary.map(Op::Unary).into_iter().chain(binary.map(Op::Binary)) {
        assert_eq!((op.primitive().parse)(&(op.primitive().attributes)(&op)), Ok(op.clone()));
    }
}

#[test]
fn attributes_say_everything_about_an_operator() {
    let ops = [
        Op::Compare(backfit_ir::op::Comparison::Ge),
        Op::Select,
        Op::Clamp,
        Op::Cast(DType::BF16),
        Op::Bitcast(DType::U32),
        Op::ReducePrecision { exponent: 5, mantissa: 2 },
    ];
    for op in ops {
        assert_eq!((op.primitive().parse)(&(op.primitive().attributes)(&op)), Ok(op.clone()));
    }
}

#[test]
fn every_sample_evaluates_to_its_type_in_every_dtype() {
    let mut seen = 0;
    for def in REGISTRY.iter().filter(|def| is_elementwise(def.name)) {
        for sample in (def.samples)() {
            for &dtype in sample.dtypes {
                let inputs: Vec<Literal> = sample.inputs.iter().map(|x| converted(x, dtype)).collect();
                for options in [Options::default(), DOUBLE] {
                    let mut types = Vec::new();
                    let g = Graph::new();
                    let x: Vec<Tensor> = (inputs.iter().enumerate())
                        .map(|(i, x)| g.parameter(&i.to_string(), x.ty().clone(), Role::Input, None))
                        .collect();
                    types.extend((sample.build)(&g, &x).iter().map(|y| y.ty().clone()));
                    let results = evaluate(&inputs, options, &sample.build);
                    let label = format!("{} {dtype}: {}", def.name, sample.label);
                    assert_eq!(results.iter().map(|y| y.ty.clone()).collect::<Vec<_>>(), types, "{label}");
                    for y in &results {
                        let stored = y.to_literal();
                        assert_eq!(stored.ty().shape.elements(), stored.to_f64().len(), "{label}");
                        if !y.ty.dtype.is_float() {
                            assert_eq!(stored.to_i64(), y.as_ints(), "{label}: integers are wrapped");
                        }
                    }
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 3000, "{seen}");
}

#[test]
fn unary_operators_keep_ieee_promises_at_special_values() {
    check1("neg", |x| -x, &[(0.0, -0.0), (-0.0, 0.0), (INF, -INF), (NAN, NAN), (TINY, -TINY)]);
    check1("abs", Tensor::abs, &[(-0.0, 0.0), (-INF, INF), (NAN, NAN), (-2.5, 2.5), (-TINY, TINY)]);
    check1("sign", Tensor::sign, &[(0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (-INF, -1.0), (INF, 1.0), (-TINY, -1.0)]);
    check1(
        "exp",
        Tensor::exp,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0)],
    );
    check1("expm1", Tensor::expm1, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (1e-20, 1e-20)]);
    check1(
        "log",
        Tensor::log,
        &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-TINY, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    );
    check1("log1p", Tensor::log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (1e-20, 1e-20)]);
    check1("sqrt", Tensor::sqrt, &[(0.0, 0.0), (-0.0, -0.0), (-TINY, NAN), (INF, INF), (-INF, NAN), (2.25, 1.5)]);
    check1("rsqrt", Tensor::rsqrt, &[(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (4.0, 0.5), (NAN, NAN)]);
    check1(
        "reciprocal",
        Tensor::reciprocal,
        &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN), (-4.0, -0.25)],
    );
    check1(
        "sin",
        Tensor::sin,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-20, 1e-20), (FRAC_PI_2, 1.0)],
    );
    check1("cos", Tensor::cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (PI, -1.0)]);
    check1("tan", Tensor::tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (FRAC_PI_4, 1.0)]);
    check1(
        "tanh",
        Tensor::tanh,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (1e-20, 1e-20), (40.0, 1.0)],
    );
    check1(
        "erf",
        Tensor::erf,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (10.0, 1.0), (1.0, 0.8427007929497149)],
    );
    check1(
        "floor",
        Tensor::floor,
        &[(-0.0, -0.0), (-0.5, -1.0), (0.5, 0.0), (-INF, -INF), (NAN, NAN), (1e300, 1e300), (2.0, 2.0)],
    );
    check1(
        "ceil",
        Tensor::ceil,
        &[(-0.0, -0.0), (-0.5, -0.0), (0.5, 1.0), (INF, INF), (NAN, NAN), (TINY, 1.0), (2.0, 2.0)],
    );
    check1(
        "round_even",
        Tensor::round_even,
        &[
            (0.5, 0.0),
            (-0.5, -0.0),
            (1.5, 2.0),
            (2.5, 2.0),
            (-2.5, -2.0),
            (3.5, 4.0),
            (0.49999999999999994, 0.0),
            (INF, INF),
            (NAN, NAN),
        ],
    );
}

#[test]
fn binary_operators_keep_ieee_promises_at_special_values() {
    check2(
        "add",
        |a, b| a + b,
        &[(INF, -INF, NAN), (-0.0, -0.0, -0.0), (0.0, -0.0, 0.0), (1e308, 1e308, INF), (NAN, 1.0, NAN)],
    );
    check2(
        "sub",
        |a, b| a - b,
        &[(INF, INF, NAN), (1.0, 1.0, 0.0), (-0.0, 0.0, -0.0), (0.0, 0.0, 0.0), (1.0, NAN, NAN)],
    );
    check2(
        "mul",
        |a, b| a * b,
        &[(0.0, INF, NAN), (-0.0, 1.0, -0.0), (-INF, -1.0, INF), (1e200, -1e200, -INF), (TINY, 0.5, 0.0)],
    );
    check2(
        "div",
        |a, b| a / b,
        &[(1.0, 0.0, INF), (1.0, -0.0, -INF), (0.0, 0.0, NAN), (INF, INF, NAN), (-1.0, INF, -0.0)],
    );
    check2(
        "rem",
        |a, b| a % b,
        &[
            (5.5, 2.0, 1.5),
            (-5.5, 2.0, -1.5),
            (5.5, -2.0, 1.5),
            (-5.5, -2.0, -1.5),
            (-4.0, 2.0, -0.0),
            (4.0, -2.0, 0.0),
            (1.0, 0.0, NAN),
            (INF, 1.0, NAN),
            (1.5, INF, 1.5),
            (-1.5, -INF, -1.5),
            (-0.0, 3.0, -0.0),
            (1.0, NAN, NAN),
        ],
    );
    check2(
        "pow",
        Tensor::pow,
        &[
            (NAN, 0.0, 1.0),
            (INF, -0.0, 1.0),
            (0.0, 0.0, 1.0),
            (1.0, NAN, 1.0),
            (1.0, INF, 1.0),
            (-1.0, INF, 1.0),
            (-1.0, -INF, 1.0),
            (-8.0, 1.0 / 3.0, NAN),
            (-2.0, 3.0, -8.0),
            (-2.0, -2.0, 0.25),
            (0.0, -1.0, INF),
            (-0.0, -1.0, -INF),
            (-0.0, -2.0, INF),
            (-0.0, 3.0, -0.0),
            (-0.0, 0.5, 0.0),
            (0.5, INF, 0.0),
            (0.5, -INF, INF),
            (2.0, -INF, 0.0),
            (-INF, 3.0, -INF),
            (-INF, 2.0, INF),
            (-INF, -3.0, -0.0),
            (10.0, 400.0, INF),
            (10.0, -400.0, 0.0),
            (NAN, 1.0, NAN),
            (2.0, NAN, NAN),
        ],
    );
    check2(
        "atan2",
        Tensor::atan2,
        &[
            (0.0, 1.0, 0.0),
            (-0.0, 1.0, -0.0),
            (0.0, -1.0, PI),
            (-0.0, -1.0, -PI),
            (0.0, 0.0, 0.0),
            (-0.0, 0.0, -0.0),
            (0.0, -0.0, PI),
            (-0.0, -0.0, -PI),
            (1.0, 0.0, FRAC_PI_2),
            (-1.0, -0.0, -FRAC_PI_2),
            (1.0, INF, 0.0),
            (-1.0, INF, -0.0),
            (1.0, -INF, PI),
            (-1.0, -INF, -PI),
            (INF, 1.0, FRAC_PI_2),
            (INF, INF, FRAC_PI_4),
            (-INF, -INF, -3.0 * FRAC_PI_4),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (1.0, 1.0, FRAC_PI_4),
        ],
    );
    check2(
        "maximum",
        Tensor::maximum,
        &[
            (0.0, -0.0, 0.0),
            (-0.0, 0.0, 0.0),
            (-0.0, -0.0, -0.0),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (INF, NAN, NAN),
            (-INF, 1.0, 1.0),
        ],
    );
    check2(
        "minimum",
        Tensor::minimum,
        &[
            (0.0, -0.0, -0.0),
            (-0.0, 0.0, -0.0),
            (0.0, 0.0, 0.0),
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (-INF, NAN, NAN),
            (INF, 1.0, 1.0),
        ],
    );
}

#[test]
fn comparisons_with_nan_are_false_but_for_ne_and_zeros_are_equal() {
    let table: &[(&str, BinaryFn, [f64; 7])] = &[
        ("eq", Tensor::eq, [0., 0., 0., 1., 0., 0., 1.]),
        ("ne", Tensor::ne, [1., 1., 1., 0., 1., 1., 0.]),
        ("lt", Tensor::lt, [0., 0., 0., 0., 1., 0., 0.]),
        ("le", Tensor::le, [0., 0., 0., 1., 1., 0., 1.]),
        ("gt", Tensor::gt, [0., 0., 0., 0., 0., 1., 0.]),
        ("ge", Tensor::ge, [0., 0., 0., 1., 0., 1., 1.]),
    ];
    let a = [NAN, NAN, 1.0, -0.0, 1.0, INF, INF];
    let b = [NAN, 1.0, NAN, 0.0, 2.0, 1.0, INF];
    for (name, op, expected) in table {
        assert_eq!(floats2(DType::F64, *op, &a, &b), expected, "{name}");
    }
    assert_eq!(floats1(DType::F32, Tensor::is_finite, &[NAN, INF, -INF, 0.0, 3e38, 4e38]), [0., 0., 0., 1., 1., 0.]);
}

/// A function of every pair of extremes in a native type against the same on Rust's integers.
macro_rules! native {
    ($t:ty, $dtype:expr, $op:expr, $expected:expr) => {{
        let expected = $expected;
        let inputs = pairs(converted(&Literal::from_i64(Type::new(DType::I64, [EXTREMES.len()]), EXTREMES), $dtype));
        let op: BinaryFn = $op;
        let found = evaluate(&inputs, Options::default(), |_, x| vec![op(&x[0], &x[1])])[0].to_literal();
        let found: Vec<$t> =
            found.bytes().chunks(size_of::<$t>()).map(|c| <$t>::from_le_bytes(c.try_into().unwrap())).collect();
        let values: Vec<$t> = EXTREMES.iter().map(|&v| v as $t).collect();
        assert_eq!(found.len(), values.len() * values.len());
        let pairs = values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b)));
        for ((a, b), found) in pairs.zip(found) {
            assert_eq!(found, expected(a, b), "{a} and {b} as {}", stringify!($t));
        }
    }};
}

/// The same on every integer type; `$t` names the type inside.
macro_rules! natives {
    ($t:ident, $op:expr, $expected:expr) => {
        natives!(@ $t, $op, $expected; i64 I64, i32 I32, i16 I16, i8 I8, u64 U64, u32 U32, u16 U16, u8 U8)
    };
    (@ $t:ident, $op:expr, $expected:expr; $($native:ident $dtype:ident),*) => { $({
        type $t = $native;
        native!($native, DType::$dtype, $op, $expected);
    })* };
}

#[test]
fn integer_arithmetic_wraps_as_rust_wraps() {
    natives!(N, |a, b| a + b, |a: N, b: N| a.wrapping_add(b));
    natives!(N, |a, b| a - b, |a: N, b: N| a.wrapping_sub(b));
    natives!(N, |a, b| a * b, |a: N, b: N| a.wrapping_mul(b));
    natives!(N, |a, b| -a + b * 0.0, |a: N, _| a.wrapping_neg());
    natives!(N, |a, b| a.abs() + b * 0.0, |a: N, _| if a > 0 || N::MIN == 0 { a } else { a.wrapping_neg() });
    natives!(N, |a, b| a.sign() + b * 0.0, |a: N, _| if a > 0 {
        1
    } else if a == 0 {
        0
    } else {
        (0 as N).wrapping_sub(1)
    });
}

#[test]
fn integer_division_truncates_and_never_traps() {
    natives!(N, |a, b| a / b, |a: N, b: N| if b == 0 { !0 } else { a.wrapping_div(b) });
    natives!(N, |a, b| a % b, |a: N, b: N| if b == 0 { a } else { a.wrapping_rem(b) });
}

#[test]
fn integer_powers_wrap_and_negative_exponents_give_0_but_for_1_and_minus_1() {
    natives!(N, Tensor::pow, |a: N, b: N| {
        let minus_one = (0 as N).wrapping_sub(1);
        let slow = |n: N| {
            // aⁿ by the exponent's bits from the top, so that it is not the same algorithm.
            (0..N::BITS).rev().fold(1 as N, |y, bit| {
                let y = y.wrapping_mul(y);
                if n >> bit & 1 == 1 { y.wrapping_mul(a) } else { y }
            })
        };
        match (N::MIN != 0 && b < 1 && b != 0, a) {
            (false, _) => slow(b),
            (true, 1) => 1,
            (true, _) if a == minus_one => {
                if b & 1 == 0 {
                    1
                } else {
                    minus_one
                }
            }
            (true, _) => 0,
        }
    });
}

#[test]
fn bit_operators_and_shifts_do_what_rust_does_and_shifts_beyond_the_width_leave_nothing() {
    natives!(N, Tensor::and, |a: N, b: N| a & b);
    natives!(N, Tensor::or, |a: N, b: N| a | b);
    natives!(N, Tensor::xor, |a: N, b: N| a ^ b);
    natives!(N, |a, b| a.not().or(&b.and(&b.not())), |a: N, _| !a);
    let inside = |places: i128, bits: u32| (0..i128::from(bits)).contains(&places);
    natives!(N, Tensor::shift_left, |a: N, b: N| if inside(b as i128, N::BITS) { a << b } else { 0 });
    natives!(N, Tensor::shift_right, |a: N, b: N| {
        let fill = if a < 1 && a != 0 { !0 } else { 0 };
        if inside(b as i128, N::BITS) { a >> b } else { fill }
    });
}

#[test]
fn unsigned_integers_are_compared_as_unsigned() {
    natives!(N, Tensor::maximum, |a: N, b: N| a.max(b));
    natives!(N, Tensor::minimum, |a: N, b: N| a.min(b));
    natives!(N, |a, b| a.lt(b).cast(a.dtype()), |a: N, b: N| (a < b) as N);
    natives!(N, |a, b| a.le(b).cast(a.dtype()), |a: N, b: N| (a <= b) as N);
    natives!(N, |a, b| a.gt(b).cast(a.dtype()), |a: N, b: N| (a > b) as N);
    natives!(N, |a, b| a.ge(b).cast(a.dtype()), |a: N, b: N| (a >= b) as N);
    natives!(N, |a, b| a.eq(b).cast(a.dtype()), |a: N, b: N| (a == b) as N);
    natives!(N, |a, b| a.ne(b).cast(a.dtype()), |a: N, b: N| (a != b) as N);
    natives!(N, |a, b| a.clamp(b, &a.number(100.0)), |a: N, b: N| a.max(b).min(100));
}

#[test]
fn truth_values_obey_logic() {
    let bits = Literal::from_i64(Type::new(DType::Bool, [2]), &[0, 1]);
    let ops: [(BinaryFn, [i64; 4]); 6] = [
        (Tensor::and, [0, 0, 0, 1]),
        (Tensor::or, [0, 1, 1, 1]),
        (Tensor::xor, [0, 1, 1, 0]),
        (Tensor::lt, [0, 1, 0, 0]),
        (Tensor::eq, [1, 0, 0, 1]),
        (|a, b| a.and(b).not(), [1, 1, 1, 0]),
    ];
    for (op, expected) in ops {
        let found = evaluate(&pairs(bits.clone()), Options::default(), |_, x| vec![op(&x[0], &x[1])]);
        assert_eq!(found[0].as_ints(), expected);
    }
}

#[test]
fn casts_from_floats_truncate_and_saturate_as_rust_does() {
    let x =
        [NAN, INF, -INF, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, 255.5, -129.0, 1e5, 3e9, -3e9, 1e19, -1e19, 2e19];
    let cast = |dtype: DType| {
        let y = evaluate(&[literal(DType::F64, &x)], Options::default(), |_, x| vec![x[0].cast(dtype)]);
        y[0].as_ints().to_vec()
    };
    assert_eq!(cast(DType::I64), x.map(|v| v as i64));
    assert_eq!(cast(DType::I32), x.map(|v| i64::from(v as i32)));
    assert_eq!(cast(DType::I16), x.map(|v| i64::from(v as i16)));
    assert_eq!(cast(DType::I8), x.map(|v| i64::from(v as i8)));
    assert_eq!(cast(DType::U64), x.map(|v| v as u64 as i64));
    assert_eq!(cast(DType::U32), x.map(|v| i64::from(v as u32)));
    assert_eq!(cast(DType::U16), x.map(|v| i64::from(v as u16)));
    assert_eq!(cast(DType::U8), x.map(|v| i64::from(v as u8)));
    assert_eq!(cast(DType::Bool), x.map(|v| i64::from(v != 0.0)));
}

#[test]
fn casts_between_integers_wrap_and_to_bool_test_for_zero() {
    for &from in INTEGERS {
        let input = converted(&Literal::from_i64(Type::new(DType::I64, [EXTREMES.len()]), EXTREMES), from);
        for to in DType::COMPUTED.into_iter().filter(|to| !to.is_float()) {
            let found = evaluate(std::slice::from_ref(&input), Options::default(), |_, x| vec![x[0].cast(to)]);
            let expected: Vec<i64> = match to.class() {
                Class::Bool => input.to_i64().iter().map(|&v| i64::from(v != 0)).collect(),
                _ => Literal::from_i64(input.ty().with_dtype(to), &input.to_i64()).to_i64(),
            };
            assert_eq!(found[0].as_ints(), expected, "{from} to {to}");
        }
    }
}

#[test]
fn casts_from_64_bit_integers_to_floats_round_once() {
    // 2⁵³ + 2²⁹ + 1 lies just above the middle of two neighbouring f32, but rounds to the middle as f64.
    let x = [(1i64 << 53) + (1 << 29) + 1, -((1i64 << 53) + (1 << 29) + 1), i64::MAX, i64::MIN, (1 << 53) + 1, 7];
    let signed = Literal::from_i64(Type::new(DType::I64, [x.len()]), &x);
    let unsigned = Literal::from_i64(Type::new(DType::U64, [x.len()]), &x);
    let cast = |input: &Literal, dtype| {
        evaluate(std::slice::from_ref(input), Options::default(), |_, x| vec![x[0].cast(dtype)])[0].as_floats().to_vec()
    };
    assert_eq!(cast(&signed, DType::F32), x.map(|v| f64::from(v as f32)));
    assert_eq!(cast(&signed, DType::F64), x.map(|v| v as f64));
    assert_eq!(cast(&unsigned, DType::F32), x.map(|v| f64::from(v as u64 as f32)));
    assert_eq!(cast(&unsigned, DType::F64), x.map(|v| v as u64 as f64));
    assert_eq!(cast(&signed, DType::F16)[2], INF);
}

#[test]
fn casts_unpack_packed_constants() {
    let g = Graph::new();
    let packed = |dtype| g.constant(Literal::from_i64(Type::new(dtype, [4]), &[0, 1, 7, 15]));
    for dtype in [DType::I4, DType::U4, DType::U1] {
        g.result(&dtype.to_string(), &packed(dtype).cast(DType::F32));
    }
    let module = g.finish().unwrap();
    let found = run(&module, backfit_ir::FuncId(0), &[], Options::default()).unwrap();
    let found: Vec<&[f64]> = found.iter().map(Array::as_floats).collect();
    assert_eq!(found, [[0.0, 1.0, 7.0, -1.0], [0.0, 1.0, 7.0, 15.0], [0.0, 1.0, 1.0, 1.0]]);
}

#[test]
fn bitcasts_keep_the_bits() {
    let x = [1.0f32, -0.0, f32::INFINITY, 1e-40];
    let y = evaluate(&[Literal::from_f32([4], &x)], Options::default(), |_, x| {
        let bits = x[0].bitcast(DType::U32);
        vec![bits.bitcast(DType::F32), bits.bitcast(DType::I32), bits]
    });
    assert_eq!(y[0].as_floats(), x.map(f64::from));
    assert_eq!(y[1].as_ints(), x.map(|v| i64::from(v.to_bits() as i32)));
    assert_eq!(y[2].as_ints(), x.map(|v| i64::from(v.to_bits())));
}

#[test]
fn select_ignores_what_it_does_not_pick_and_clamp_passes_nan_on() {
    let x = [NAN, -3.0, -0.0, 0.5, 9.0, INF];
    let y = evaluate(&[literal(DType::F64, &x)], Options::default(), |_, x| {
        let (zero, one) = (x[0].number(0.0), x[0].number(1.0));
        let nan = x[0].number(NAN);
        vec![
            x[0].gt(&zero).select(&x[0], &one),
            x[0].clamp(&zero, &one),
            x[0].clamp(&one, &zero),
            x[0].clamp(&nan, &one),
        ]
    });
    let expected =
        [[1.0, 1.0, 1.0, 0.5, 9.0, INF], [NAN, 0.0, 0.0, 0.5, 1.0, 1.0], [NAN, 0.0, 0.0, 0.0, 0.0, 0.0], [NAN; 6]];
    for (row, (found, expected)) in y.iter().zip(expected).enumerate() {
        for (i, &v) in found.as_floats().iter().enumerate() {
            assert_same(&format!("row {row}"), &x[i], v, expected[i], 0.0);
        }
    }
}

#[test]
fn reduce_precision_to_half_formats_agrees_with_their_dtypes_on_normal_numbers() {
    let mut x: Vec<f64> = (0..4000u32).map(|i| f64::from(f32::from_bits(0x3880_0000 + i * 0x1_1357))).collect();
    x.extend([65504.0, 65519.0, 65520.0, -65520.0, 1e30, 3.4e38, INF, NAN, 0.0, -0.0, 1.0 + 1.0 / 2048.0]);
    let y = evaluate(&[literal(DType::F32, &x)], Options::default(), |_, x| {
        vec![
            x[0].reduce_precision(5, 10),
            x[0].cast(DType::F16).cast(DType::F32),
            x[0].reduce_precision(8, 7),
            x[0].cast(DType::BF16).cast(DType::F32),
            x[0].reduce_precision(8, 23),
            x[0].reduce_precision(11, 52),
            x[0].clone(),
        ]
    });
    for (i, x) in x.iter().enumerate() {
        let at = |k: usize| y[k].as_floats()[i];
        assert_same("f16", x, at(0), at(1), 0.0);
        assert_same("bf16", x, at(2), at(3), 0.0);
        assert_same("f32 as f32", x, at(4), at(6), 0.0);
        assert_same("more bits than there are", x, at(5), at(6), 0.0);
    }
}

#[test]
fn reduce_precision_rounds_ties_to_even_overflows_to_infinity_and_flushes_what_is_too_small() {
    // Four bits of exponent, three of mantissa: bias 7, largest 240, smallest normal 2⁻⁶.
    let x = [1.0625, 1.1875, -1.1875, 240.0, 247.0, 248.0, -1e9, 0.015625, 0.0156, -0.0077, 0.0];
    let y = [1.0, 1.25, -1.25, 240.0, 240.0, INF, -INF, 0.015625, 0.015625, -0.0, 0.0];
    let found = floats1(DType::F32, |x| x.reduce_precision(4, 3), &x);
    for i in 0..x.len() {
        assert_same("e4m3", &x[i], found[i], y[i], 0.0);
    }
    // With the dtype's own exponent subnormals stay, rounded where their format ends.
    let tiny = [1.0 * 2f64.powi(-149), 3.0 * 2f64.powi(-134), 2f64.powi(-126)];
    let found = floats1(DType::F32, |x| x.reduce_precision(8, 7), &tiny);
    assert_eq!(found, [0.0, 4.0 * 2f64.powi(-134), 2f64.powi(-126)]);
}

#[test]
fn infix_operators_mix_tensors_references_and_numbers() {
    let y = evaluate(&[literal(DType::F32, &[3.0]), literal(DType::F32, &[2.0])], Options::default(), |_, x| {
        let (a, b) = (&x[0], &x[1]);
        let own = Tensor::clone;
        let sum = &(own(a) + own(b)) + &(own(a) + b) + (a + own(b)) + (a + b);
        vec![
            sum,
            own(a) - 1.0,
            1.0 - own(a),
            a - 1.0,
            1.0 - a,
            12.0 / a,
            a / 2.0,
            7.0 % a,
            a % 2.0,
            -a,
            -own(a),
            2.0 * a * 2.0,
        ]
    });
    let found: Vec<f64> = y.iter().map(|y| y.as_floats()[0]).collect();
    assert_eq!(found, [20.0, 2.0, -2.0, 2.0, -2.0, 4.0, 1.5, 1.0, 1.0, -3.0, -3.0, 12.0]);
}

#[test]
fn problems_name_the_users_line_and_do_not_spread() {
    let g = Graph::new();
    let a = g.input("a", DType::F32, [2, 3]);
    let b = g.input("b", DType::F32, [4]);
    let c = g.input("c", DType::I32, [3]);
    let line = line!();
    let wrong = [
        &a + &b,
        &a * &c,
        &c + 0.5,
        a.select(&a, &a),
        c.sqrt(),
        a.and(&a),
        a.bitcast(DType::F64),
        a.clamp(&b, &a),
        a.cast(DType::U4),
        c.cast(DType::Bool) + c.cast(DType::Bool),
        a.reduce_precision(0, 3),
    ];
    for tensor in &wrong {
        let _ = ((tensor.exp() * 2.0).lt(&a).select(&a, &a) - 1.0).sum_all();
        assert!(tensor.value().is_none());
    }
    let problems = g.problems();
    assert_eq!(problems.len(), wrong.len(), "{problems:#?}");
    for (i, problem) in problems.iter().enumerate() {
        match &problem.place {
            Some(Place::Source(loc)) => {
                assert!(loc.file.ends_with("elementwise.rs"), "{problem}");
                assert_eq!(loc.line, line + 2 + i as u32, "{problem}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn integer_tensors_refuse_numbers_that_their_dtype_does_not_hold() {
    let g = Graph::new();
    let x = |dtype: DType| g.input(&dtype.to_string(), dtype, [2]);
    let (byte, word, long) = (x(DType::U8), x(DType::I16), x(DType::I64));
    for fine in [&byte + 255.0, &byte * 0.0, &word - -32768.0, &word + 32767.0, &long + -9223372036854775808.0] {
        assert!(fine.value().is_some());
    }
    for wrong in [&byte + 256.0, &byte - -1.0, &word + 32768.0, &word * 0.5, &long + 9223372036854775808.0, &long + NAN]
    {
        assert!(wrong.value().is_none());
    }
}
