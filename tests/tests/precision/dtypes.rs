//! In which dtypes compiled programs store what.

use backfit_compile::pipeline::{Lowered, Options, lower};
use backfit_compile::precision::policy::Exception;
use backfit_compile::precision::{Class, Compute, Policy};
use backfit_compile::target::{Executable, Program};
use backfit_cpu::Cpu;
use backfit_grad::{Adam, Clip, Sgd, TrainModule, TrainStep};
use backfit_ir::op::Monoid;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, Def, Function, Graph, Init, Node, Op, Role, Type, ValueId};
use backfit_suites::compare::on_cpu_in;
use backfit_suites::oracle::models::models;

/// The training programs of the oracle's models.
fn programs() -> Vec<(String, TrainModule)> {
    let step = |model: &backfit_suites::oracle::models::Model| {
        let built = model.build(DType::F32);
        let step = TrainStep::new(&built.loss).optimizer(Adam::new(1e-3)).predict(&built.logits);
        (model.name.clone(), step.build().unwrap())
    };
    models().iter().map(step).collect()
}

fn lowered(program: &TrainModule, policy: &Policy) -> Lowered {
    let options = Options { precision: policy.clone(), ..Options::default() };
    lower(&program.module, &[program.init, program.step, program.eval], &options).unwrap()
}

fn of_scope(f: &Function, scope: &str) -> Vec<Node> {
    f.nodes.iter().filter(|n| n.scope.split('/').next() == Some(scope)).cloned().collect()
}

fn is_product(node: &&Node) -> bool {
    matches!(node.op, Op::DotGeneral(_) | Op::Convolution(_))
}

#[test]
fn under_f32_the_stage_changes_nothing() {
    for (name, program) in programs() {
        let lowered = lowered(&program, &Policy::f32());
        let after = |stage: &str| &lowered.stages.iter().find(|s| s.name == stage).unwrap().module;
        assert_eq!(after("precision"), after("differentiate"), "{name}");
    }
}

#[test]
fn a_policy_prints_for_updates_what_becomes_of_them() {
    let built = models()[0].build(DType::F32);
    let step = TrainStep::new(&built.loss).clip(Clip::GlobalNorm(1.0));
    let programs = [step.clone().optimizer(Adam::new(1e-3)), step.optimizer(Sgd::new(1e-3))];
    let programs = programs.map(|step| step.build().unwrap());
    for plain in Policy::NAMES.into_iter().filter_map(Policy::named) {
        for narrow in [Compute::F16, Compute::Bf16] {
            let within = Exception { scope: "**".to_owned(), class: Some(Class::Update), compute: narrow };
            let said = [plain.clone().with(Class::Update, narrow), plain.clone().except(within)];
            for policy in said {
                let changes = |program| lowered(program, &policy).module != lowered(program, &plain).module;
                let expected = match programs.each_ref().map(changes) {
                    [false, false] => "f32",
                    [true, false] => "f16 for Adam, f32 for all else",
                    other => panic!("Adam and SGD change: {other:?} with {policy}"),
                };
                let printed = policy.to_string();
                let row = printed.lines().filter_map(|line| line.trim().strip_prefix("update ")).next_back().unwrap();
                assert_eq!(row.trim().trim_end_matches(" within **"), expected, "{printed}");
                assert_eq!(policy.compute(Class::Update, "step()/adam_update()").word(), &expected[..3], "{printed}");
            }
        }
    }
}

#[test]
fn in_bf16_products_have_bf16_operands_and_f32_sums_and_weights_are_cast_once() {
    for (name, program) in programs() {
        let lowered = lowered(&program, &Policy::bf16());
        let step = lowered.module.function(lowered.roots[1]);
        let products: Vec<&Node> = step.nodes.iter().filter(is_product).collect();
        assert!(products.len() >= 5);
        for node in products {
            assert!(node.operands.iter().all(|&v| step.ty(v).dtype == DType::BF16), "{name}: {}", node.scope);
            let accumulator = match &node.op {
                Op::DotGeneral(dot) => dot.accumulator,
                Op::Convolution(convolution) => convolution.accumulator,
                _ => unreachable!(),
            };
            assert_eq!(accumulator, DType::F32);
        }
        let weights = step.params.iter().filter(|p| p.role == Role::Weight { trainable: true });
        for param in weights {
            let casts = |n: &&Node| n.op == Op::Cast(DType::BF16) && n.operands == [param.value];
            assert!(step.nodes.iter().filter(casts).count() <= 1, "{name}: {} is cast more than once", param.name);
        }
        for node in of_scope(step, "step") {
            let narrow = node.results.iter().any(|&v| step.ty(v).dtype == DType::BF16);
            assert!(!narrow, "{name}: {} of the update is bf16", node.op.name());
        }
    }
}

#[test]
fn inputs_results_and_the_resident_store_keep_their_dtypes() {
    for (name, program) in programs().into_iter().take(2) {
        let functions = vec![("init".to_owned(), program.init), ("step".to_owned(), program.step)];
        let program = Program::new(program.module, functions);
        let build = |policy| Cpu::default().threads(1).build(&program.clone().precision(policy)).unwrap();
        let declared = build(Policy::f32());
        for policy in [Policy::bf16(), Policy::bf16x3(), Policy::f16_engine()] {
            let built = build(policy);
            assert_eq!(built.signatures(), declared.signatures(), "{name}");
            assert_eq!(built.residents(), declared.residents(), "{name}");
        }
    }
}

