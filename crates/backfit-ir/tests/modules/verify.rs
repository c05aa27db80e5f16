//! Broken modules are refused with words that say what is wrong.

use super::support::rich;
use backfit_ir::op::Op;
use backfit_ir::verify::verify_claimed;
use backfit_ir::{
    Attributes, Composite, DType, Def, FuncId, Function, Init, Literal, Module, Role, Stage, Type, ValueId, verify,
};

/// The index of `main` in [`rich`].
const MAIN: usize = 3;

fn problems_of(module: &Module) -> Vec<String> {
    let error = verify(module, Stage::Built).expect_err("the module is broken");
    error.problems().iter().map(ToString::to_string).collect()
}

/// Breaks the rich module and looks for the words in a problem.
fn refused(words: &str, break_it: impl Fn(&mut Module)) {
    let mut module = rich();
    break_it(&mut module);
    let problems = problems_of(&module);
    assert!(problems.iter().any(|p| p.contains(words)), "expected: {words}\nfound: {problems:#?}");
}

fn in_main(words: &str, break_it: impl Fn(&mut Function)) {
    refused(words, |m| break_it(&mut m.functions[MAIN]));
}

fn node(f: &mut Function, op: &str) -> usize {
    f.nodes.iter().position(|n| n.op.name() == op).expect("main has this operator")
}

#[test]
fn the_rich_module_is_right() {
    verify(&rich(), Stage::Precise).unwrap();
}

#[test]
fn uses_and_definitions() {
    in_main("there is no %99", |f| f.nodes[1].operands[0] = ValueId(99));
    in_main("%17 is used before it is defined", |f| f.nodes[1].operands[0] = ValueId(17));
    in_main("%6 is used before it is defined", |f| f.nodes.swap(1, 2));
    in_main("says that it is defined by parameter 3", |f| f.values[0].def = Def::Param(3));
    in_main("says that it is defined by result 7 of node 1", |f| f.values[6].def = Def::Node { node: 1, result: 7 });
    in_main("parameter 'x' of 'main' defines %3, which says otherwise", |f| f.params[0].value = ValueId(3));
    in_main("result 0 is %88, which says otherwise", |f| f.nodes[1].results[0] = ValueId(88));
    in_main("result 'y' is %77, which does not exist", |f| f.results[0].value = ValueId(77));
}

#[test]
fn types() {
    in_main("it gives f32[2,3], not f32[3,2]", |f| f.values[17].ty = Type::new(DType::F32, [3, 2]));
    in_main("has rank 9; at most 8 is supported", |f| f.values[17].ty = Type::new(DType::F32, [1; 9]));
    in_main("is too large to address", |f| f.values[17].ty = Type::new(DType::F32, [1 << 40, 1 << 40]));
    in_main("is too large to address", |f| f.values[17].ty = Type::new(DType::F32, [0, usize::MAX, 3]));
    in_main("mul", |f| {
        let at = node(f, "mul");
        f.nodes[at].operands.pop();
    });
    in_main("packed dtypes are for constants", |f| f.values[3].ty = Type::new(DType::U4, []));
    in_main("has a packed dtype, which only cast takes", |f| {
        let at = node(f, "cast");
        f.nodes[at].op = Op::Barrier;
    });
    in_main("cast it first", |f| f.results[0].value = ValueId(15));
}

#[test]
fn names_and_aliases() {
    refused("there are two functions named 'main'", |m| m.functions[0].name = "main".to_owned());
    in_main("parameter 'x' of 'main' has the name of another one", |f| f.params[1].name = "x".to_owned());
    in_main("there are two results named 'y'", |f| f.results[1].name = "y".to_owned());
    in_main("aliases parameter 9, which does not exist", |f| f.results[2].alias = Some(9));
    in_main("aliases 'x', which is not resident", |f| f.results[2].alias = Some(0));
    in_main("aliases 'steps', which is i64[]", |f| f.results[3].alias = Some(3));
    in_main("two results write into 'steps'", |f| f.results[4].alias = Some(3));
    in_main("is fed at every run and has a start value", |f| f.params[0].init = Some(Init::ZEROS));
    in_main("is u8[3] and starts with f32[]", |f| {
        f.params[4].init = Some(Init::Literal(Literal::scalar(DType::F32, 1.0)))
    });
}

#[test]
fn calls() {
    in_main("function 3 does not stand before its caller 3", |f| f.nodes[1].op = Op::Call(FuncId(3)));
    in_main("function 99 does not stand before its caller 3", |f| f.nodes[1].op = Op::Call(FuncId(99)));
    in_main("takes 3 operands, not 1", |f| f.nodes[1].op = Op::Call(FuncId(1)));
    in_main("carries and", |f| {
        let at = node(f, "scan");
        let Op::Scan(scan) = &mut f.nodes[at].op else { unreachable!() };
        (scan.carries, scan.constants) = (usize::MAX, usize::MAX);
    });
}

#[test]
fn composites() {
    refused("is no input, yet the function is the body of a composite", |m| {
        m.functions[0].params[0].role = Role::Hyper
    });
    refused("writes into a parameter", |m| m.functions[0].results[0].alias = Some(0));
    refused("softmax: ", |m| {
        m.functions[0].composite.as_mut().unwrap().attributes = Attributes::new().with("axis", 7i64)
    });
    refused("'add' is a primitive, not a composite", |m| {
        m.functions[0].composite = Some(Composite { name: "add".to_owned(), attributes: Attributes::new() });
    });
}

#[test]
fn all_problems_are_told_at_once_with_their_places() {
    let mut module = rich();
    module.functions[MAIN].nodes[1].operands[0] = ValueId(99);
    module.functions[MAIN].results[1].name = "y".to_owned();
    let problems = problems_of(&module);
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].contains("call %6 of 'main': there is no %99\n  at src/main.rs:16"), "{problems:#?}");
}

#[test]
fn a_broken_callee_is_told_once() {
    let mut module = rich();
    module.functions[0].params[0].value = ValueId(1234);
    assert!(problems_of(&module).iter().all(|p| p.contains("'softmax'")));
}

#[test]
fn stages_refuse_what_they_have_left_behind() {
    let module = rich();
    let error = verify(&module, Stage::Decomposed).unwrap_err().to_string();
    assert!(error.contains("'softmax' is not claimed, yet the module is decomposed"), "{error}");
    verify_claimed(&module, Stage::Decomposed, |f| f.name == "softmax").unwrap();
    let error = verify_claimed(&module, Stage::Simplified, |f| f.name == "softmax").unwrap_err();
    let dead = error.problems().len();
    assert_eq!(dead, 4, "{error}");
    assert!(error.to_string().contains("constant %12 of 'main': no result needs it"), "{error}");
    let mut clean = module;
    clean.functions[MAIN] = backfit_ir::rewrite::dead_code(&clean.functions[MAIN]);
    verify_claimed(&clean, Stage::Planned, |f| f.name == "softmax").unwrap();
}
