//! What mistakes are answered with, word for word.

use backfit_grad::{
    Adafactor, Adam, AdamW, Lion, Optimizer, RmsProp, Sgd, TrainStep, adafactor_step, adam_step, gradients,
    optimizer_step, sgd_step,
};
use backfit_ir::ops::definition::{Body, Composite, Derivative, Kind, OpDef, Tolerance};
use backfit_ir::{Attributes, DType, Error, Graph, Init, Tensor, Type};

fn x(g: &Graph) -> Tensor {
    g.input("x", DType::F32, [2, 3])
}

fn words(g: &Graph) -> String {
    g.finish().expect_err("there is a mistake").to_string()
}

/// Compares word for word; `@n` stands for a place n lines after `line` in this file.
#[track_caller]
fn says(found: &str, line: u32, expected: &str) {
    let mut text = expected.to_owned();
    for offset in (0..30).rev() {
        text = text.replace(&format!("@{offset}"), &format!("{}:{}", file!(), line + offset));
    }
    assert_eq!(found, text);
}

#[test]
fn operands_of_matmul_that_do_not_fit() {
    let g = Graph::new();
    let line = line!();
    x(&g).matmul(&g.input("w", DType::F32, [4, 5]));
    says(
        &words(&g),
        line,
        "matmul: f32[2,3] and f32[4,5]: the left operand has 3 columns, the right one 4 rows\n  at @1",
    );
}

#[test]
fn shapes_that_cannot_be_broadcast() {
    let g = Graph::new();
    let line = line!();
    let _ = x(&g) + g.input("y", DType::F32, [2, 4]);
    says(
        &words(&g),
        line,
        "add: shapes [2,3] and [2,4] do not broadcast: 3 against 4, counting axes from the end\n  at @1",
    );
}

#[test]
fn operands_of_two_dtypes() {
    let g = Graph::new();
    let line = line!();
    let _ = x(&g) * g.input("y", DType::F64, [2, 3]);
    says(&words(&g), line, "mul: the operands are f32[2,3] and f64[2,3]; they must be of one type\n  at @1");
}

#[test]
fn an_operator_that_is_not_defined_on_the_dtype() {
    let g = Graph::new();
    let line = line!();
    g.input("n", DType::I32, [2]).exp();
    let _ = g.input("b", DType::Bool, [2]) + 1.0;
    says(
        &words(&g),
        line,
        "exp: it takes a float dtype, not i32\n  at @1\nadd: it takes a float or integer dtype, not bool\n  at @2",
    );
}

#[test]
fn an_axis_that_there_is_not() {
    let g = Graph::new();
    let line = line!();
    x(&g).softmax(2);
    g.input("y", DType::F32, [2, 3]).sum(&[0, -3]);
    says(
        &words(&g),
        line,
        "softmax: f32[2,3] has no axis 2\n  at @1\nreduce: axes [0, -3] of f32[2,3] are out of range or named twice\n  at @2",
    );
}

#[test]
fn two_parameters_of_one_name() {
    let g = Graph::new();
    let line = line!();
    g.weight("w", Type::new(DType::F32, [2]), Init::ZEROS);
    g.weight("w", Type::new(DType::F32, [3]), Init::ZEROS);
    says(&words(&g), line, "there is already a parameter named 'w'\n  at @2");
}

#[test]
fn two_results_of_one_name_and_an_update_of_what_is_no_parameter() {
    let g = Graph::new();
    let x = x(&g);
    let line = line!();
    g.result("y", &x);
    g.result("y", &x);
    g.update(&x.exp(), &x);
    g.update(&x, &x.sum(&[0]));
    says(
        &words(&g),
        line,
        "there is already a result named 'y'\n  at @2\nexp %1 is not a parameter, so it cannot be updated\n  at @3\n  help: make it with `state` or `weight`\n'x' is f32[2,3] and cannot be updated with f32[3]\n  at @4",
    );
}

#[test]
fn two_mistakes_are_told_at_once_and_what_follows_from_them_is_not() {
    let g = Graph::new();
    let x = x(&g);
    let line = line!();
    let wrong = x.matmul(&x);
    let follows = (&wrong + &x).softmax(-1).matmul(&wrong).sum(&[7]);
    let _ = x.reshape([7]).exp() + follows;
    says(
        &words(&g),
        line,
        "matmul: f32[2,3] and f32[2,3]: the left operand has 3 columns, the right one 2 rows\n  at @1\nreshape: f32[2,3] has 6 elements, [7] has another number\n  at @3",
    );
}

#[test]
fn a_tensor_of_another_graph() {
    let (g, other) = (Graph::new(), Graph::new());
    let (x, y) = (x(&g), x(&other));
    let line = line!();
    let _ = &x + &y;
    says(
        &words(&g),
        line,
        "an operand belongs to another graph\n  at @1\n  help: pass it as an input or operand of this function",
    );
}

