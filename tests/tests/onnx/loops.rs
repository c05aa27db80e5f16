//! Loops, refusals, and what the file says beside the computation.

use backfit::prelude::*;
use backfit_compile::target::Program;
use backfit_ir::interp::Options;
use backfit_ir::ops::definition::values;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{FuncId, Literal, Module, Role};
use backfit_onnx::{Model, export};
use backfit_suites::compare::{distance, interpret, last};
use backfit_suites::onnxruntime::{Job, run};

fn f32s(shape: &[usize], seed: u64) -> Literal {
    let wide = values::tensor(shape, -1.0, 1.0, seed);
    Literal::from_f64(wide.ty().with_dtype(F32), &wide.to_f64())
}

fn exported(module: &Module) -> backfit::Result<Model> {
    let functions = vec![("main".to_owned(), last(module))];
    Ok(export(&Program::new(module.clone(), functions))?.remove(0))
}

fn input(g: &Graph, name: &str, dims: &[usize]) -> Tensor {
    g.parameter(name, backfit::Type::new(F32, dims), Role::Input, None)
}

/// h ← tanh(h w + x), and h² as an output.
fn cell(g: &Graph) -> FuncId {
    let f = g.function("cell");
    let [h, w, x] =
        [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![2, 3])].map(|(name, dims)| input(&f, name, &dims));
    let new = (h.matmul(&w) + x).tanh();
    f.result("h", &new);
    f.result("out", &(&new * &new));
    g.define(f).expect("a body")
}

/// h ← h + h², seen from nothing but the carry.
fn growth(g: &Graph) -> FuncId {
    let f = g.function("growth");
    let h = f.input("h", F32, [2, 3]);
    f.result("h", &(&h + &(&h * &h)));
    g.define(f).expect("a body")
}

/// A loop in a loop: the inner one runs the cell over what the outer one is given.
fn nested(g: &Graph) -> FuncId {
    let inner = cell(g);
    let f = g.function("nested");
    let [h, w, x] =
        [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![4, 2, 3])].map(|(name, dims)| input(&f, name, &dims));
    let scan = Scan { body: inner, carries: 1, constants: 1, trip_count: 4, reverse: true };
    let results = f.scan(scan, &[&h], &[&w], &[&x]);
    f.result("h", &results[0]);
    f.result("out", &results[1].sum(&[0]));
    g.define(f).expect("a body")
}

fn looped(trip_count: usize, reverse: bool) -> Module {
    let g = Graph::new();
    let [h, w, x] = [("x0", vec![2, 3]), ("x1", vec![3, 3]), ("x2", vec![trip_count, 2, 3])]
        .map(|(name, dims)| input(&g, name, &dims));
    let scan = Scan { body: cell(&g), carries: 1, constants: 1, trip_count, reverse };
    let results = g.scan(scan, &[&h], &[&w], &[&x]);
    results.iter().enumerate().for_each(|(i, r)| g.result(&format!("y{i}"), r));
    g.finish().expect("a module")
}

fn without_slices() -> Module {
    let g = Graph::new();
    let h = g.input("x0", F32, [2, 3]);
    let scan = Scan { body: growth(&g), carries: 1, constants: 0, trip_count: 3, reverse: false };
    g.result("y0", &g.scan(scan, &[&h], &[], &[])[0]);
    g.finish().expect("a module")
}

fn within_a_loop() -> Module {
    let g = Graph::new();
    let [h, w, x] =
        [("x0", vec![2, 3]), ("x1", vec![3, 3]), ("x2", vec![5, 4, 2, 3])].map(|(name, dims)| input(&g, name, &dims));
    let scan = Scan { body: nested(&g), carries: 1, constants: 1, trip_count: 5, reverse: false };
    let results = g.scan(scan, &[&h], &[&w], &[&x]);
    results.iter().enumerate().for_each(|(i, r)| g.result(&format!("y{i}"), r));
    g.finish().expect("a module")
}

