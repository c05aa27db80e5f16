//! Modules to test with.

use backfit_ir::interp::Array;
use backfit_ir::ops::{REGISTRY, Sample};
use backfit_ir::{DType, Graph, Literal, Module, Role};

/// A sample as a module of one program, with its arguments.
pub struct Case {
    pub label: String,
    pub module: Module,
    pub arguments: Vec<Array>,
}

/// Every sample of every operator, in every dtype.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for definition in REGISTRY {
        for sample in (definition.samples)() {
            for &dtype in sample.dtypes {
                cases.extend(case(definition.name, &sample, dtype));
            }
        }
    }
    cases
}

/// `None` where the sample does not build in this dtype, which the operators' own tests look at.
fn case(name: &str, sample: &Sample, dtype: DType) -> Option<Case> {
    let literals: Vec<Literal> = sample.inputs.iter().map(|input| converted(input, dtype)).collect();
    let graph = Graph::new();
    let inputs: Vec<_> = (literals.iter().enumerate())
        .map(|(i, literal)| graph.parameter(&format!("x{i}"), literal.ty().clone(), Role::Input, None))
        .collect();
    for (i, result) in (sample.build)(&graph, &inputs).iter().enumerate() {
        graph.result(&format!("y{i}"), result);
    }
    let arguments = literals.iter().map(Array::from_literal).collect();
    let label = format!("{name}: {} in {dtype}", sample.label);
    graph.finish().ok().map(|module| Case { label, module, arguments })
}

/// f64 inputs follow a float dtype, i64 inputs any other.
fn converted(literal: &Literal, dtype: DType) -> Literal {
    let ty = literal.ty().with_dtype(dtype);
    match literal.ty().dtype {
        DType::F64 if dtype.is_float() => Literal::from_f64(ty, &literal.to_f64()),
        DType::I64 if !dtype.is_float() => Literal::from_i64(ty, &literal.to_i64()),
        _ => literal.clone(),
    }
}

/// A program with every construct of the text form.
pub const RICH: &str = r#"
// The body of a composite, called below.
func @softmax composite softmax {axis=-1} {
  input %0 x0 : f32[2,3] at "src/main.rs":1
  %1 = exp %0 : f32[2,3] at "src/main.rs":1
  %2 = reduce %1 {monoid="sum", axes=[1], accumulator=f32} : f32[2] at "src/main.rs":1
  %3 = broadcast %2 {shape=[2,3], axes=[0]} : f32[2,3] at "src/main.rs":1
  %4 = div %1, %3 : f32[2,3] at "src/main.rs":1
  return y0 = %4
}

func @"a body" {
  input %0 carry : f32[3] at "src/main.rs":2
  input %1 constant : f32[3] at "src/main.rs":2
  input %2 slice : f32[3] at "src/main.rs":2
  %3 = add %0, %1 : f32[3] scope "loop" at "src/main.rs":3
  %4 = mul %3, %2 : f32[3] scope "loop" at "src/main.rs":4
  return carry = %3
  return out = %4
}

func @nothing {
}

func @main {
  input %0 x : f32[2,3] at "src/main.rs":10
  weight %1 fc1.weight : f32[3] init uniform(-0.5, 0.5) at "src/main.rs":11
  frozen %2 "odd \"name\"\n" : f32[2] init normal(0.0, 1e-45) at "a \\ b.rs":12
  state %3 steps : i64[] init constant(0.0)
  state %4 table : u8[3] init literal [1, 2, 255] at "src/main.rs":13
  hyper %5 lr : f32[] at "src/main.rs":14
  () = call @nothing : () at "src/main.rs":15
  %6 = call @softmax %0 : f32[2,3] scope "head" at "src/main.rs":16
  %7, %8 = scan @"a body" %1, %1, %6 {carries=1, constants=1, trip_count=2, reverse=true} : f32[3], f32[2,3]
  %9 = constant 1 : i64[] at "src/main.rs":17
  %10 = add %3, %9 : i64[] at "src/main.rs":17
  %11 = constant [-0.0, inf, -inf, 0x7fc00001, 1e-45, 0.1] : f32[2,3] at "src/main.rs":18
  %12 = constant splat(0x7ff4000000000000) : f64[4,5] at "src/main.rs":19
  %13 = constant blob 0x00000000000000aa : u8[70] at "src/main.rs":20
  %14 = constant [true, false] : bool[2] at "src/main.rs":21
  %15 = constant [-8, 7, 0] : i4[3] at "src/main.rs":22
  %16 = cast %15 {dtype=i32} : i32[3] at "src/main.rs":22
  %17 = mul %8, %11 : f32[2,3] scope "head/deep" at "src/main.rs":23
  return y = %17
  return "carried on" = %7
  return steps = %10 aliases steps
  return fc1.weight = %7 aliases fc1.weight
  return codes = %16
}

blobs {
  0x00000000000000aa =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    "404142434445"
}
"#;

/// [`RICH`] as a module.
pub fn rich() -> Module {
    Module::parse(RICH).unwrap_or_else(|error| panic!("{error}"))
}
