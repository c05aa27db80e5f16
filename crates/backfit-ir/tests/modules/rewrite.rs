//! Rewriting keeps what a program computes.

use super::support::{Case, cases, rich};
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::rewrite::{canonical, dead_code, inline_calls, is_topological, live_functions};
use backfit_ir::{FuncId, Function, Module, Op, Stage, verify};

/// Results by their bits.
fn bits(module: &Module, function: FuncId, arguments: &[Array]) -> Vec<Vec<u8>> {
    let results = run(module, function, arguments, Options::default()).unwrap();
    results.iter().map(|r| r.to_literal().bytes().to_vec()).collect()
}

fn main_of(module: &Module) -> FuncId {
    module.find("main").expect("a graph's function is called main")
}

fn with_main(module: &Module, main: Function) -> Module {
    let mut module = module.clone();
    *module.functions.last_mut().unwrap() = main;
    module
}

#[test]
fn inlined_samples_give_the_same_bits() {
    let has_calls = |case: &Case| case.module.functions.len() > 1;
    for case in cases().into_iter().filter(has_calls) {
        let main = main_of(&case.module);
        let flat = with_main(&case.module, inline_calls(&case.module, main, |_| true));
        let (flat, roots) = live_functions(&flat, &[main]);
        verify(&flat, Stage::Decomposed).unwrap_or_else(|e| panic!("{}: {e}", case.label));
        assert!(flat.functions.last().unwrap().nodes.iter().all(|n| !matches!(n.op, Op::Call(_))));
        let before = bits(&case.module, main, &case.arguments);
        assert_eq!(bits(&flat, roots[0], &case.arguments), before, "{}", case.label);
    }
}

#[test]
fn cleaned_samples_give_the_same_bits() {
    for case in cases().into_iter().step_by(5) {
        let main = main_of(&case.module);
        let clean = with_main(&case.module, dead_code(case.module.function(main)));
        verify(&clean, Stage::Built).unwrap();
        assert_eq!(bits(&clean, main, &case.arguments), bits(&case.module, main, &case.arguments), "{}", case.label);
    }
}

const NESTED: &str = r#"
func @inner composite inner {
  input %0 x : f32[2] at "body.rs":1
  %1 = exp %0 : f32[2] scope "own" at "body.rs":2
  return y = %1
  return same = %0
}
func @outer composite outer {
  input %0 x : f32[2] at "body.rs":3
  %1, %2 = call @inner %0 : f32[2], f32[2] at "body.rs":4
  %3, %4 = call @inner %1 : f32[2], f32[2] at "body.rs":5
  %5 = add %3, %4 : f32[2] at "body.rs":6
  return y = %5
}
func @plain {
  input %0 x : f32[2] at "plain.rs":1
  %1 = call @outer %0 : f32[2] at "plain.rs":2
  return y = %1
}
func @main {
  input %0 x : f32[2] at "user.rs":1
  %1 = call @plain %0 : f32[2] scope "head" at "user.rs":2
  %2 = call @outer %1 : f32[2] at "user.rs":3
  return y = %2
}
"#;

#[test]
fn inlined_nodes_carry_the_place_of_the_call() {
    let module = Module::parse(NESTED).unwrap();
    let flat = inline_calls(&module, FuncId(3), |_| true);
    let places: Vec<String> = flat.nodes.iter().map(|n| format!("{} {} {}", n.op.name(), n.scope, n.loc)).collect();
    let expected = [
        "exp head/outer()/inner()/own user.rs:2",
        "exp head/outer()/inner()/own user.rs:2",
        "add head/outer() user.rs:2",
        "exp outer()/inner()/own user.rs:3",
        "exp outer()/inner()/own user.rs:3",
        "add outer() user.rs:3",
    ];
    assert_eq!(places, expected);
    let (flat, _) = live_functions(&with_main(&module, flat), &[FuncId(3)]);
    verify(&flat, Stage::Planned).unwrap();
}

#[test]
fn what_is_not_to_be_inlined_stays_a_call() {
    let module = Module::parse(NESTED).unwrap();
    let flat = inline_calls(&module, FuncId(3), |f| f.name != "inner");
    let calls = flat.nodes.iter().filter(|n| matches!(n.op, Op::Call(FuncId(0)))).count();
    assert_eq!((calls, flat.nodes.len()), (4, 6));
    let same = inline_calls(&module, FuncId(3), |_| false);
    assert_eq!(same, module.functions[3]);
}

#[test]
fn deep_chains_of_calls_are_inlined_without_recursion() {
    let mut text = String::from("func @f0 {\n input %0 x : f32[1]\n %1 = exp %0 : f32[1]\n return y = %1\n}\n");
    for i in 1..20_000 {
        let before = i - 1;
        text += &format!("func @f{i} {{ input %0 x : f32[1] %1 = call @f{before} %0 : f32[1] return y = %1 }}\n");
    }
    let module = Module::parse(text).unwrap();
    let flat = inline_calls(&module, FuncId(19_999), |_| true);
    assert_eq!((flat.nodes.len(), flat.nodes[0].op.name()), (1, "exp"));
}

#[test]
fn functions_that_nothing_reaches_go() {
    let module = rich();
    let main = main_of(&module);
    let (same, roots) = live_functions(&module, &[main]);
    assert_eq!((same, roots), (module.clone(), vec![main]));
    let flat = with_main(&module, inline_calls(&module, main, |f| f.name != "a body"));
    let (pruned, roots) = live_functions(&flat, &[main]);
    let names: Vec<&str> = pruned.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!((names, roots), (vec!["a body", "main"], vec![FuncId(1)]));
    verify(&pruned, Stage::Decomposed).unwrap();
}

#[test]
fn canonical_functions_stay_and_order_is_checked() {
    let module = rich();
    for function in &module.functions {
        assert_eq!(&canonical(function), function);
        assert!(is_topological(function));
    }
    let mut wrong = module.functions[3].clone();
    wrong.nodes.reverse();
    assert!(!is_topological(&wrong));
}