#[test]
fn a_loss_without_a_derivative() {
    let g = Graph::new();
    let x = x(&g);
    let line = line!();
    let bits = x.cast(DType::F16).bitcast(DType::BF16).cast(DType::F32);
    let loss = (bits * 2.0).sum_all();
    let error = gradients(&loss, &[&x]).map(|_| ()).map_err(|e| e.to_string());
    says(
        &error.err().unwrap_or_default(),
        line,
        "'bitcast' has no derivative: it reads bits, not numbers\n  at @1\n  because the loss depends on it through reduce (@2) → mul (@2) → cast (@1)\n  help: call `detach` on its operand if no gradient is to flow through it",
    );
}

#[test]
fn a_loss_that_is_no_scalar() {
    let g = Graph::new();
    let x = x(&g);
    let line = line!();
    let error = gradients(&x, &[&x]).expect_err("it has six elements");
    says(
        &error.to_string(),
        line,
        "the loss is f32[2,3]; it must be a float scalar\n  at @1\n  help: reduce it with `mean` or `sum`",
    );
}

fn step_error(loss: &Tensor) -> Error {
    match TrainStep::new(loss).optimizer(Sgd::new(0.1)).build() {
        Err(error) => error,
        Ok(_) => panic!("there is a mistake"),
    }
}

#[test]
fn a_weight_that_the_loss_does_not_depend_on() {
    let g = Graph::new();
    let line = line!();
    let w = g.weight("w", Type::new(DType::F32, [2]), Init::ZEROS);
    g.weight("lost", Type::new(DType::F32, [2]), Init::ZEROS);
    says(
        &step_error(&w.sum_all()).to_string(),
        line,
        "the loss does not depend on the weight 'lost'\n  at @2\n  help: use it, or declare it with a role other than a trainable weight",
    );
}

#[test]
fn a_step_without_an_optimizer() {
    let g = Graph::new();
    let w = g.weight("w", Type::new(DType::F32, [2]), Init::ZEROS);
    let error = TrainStep::new(&w.sum_all()).build().map(|_| ()).expect_err("it has none");
    says(&error.to_string(), line!(), "the training step has no optimizer\n  help: add `.optimizer(Adam::new(1e-3))`");
}

/// x·x, which only square matrices have.
static SQUARE: OpDef = OpDef {
    name: "matrix_square",
    formula: "y = x·x",
    kind: Kind::Composite(Composite { results: 1, check: |_, _| Ok(()), body: square, inference: None }),
    derivative: Derivative::Body,
    tolerance: Tolerance::Norm(8.0),
    onnx: &[],
    samples: Vec::new,
};

fn square(b: &Body) -> Vec<Tensor> {
    vec![b.operands[0].matmul(&b.operands[0])]
}

#[test]
fn a_mistake_within_a_composite_is_told_at_its_call() {
    let g = Graph::new();
    let x = x(&g);
    let line = line!();
    let y = g.composite(&SQUARE, &[&x], Attributes::new()).remove(0);
    let _ = y.exp();
    says(
        &words(&g),
        line,
        "matmul: f32[2,3] and f32[2,3]: the left operand has 3 columns, the right one 2 rows\n  at @1\n  because it is part of 'matrix_square'",
    );
}

#[test]
fn what_a_composite_refuses_is_told_in_its_words() {
    let g = Graph::new();
    let line = line!();
    x(&g).cross_entropy(&g.input("label", DType::F32, [2]));
    says(&words(&g), line, "cross_entropy: a target of probabilities is f32[2]; its shape must be [2,3]\n  at @1");
}

#[test]
fn a_mistake_within_a_function_is_told_where_it_is() {
    let g = Graph::new();
    let line = line!();
    let f = g.function("twice");
    let x = f.input("x", DType::F32, [2]);
    f.result("y", &(&x + &f.input("y", DType::F32, [3])));
    assert_eq!(g.define(f), None);
    says(
        &words(&g),
        line,
        "add: shapes [2] and [3] do not broadcast: 2 against 3, counting axes from the end\n  at @3\n  because it is part of function 'twice'",
    );
}

#[test]
fn scopes_named_like_what_the_compiler_adds() {
    let g = Graph::new();
    let line = line!();
    g.scope("mean()", || x(&g).exp());
    says(
        &words(&g),
        line,
        "a scope cannot be named 'mean()'\n  at @1\n  because names that end with '()' mark what the compiler adds\n  help: leave out the '()'",
    );
}

#[test]
fn a_parameter_with_the_name_of_the_random_key() {
    let g = Graph::new();
    let line = line!();
    let _ = g.hyper("rng.key", DType::F32);
    says(&words(&g), line, "'rng.key' is the name of the random key, a u32[4]\n  at @1");
}

#[test]
fn inputs_and_results_of_a_layer_of_a_stack() {
    let g = Graph::new();
    let line = line!();
    let _ = backfit::nn::Stack::new("layers", 3).apply(&g, &x(&g), |g, x, _| {
        let y = x * g.hyper("rate", DType::F32);
        g.result("inner", &y);
        y
    });
    let expected = "a layer of a stack declares the input 'rate'\n  at @2\n  because it is part of function 'layers'\n  \
        help: declare it outside, and share it with `apply_with`\n\
        a layer of a stack declares the result 'inner'\n  at @1\n  because it is part of function 'layers'\n  \
        help: a layer has one output; keep what else it computes with `state` and `update`";
    says(&words(&g), line, expected);
}