#[test]
fn loops_of_every_kind_give_what_the_interpreter_gives() {
    let modules = [
        ("forward", looped(4, false)),
        ("reverse", looped(4, true)),
        ("no steps", looped(0, false)),
        ("nothing but a carry", without_slices()),
        ("a loop in a loop", within_a_loop()),
    ];
    let models: Vec<Model> = modules.iter().map(|(_, m)| exported(m).expect("it is exported")).collect();
    let mut expected = Vec::new();
    let mut jobs = Vec::new();
    for ((name, module), model) in modules.iter().zip(&models) {
        let main = module.function(last(module));
        let inputs = main.params.iter().zip(1..).map(|(p, seed)| f32s(&main.ty(p.value).shape, seed));
        let inputs: Vec<Literal> = inputs.collect();
        expected.push(interpret(module, &inputs, Options::default()).expect("a run"));
        let outputs = expected.last().into_iter().flatten().map(|l| l.ty().clone()).collect();
        let runs = vec![main.params.iter().zip(inputs).map(|(p, value)| (p.name.clone(), value)).collect()];
        jobs.push(Job { name: (*name).to_owned(), model, runs, outputs, only_last: false });
    }
    let Some(answers) = run(&jobs) else { return };
    for ((answer, expected), (name, _)) in answers.into_iter().zip(&expected).zip(&modules) {
        let found = answer.unwrap_or_else(|why| panic!("{name}: {why}")).remove(0);
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.ty(), expected.ty(), "{name}");
            let away = distance(found, expected);
            assert!(away <= 1e-6, "{name} is off by {away:e}");
        }
    }
}

#[test]
fn everything_that_cannot_be_exported_is_named_with_its_line_and_what_to_do() {
    let g = Graph::new();
    let x = g.input("x", F64, [3]);
    let first = line!() + 1;
    g.result("a", &x.erf());
    g.result("b", &x.bitcast(backfit::DType::I64));
    let error = exported(&g.finish().expect("a module")).expect_err("it is refused");
    let text = error.to_string();
    assert_eq!(error.problems().len(), 2, "{text}");
    for (words, line) in [("erf(f64[3])", first), ("bitcast(f64[3])", first + 1)] {
        assert!(
            text.contains(&format!("{words} cannot be exported to ONNX\n  at {}:{line}\n  because ", file!())),
            "{text}"
        );
    }
    assert_eq!(text.matches("\n  help: ").count(), 2, "{text}");
}

#[test]
fn nodes_carry_scope_and_line_and_the_metadata_says_what_feeds_what() {
    let g = Graph::new();
    let x = g.input("x", F32, [4, 3]);
    let line = line!() + 1;
    let y = g.scope("encoder", || nn::linear(&g, "fc", &x, 2));
    let module = TrainStep::new(&y.square().mean(&[0, 1])).optimizer(Sgd::new(0.1)).build().expect("a program");
    let program = Program::new(module.module.clone(), vec![("step".to_owned(), module.step)]);
    let model = export(&program).expect("it is exported").remove(0);
    let graph = model.proto.graph.as_ref().expect("a graph");
    let product = graph.node.iter().find(|n| n.op_type == "MatMul").expect("a product");
    assert!(product.name.contains("encoder"), "{}", product.name);
    assert!(product.doc_string.ends_with(&format!("{}:{line}", file!())), "{}", product.doc_string);
    let says = |key: &str| model.proto.metadata_props.iter().find(|p| p.key == key).map(|p| p.value.as_str());
    assert_eq!(says("role:x"), Some("input"));
    assert_eq!(says("role:learning_rate"), Some("hyper"));
    let weight = graph.input.iter().find(|i| i.name.ends_with("weight")).expect("a weight").name.as_str();
    assert_eq!(says(&format!("role:{weight}")), Some("weight"));
    assert_eq!(says(&format!("updates:{weight}.new")), Some(weight));
    // Every name is defined once, and every update is an output.
    let outputs: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
    let updates = model.proto.metadata_props.iter().filter_map(|p| p.key.strip_prefix("updates:"));
    assert!(updates.into_iter().all(|name| outputs.contains(&name)));
}
