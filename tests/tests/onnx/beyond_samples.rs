//! What no operator's samples ask for.

use backfit_compile::target::Program;
use backfit_ir::interp::Options;
use backfit_ir::op::Precision;
use backfit_ir::ops::definition::values;
use backfit_ir::ops::dot_general::DotGeneral;
use backfit_ir::{DType, Graph, Literal, Module, Op, Tensor, Type};
use backfit_onnx::export;
use backfit_suites::compare::{distance, interpret, last};
use backfit_suites::onnxruntime::{Job, run};

fn module(inputs: &[Literal], build: impl Fn(&[Tensor]) -> Tensor) -> Module {
    let g = Graph::new();
    let input =
        |(i, l): (usize, &Literal)| g.parameter(&format!("x{i}"), l.ty().clone(), backfit_ir::Role::Input, None);
    let inputs: Vec<Tensor> = inputs.iter().enumerate().map(input).collect();
    g.result("y", &build(&inputs));
    g.finish().expect("a module")
}

/// The result in onnxruntime, if there is one.
fn in_onnxruntime(module: &Module, inputs: &[Literal]) -> Option<Literal> {
    let model = export(&Program::new(module.clone(), vec![("main".to_owned(), last(module))])).expect("it is exported");
    let f = module.function(last(module));
    let runs = vec![inputs.iter().enumerate().map(|(i, l)| (format!("x{i}"), l.clone())).collect()];
    let outputs = f.results.iter().map(|r| f.ty(r.value).clone()).collect();
    let job = Job { name: "main".to_owned(), model: &model[0], runs, outputs, only_last: false };
    let mut answers = run(&[job])?;
    Some(answers.remove(0).unwrap_or_else(|why| panic!("{why}")).remove(0).remove(0))
}

fn matrices() -> Vec<Literal> {
    let single = |l: Literal| Literal::from_f64(l.ty().with_dtype(DType::F32), &l.to_f64());
    let thirds = |shape: [usize; 2], seed| {
        let wide = values::tensor(shape, -1.0, 1.0, seed);
        Literal::from_f64(wide.ty().clone(), &wide.to_f64().iter().map(|v| v / 3.0).collect::<Vec<_>>())
    };
    vec![single(thirds([7, 65], 1)), single(thirds([65, 5], 2))]
}

fn product(precision: Precision) -> impl Fn(&[Tensor]) -> Tensor {
    move |x| {
        let dot = DotGeneral {
            lhs_batch: vec![],
            rhs_batch: vec![],
            lhs_contract: vec![1],
            rhs_contract: vec![0],
            accumulator: DType::F32,
            result: DType::F32,
            precision,
        };
        x[0].graph().push1(Op::DotGeneral(dot), &[&x[0], &x[1]])
    }
}

#[test]
fn products_are_as_exact_as_their_precision_says() {
    let inputs = matrices();
    let rounded = module(&inputs, |x| {
        let [a, b] = [0, 1].map(|i: usize| x[i].cast(DType::BF16).cast(DType::F32));
        product(Precision::Full)(&[a, b])
    });
    let exact = interpret(&module(&inputs, product(Precision::Full)), &inputs, Options::default()).expect("a run");
    let rounded = interpret(&rounded, &inputs, Options::default()).expect("a run");
    let of = |precision| in_onnxruntime(&module(&inputs, product(precision)), &inputs);
    let Some(found) = of(Precision::Bf16) else { return };
    assert!(distance(&found, &rounded[0]) < 1e-6, "bf16 is off by {:e}", distance(&found, &rounded[0]));
    assert!(distance(&found, &exact[0]) > 1e-4);
    let found = of(Precision::Bf16x3).expect("as before");
    assert!(distance(&found, &exact[0]) < 2e-5, "three products are off by {:e}", distance(&found, &exact[0]));
}

#[test]
fn the_bits_of_integers_are_read_as_other_integers() {
    let pairs = [
        (DType::I8, DType::U8),
        (DType::U16, DType::I16),
        (DType::I32, DType::U32),
        (DType::U64, DType::I64),
        (DType::I64, DType::U64),
    ];
    for (from, to) in pairs {
        let x = [Literal::from_i64(Type::new(from, [6]), &[0, 1, -1, 127, -128, i64::MIN])];
        let module = module(&x, |x| x[0].bitcast(to));
        let expected = interpret(&module, &x, Options::default()).expect("a run");
        let Some(found) = in_onnxruntime(&module, &x) else { return };
        assert_eq!(found, expected[0], "{from} as {to}");
    }
}
