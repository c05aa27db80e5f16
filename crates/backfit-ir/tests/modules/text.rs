//! parse(print(m)) = m.

use super::support::{RICH, cases, rich};
use backfit_ir::rewrite::canonical_module;
use backfit_ir::text::{Limits, Options, parse, print, print_function};
use backfit_ir::{
    Attributes, Composite, DType, FuncId, Function, Graph, Literal, Loc, Module, Op, Role, Taps, Type, verify,
};

fn round_trip(module: &Module) -> Module {
    let text = module.to_string();
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_sample_is_read_back_as_it_was() {
    let cases = cases();
    assert!(cases.len() > 100);
    for case in &cases {
        verify(&case.module, backfit_ir::Stage::Built).unwrap_or_else(|e| panic!("{}: {e}", case.label));
        assert_eq!(round_trip(&case.module), case.module, "{}", case.label);
    }
}

#[test]
fn every_construct_is_read_back_as_it_was() {
    let module = rich();
    assert_eq!(round_trip(&module), module);
    let again = print(&module, Options::default());
    assert_eq!(print(&round_trip(&module), Options::default()), again);
    assert!(print_function(&module, FuncId(1)).starts_with("func @\"a body\" {\n  input %0 carry : f32[3]"));
}

#[test]
fn what_a_function_keeps_is_read_back_and_a_wrong_word_is_refused() {
    let named = Taps::Named(vec!["attn".to_owned(), "a \"b\"".to_owned()]);
    for (taps, words) in [
        (Taps::All, "func @f {"),
        (Taps::Inputs, "func @f taps inputs {"),
        (named, "func @f taps named(attn, \"a \\\"b\\\"\") {"),
        (Taps::Budget(u64::MAX), "func @f taps budget(18446744073709551615) {"),
    ] {
        let g = Graph::new();
        let f = g.function("f");
        f.taps(taps);
        f.result("y", &f.input("x", DType::F32, [2]).exp());
        let id = g.define(f).unwrap();
        g.result("y", &g.call(id, &[&g.input("x", DType::F32, [2])])[0]);
        let module = g.finish().unwrap();
        let text = module.to_string();
        assert!(text.starts_with(words), "{text}");
        assert_eq!(round_trip(&module), module);
        let error = Module::parse(text.replace("func @f", "func @f taps none")).unwrap_err().to_string();
        assert!(error.contains("expected 'inputs', 'named' or 'budget', found 'none'"), "{error}");
    }
}

#[test]
fn the_text_is_as_a_person_would_write_it() {
    let text = rich().to_string();
    let written: Vec<&str> = RICH.lines().map(str::trim).filter(|l| !l.starts_with("//") && !l.is_empty()).collect();
    for line in written.iter().filter(|line| !line.contains("blob") && !line.starts_with("0x")) {
        assert!(text.lines().any(|l| l.trim() == *line), "{line}\n{text}");
    }
}

#[test]
fn values_are_numbered_by_definition() {
    let mut f = Function::new("late");
    let loc = Loc { file: "f".into(), line: 1 };
    let ty = Type::new(DType::F32, [2]);
    let a = f.add_param("a", ty.clone(), Role::Input, None, loc.clone());
    let sum = f.add_node(Op::Binary(backfit_ir::op::Binary::Add), vec![a, a], vec![ty.clone()], "".into(), loc.clone());
    f.add_param("late", ty, Role::Input, None, loc);
    f.add_result("y", sum[0], None);
    let module = Module { functions: vec![f] };
    assert_ne!(canonical_module(&module), module);
    assert_eq!(round_trip(&module), canonical_module(&module));
}

fn constant(literal: Literal) -> Module {
    let graph = Graph::new();
    graph.constant(literal);
    graph.finish().unwrap()
}

#[test]
fn every_bit_pattern_of_a_half_is_read_back() {
    for dtype in [DType::F16, DType::BF16, DType::I16, DType::U16] {
        for chunk in (0..=u16::MAX).collect::<Vec<_>>().chunks(64) {
            let bytes: Vec<u8> = chunk.iter().flat_map(|bits| bits.to_le_bytes()).collect();
            let module = constant(Literal::from_bytes(Type::new(dtype, [chunk.len()]), bytes).unwrap());
            let text = module.to_string();
            assert!(!text.contains("blob"), "{text}");
            assert_eq!(Module::parse(&text).unwrap(), module, "{text}");
        }
    }
}

#[test]
fn constants_of_every_kind_are_read_back() {
    let literal = |dtype, shape: &[usize], bytes: &[u8]| Literal::from_bytes(Type::new(dtype, shape), bytes.to_vec());
    let all = [
        literal(DType::F32, &[], &0xffc1_2345u32.to_le_bytes()),
        literal(DType::F64, &[1], &0x7ff0_0000_0000_0001u64.to_le_bytes()),
        literal(DType::U64, &[2], &[0xff; 16]),
        literal(DType::I64, &[1, 1], &i64::MIN.to_le_bytes()),
        literal(DType::Bool, &[3], &[0, 1, 7]),
        literal(DType::Bool, &[], &[3]),
        literal(DType::I4, &[3], &[0x8f, 0x07]),
        literal(DType::I4, &[3], &[0x8f, 0xf7]),
        literal(DType::U1, &[], &[0x01]),
        literal(DType::U1, &[], &[0x11]),
        literal(DType::U1, &[9], &[0x55, 0x01]),
        literal(DType::F32, &[0, 3], &[]),
        literal(DType::F32, &[100], &[0; 400]),
        literal(DType::U8, &[1000], &(0..1000).map(|i| i as u8).collect::<Vec<_>>()),
    ];
    for literal in all {
        let module = constant(literal.unwrap());
        assert_eq!(round_trip(&module), module, "{module}");
    }
}

#[test]
fn attributes_are_read_back_bit_for_bit() {
    let floats = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e300, 3.0, 0.1];
    let mut attributes = Attributes::new().with("i", i64::MIN).with("b", true).with("d", DType::BF16);
    for (i, v) in floats.into_iter().enumerate() {
        attributes = attributes.with(&format!("f{i}"), v);
    }
    attributes = attributes.with("odd name", "text \" \\ \n \u{7} é").with("list", vec![1i64, -2]).with("none", vec![]);
    let mut module = rich();
    module.functions[2].composite = Some(Composite { name: "blobs".to_owned(), attributes });
    assert_eq!(round_trip(&module), module);
    module.functions[2].composite = Some(Composite { name: "{}".to_owned(), attributes: Attributes::new() });
    assert_eq!(round_trip(&module), module);
}

