//! Constants that are folded have the bits that the CPU target computes.

use backfit_cpu::Cpu;
use backfit_ir::interp::Array;
use backfit_ir::op::{Binary, Comparison, Unary};
use backfit_ir::{Class, DType, Graph, Literal, Op, Role, Tensor, Type};
use backfit_suites::compare::on_cpu;
use backfit_suites::fuzz::Random;

/// What folding evaluates, of two operands.
fn results(g: &Graph, a: &Tensor, b: &Tensor) -> Vec<Tensor> {
    let unary = [
        Unary::Neg,
        Unary::Abs,
        Unary::Sign,
        Unary::Sqrt,
        Unary::Reciprocal,
        Unary::Floor,
        Unary::Ceil,
        Unary::RoundEven,
        Unary::IsFinite,
        Unary::Not,
    ];
    let binary = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Rem,
        Binary::Maximum,
        Binary::Minimum,
        Binary::And,
        Binary::Or,
        Binary::Xor,
        Binary::ShiftLeft,
        Binary::ShiftRight,
    ];
    let mut all: Vec<(Op, Vec<&Tensor>)> = unary.into_iter().map(|op| (Op::Unary(op), vec![a])).collect();
    all.extend(binary.into_iter().map(|op| (Op::Binary(op), vec![a, b])));
    all.extend([Comparison::Lt, Comparison::Ne, Comparison::Ge].map(|op| (Op::Compare(op), vec![a, b])));
    all.extend(DType::COMPUTED.map(|dtype| (Op::Cast(dtype), vec![a])));
    all.extend([(Op::Clamp, vec![b, a, b]), (Op::ReducePrecision { exponent: 5, mantissa: 4 }, vec![a])]);
    all.extend([(Op::Transpose(vec![1, 0]), vec![a]), (Op::Reverse(vec![0]), vec![a])]);
    all.push((Op::Concatenate { axis: 1 }, vec![a, b]));
    let fits = |(op, x): &(Op, Vec<&Tensor>)| {
        let types: Vec<Type> = x.iter().map(|t| t.ty().clone()).collect();
        (op.primitive().infer)(op, &types).is_ok()
    };
    all.into_iter().filter(fits).map(|(op, x)| g.push1(op, &x)).collect()
}

fn run(cpu: &Cpu, inputs: &[Literal; 2], constant: bool) -> (usize, Vec<Literal>) {
    let g = Graph::new();
    let operand = |(i, value): (usize, &Literal)| match constant {
        true => g.constant(value.clone()),
        false => g.parameter(&format!("x{i}"), value.ty().clone(), Role::Input, None),
    };
    let operands: Vec<Tensor> = inputs.iter().enumerate().map(operand).collect();
    let results = results(&g, &operands[0], &operands[1]);
    results.iter().enumerate().for_each(|(i, t)| g.result(&format!("y{i}"), t));
    let module = g.finish().unwrap_or_else(|error| panic!("{error}"));
    let fed = if constant { &[][..] } else { &inputs[..] };
    (results.len(), on_cpu(cpu, &module, fed).unwrap_or_else(|error| panic!("{error}")))
}

fn flushed(value: &Literal, flush: bool) -> Literal {
    let mut array = Array::from_literal(value);
    array.round(flush);
    array.to_literal()
}

/// NaN is NaN, whichever.
fn same(a: &Literal, b: &Literal) -> bool {
    a.bytes() == b.bytes()
        || a.ty().dtype.class() == Class::Float
            && a.to_f64().iter().zip(b.to_f64()).all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
}

#[test]
fn folded_constants_have_the_bits_that_the_cpu_computes() {
    let mut compared = 0;
    for (seed, dtype) in DType::COMPUTED.into_iter().flat_map(|d| (0..12).map(move |seed| (seed, d))) {
        let mut random = Random(seed);
        let ty = Type::new(dtype, [4, 9]);
        let inputs = [random.literal(&ty, true), random.literal(&ty, true)];
        for flush in [false, true] {
            // A target that flushes may or may not do so where it only moves data.
            let inputs = inputs.each_ref().map(|value| flushed(value, flush));
            let cpu = Cpu::default().threads(1);
            let cpu = if flush { cpu } else { cpu.keep_subnormals() };
            let ((count, computed), (_, folded)) = (run(&cpu, &inputs, false), run(&cpu, &inputs, true));
            for i in 0..count {
                assert!(
                    same(&computed[i], &folded[i]),
                    "{dtype}, seed {seed}, result {i}: {:?} folded, {:?} computed",
                    folded[i].to_f64(),
                    computed[i].to_f64()
                );
                compared += 1;
            }
        }
    }
    println!("{compared} results have the same bits");
}