#[test]
fn values_of_another_graph_are_neither_reported_nor_derived_nor_weighed_by() {
    let (g, other) = (Graph::new(), Graph::new());
    let w = g.weight("w", Type::new(DType::F32, [2, 3]), Init::ZEROS);
    let loss = (&w * x(&g)).mean_all();
    let foreign = x(&other);
    let line = line!() + 1;
    let error = gradients(&loss, &[&w, &foreign]).unwrap_err().to_string();
    let help = "a value of a function or layer has to be among its results";
    says(
        &error,
        line,
        &format!("a tensor of type f32[2,3] is of another graph than what is derived\n  at @0\n  help: {help}"),
    );
    let step = || TrainStep::new(&loss).optimizer(Sgd::new(0.1));
    let steps = [
        (step().report("h", &foreign), "h"),
        (step().predict(&foreign), "prediction"),
        (step().accumulate(2, Some(&foreign)), "weights"),
    ];
    for (step, name) in steps {
        let error = step.build().map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, format!("'{name}' is of another graph than the loss\n  help: {help}"));
    }
}

#[test]
fn more_micro_batches_than_there_can_be_rows() {
    for micro_batches in [1 << 60, 1 << 63, usize::MAX] {
        let g = Graph::new();
        let w = g.weight("w", Type::new(DType::F32, [2, 3]), Init::ZEROS);
        let step = TrainStep::new(&(&w * x(&g)).mean_all()).optimizer(Sgd::new(0.1));
        let error = step.accumulate(micro_batches, None).build().map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("micro-batches") || error.contains("too large to address"), "{error}");
    }
}

#[test]
fn lists_of_an_optimizer_step_that_do_not_fit_together() {
    let g = Graph::new();
    let [w, m, v, gradient] = ["w", "m", "v", "g"].map(|name| g.input(name, DType::F32, [3]));
    let [matrix, of_matrix] = ["matrix", "of"].map(|name| g.input(name, DType::F32, [2, 3]));
    let hypers = ["learning_rate", "bias_correction1", "bias_correction2"].map(|name| g.hyper(name, DType::F32));
    let weights = [w.clone(), w.clone()];
    let slots = vec![m, v];
    let line = line!();
    let new = adam_step(&Adam::new(0.1), &weights, std::slice::from_ref(&slots), &[], &hypers);
    adam_step(&Adam::new(0.1), &weights[..1], &[slots[..1].to_vec()], std::slice::from_ref(&gradient), &hypers[..1]);
    let momentum = Sgd::new(0.1).momentum(0.9);
    sgd_step(&momentum, &weights[..1], &[vec![]], std::slice::from_ref(&gradient), &hypers[..1]);
    adafactor_step(&Adafactor::new(0.1), &[matrix], &[vec![]], &[of_matrix], &hypers);
    assert_eq!(new.iter().map(|new| new.slots.len()).collect::<Vec<_>>(), [2, 2], "of poison nothing more is told");
    let _ = &new[1].weight + &new[1].slots[1];
    let expected = "2 weights have 1 lists of slots and 0 gradients\n  at @1\n  \
        help: give every weight its list, which may be empty, and its gradient\n\
        weight 0, f32[3], is given 1 slots\n  at @2\n  because the optimizer keeps of it: [m, v]\n\
        the step is given 1 scalars\n  at @2\n  \
        because the optimizer is fed: [learning_rate, bias_correction1, bias_correction2]\n\
        weight 0, f32[3], is given 0 slots\n  at @4\n  because the optimizer keeps of it: [velocity]\n\
        weight 0, f32[2,3], is given 0 slots\n  at @5\n  because the optimizer keeps of it: [row, column]";
    says(&words(&g), line, expected);
}

#[test]
fn slots_and_gradients_of_other_shapes_are_told_by_every_optimizer() {
    let rules: [&dyn Optimizer; 6] = [
        &Sgd::new(0.1).momentum(0.9),
        &Adam::new(0.1),
        &AdamW::new(0.1),
        &RmsProp::new(0.1).centered(),
        &Lion::new(0.1),
        &Adafactor::new(0.1),
    ];
    for rule in rules {
        for (slot, of) in [(5, 4), (4, 5)] {
            let g = Graph::new();
            let [w, m, gradient] = [("w", 4), ("m", slot), ("g", of)].map(|(name, n)| g.input(name, DType::F32, [n]));
            let hypers: Vec<Tensor> = rule.hypers().iter().map(|name| g.hyper(name, DType::F32)).collect();
            let count = rule.slots().iter().filter(|slot| rule.slot_type(slot, w.ty()).is_some()).count();
            optimizer_step(rule, &[w], &[vec![m; count]], &[gradient], &hypers);
            let found = words(&g);
            assert!(found.contains(&format!("at {}", file!())), "{rule:?}: {found}");
            assert!(found.contains("[4]") && found.contains("[5]"), "{rule:?}: {found}");
        }
    }
}