#[test]
fn bytes_of_large_constants_can_be_left_out() {
    let module = rich();
    let text = print(&module, Options { blobs: false });
    assert_eq!(text, format!("{module:#}"));
    assert!(!text.contains("blobs"));
    assert!(Module::parse(&text).unwrap_err().to_string().contains("the text has no bytes for blob 0x"));
}

#[test]
fn broken_modules_are_printed() {
    let mut module = rich();
    module.functions[3].nodes[3].operands = vec![backfit_ir::ValueId(999)];
    module.functions[3].nodes[0].op = Op::Call(FuncId(77));
    module.functions[3].results[0].alias = Some(99);
    let text = module.to_string();
    assert!(text.contains("%?999") && text.contains("call @?77") && text.contains("aliases ?"), "{text}");
}

fn refused(text: &str, words: &str) {
    let limits = Limits { splat_bytes: 1000 };
    let error = parse(text.as_bytes(), limits).expect_err(text).to_string();
    assert!(error.contains(words), "{error}\nshould say: {words}\n{text}");
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    let node = |line: &str| format!("func @f {{\n  input %0 x : f32[2]\n  {line}\n}}");
    refused("fun @f {}", "1:1: expected 'func', found 'fun'");
    refused("func @f {", "1:10: expected a parameter, a node, a return or '}', found the end of the text");
    refused("func @f {}\nfunc @f {}", "2:7: there are two functions named 'f'");
    refused("func @f { input %0 é : f32[] }", "1:20: 'é' means nothing here");
    refused(&node("%1 = add %0, %7 : f32[2]"), "3:16: %7 is not defined above");
    refused(&node("%0 = exp %0 : f32[2]"), "3:3: %0 is defined twice");
    refused(&node("%1 = exp %0 : f32[3]"), "3:17: exp gives f32[2] here");
    refused(&node("%1, %2 = exp %0 : f32[2]"), "3:3: exp gives 1 results, 2 are named");
    refused(&node("%1 = frob %0 : f32[2]"), "3:8: frob: there is no such operator");
    refused(&node("%1 = exp %0 {axis=1} : f32[2]"), "3:8: exp: it has no attribute 'axis'");
    refused(&node("%1 = call @g %0 : f32[2]"), "3:14: there is no function 'g' above");
    refused(&node("%1 = call @f %0 : f32[2]"), "3:14: there is no function 'f' above");
    refused(&node("%1 = constant [1, 2] : f32[3]"), "3:8: 2 elements were given for f32[3]");
    refused(&node("%1 = constant 256 : u8[]"), "'256' is no u8");
    refused(&node("%1 = constant 0x1ffff : f16[]"), "'0x1ffff' is no f16");
    refused(&node("%1 = constant 1e39 : f32[]"), "'1e39' is no f32");
    refused(&node("%1 = constant splat(0) : f64[1000000000000]"), "the constants are too large");
    refused(&node("%1 = constant blob 0x1 : f64[]"), "the text has no bytes for blob 0x1");
    refused(&node("%1 = exp %0 : f32[99999999999999999999]"), "found '99999999999999999999'");
    refused(&node("%1 = exp %0 : f32[2] scope \"a"), "3:30: this text has no closing quote in its line");
    refused(&node("%1 = exp %0 : f32[2] scope \"\\x\""), "3:31: expected one of");
    refused(&node("return y = %0 aliases z"), "3:25: there is no parameter 'z'");
    refused(&node("return y = %0 aliases x"), "'x', which is not resident");
    refused(&node("%1 = exp %0 : f32[1,1,1,1,1,1,1,1,1]"), "at most 8 is supported");
    refused("blobs { 0x1 = \"0\" }", "1:15: expected pairs of hexadecimal digits");
    refused("blobs { 0x1 = 0x1 = }", "two blobs 0x1");
    refused("blobs { } func @f {}", "expected nothing after the blobs");
    assert!(Module::parse(b"func \xff").unwrap_err().to_string().contains("1:6: the text is not valid UTF-8"));
}