/// What an f16 engine may have in f32: what is fed and returned and lies in the resident store, what the host does with it, and
/// casts between the two.
fn may_be_wide(f: &Function, value: ValueId) -> bool {
    let is_of_host = |node: &Node| matches!(Class::of(node), Class::Update | Class::Random);
    let Def::Node { node, .. } = f.values[value.index()].def else { return true };
    let node = &f.nodes[node];
    let read_by_host = || {
        let returned = f.results.iter().any(|r| r.value == value);
        returned || f.nodes.iter().filter(|n| n.operands.contains(&value)).all(is_of_host)
    };
    is_of_host(node) || matches!(node.op, Op::Cast(_)) && read_by_host()
}

#[test]
fn on_an_f16_engine_every_stored_value_is_f16_and_every_sum_a_contraction() {
    for (name, program) in programs() {
        let lowered = lowered(&program, &Policy::f16_engine());
        for &root in &lowered.roots[1..] {
            let f = lowered.module.function(root);
            for (index, value) in f.values.iter().enumerate().filter(|(_, v)| v.ty.dtype == DType::F32) {
                let id = ValueId(index as u32);
                let node = f.node_of(id).map(|n| format!("{} in '{}'", n.op.name(), n.scope));
                assert!(may_be_wide(f, id), "{name}: {node:?} is {}", value.ty);
            }
            for node in f.nodes.iter().filter(|n| Class::of(n) != Class::Update) {
                let sum = matches!(node.op, Op::Reduce { monoid: Monoid::Sum, .. });
                assert!(!sum || f.ty(node.results[0]).dtype.is_integer(), "{name}: a sum in '{}'", node.scope);
            }
        }
    }
}

#[test]
fn exceptions_by_scope_hold_forward_and_backward() {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [8, 16]);
    let layer = |name: &str, x: &backfit_ir::Tensor, out: usize| {
        let _scope = g.enter(name);
        x.linear(&g.weight("weight", Type::new(DType::F32, [out, x.dim(-1)]), Init::Constant(0.1)), None)
    };
    let logits = layer("head", &layer("body", &x, 16).relu(), 4);
    let program = TrainStep::new(&logits.mse(&g.input("y", DType::F32, [8, 4]))).optimizer(Adam::new(1e-3));
    let lowered = lowered(&program.build().unwrap(), &Policy::bf16().within("head/**", Compute::F32));
    let step = lowered.module.function(lowered.roots[1]);
    for (scope, dtype, count) in [("head", DType::F32, 3), ("body", DType::BF16, 2)] {
        let nodes = of_scope(step, scope);
        let products: Vec<&Node> = nodes.iter().filter(is_product).collect();
        assert_eq!(products.len(), count, "{scope}");
        assert!(products.iter().all(|n| n.operands.iter().all(|&v| step.ty(v).dtype == dtype)), "{scope}");
    }
}

#[test]
fn tests_of_numbers_see_them_as_they_are_stored() {
    // In bf16 both inputs are 1.
    let g = Graph::new();
    let x = g.input("x", DType::F32, [2]);
    let above = x.gt(&x.like(1.001));
    g.result("y", &above.select(&(&x * 2.0), &(&x * 0.5)));
    let module = g.finish().unwrap();
    let inputs = [backfit_ir::Literal::from_f32([2], &[1.0, 1.002])];
    let found = on_cpu_in(&Cpu::default().threads(1), &Policy::bf16(), &module, &inputs).unwrap();
    assert_eq!(found[0].to_f64(), [0.5, 2.0]);
}

#[test]
fn loops_take_weights_cast_once_outside_and_stack_narrow_values() {
    let g = Graph::new();
    let body = g.function("layer");
    let h = body.input("h", DType::F32, [4, 8]);
    let shared = body.input("shared", DType::F32, [8, 8]);
    let own = body.input("own", DType::F32, [8, 8]);
    let y = h.matmul(&own).gelu().matmul(&shared);
    body.result("h", &(&h + &y));
    let body = g.define(body).unwrap();
    let x = g.input("x", DType::F32, [4, 8]);
    let weight = |name: &str, shape: &[usize]| g.weight(name, Type::new(DType::F32, shape), Init::Constant(0.01));
    let (shared, stacked) = (weight("shared", &[8, 8]), weight("stacked", &[3, 8, 8]));
    let scan = Scan { body, carries: 1, constants: 1, trip_count: 3, reverse: false };
    let out = g.scan(scan, &[&x], &[&shared], &[&stacked]).remove(0);
    let program = TrainStep::new(&(&out * &out).mean_all()).optimizer(Adam::new(1e-3)).build().unwrap();
    let lowered = lowered(&program, &Policy::bf16());
    let step = lowered.module.function(lowered.roots[1]);
    let loops: Vec<(&Node, &Scan)> =
        step.nodes.iter().filter_map(|n| if let Op::Scan(scan) = &n.op { Some((n, scan)) } else { None }).collect();
    assert_eq!(loops.len(), 2);
    for (node, scan) in loops {
        let dtypes: Vec<DType> = node.operands.iter().map(|&v| step.ty(v).dtype).collect();
        assert!(dtypes[scan.carries..].iter().all(|d| *d == DType::BF16), "{dtypes:?}");
        // Forward stacks what backward reads; backward stacks gradients, which the update reads as they are.
        let stacked = if scan.reverse { DType::F32 } else { DType::BF16 };
        assert!(node.results[scan.carries..].iter().all(|&v| step.ty(v).dtype == stacked));
        let sums = lowered.module.function(scan.body).nodes.iter().filter(|n| n.scope.ends_with("sum.backward()"));
        let wide = |n: &Node| lowered.module.function(scan.body).ty(n.results[0]).dtype == DType::F32;
        assert_eq!(sums.map(wide).collect::<Vec<_>>(), vec![true; usize::from(scan.reverse)]);
    }
}
