//! Loops and the same layers written out.

use backfit_compile::precision::{Class, Compute, Policy};
use backfit_cpu::Cpu;
use backfit_grad::gradients;
use backfit_ir::ops::definition::values;
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, Graph, Literal, Tensor};
use backfit_suites::compare::on_cpu_in;

const LAYERS: usize = 3;

fn layer(h: &Tensor, own: &Tensor) -> Tensor {
    h + &h.matmul(own).gelu()
}

/// The last value, and the gradients of the input and of all layers' weights.
fn run(policy: &Policy, stack: fn(&Graph, &Tensor, &Tensor) -> Tensor) -> Vec<Literal> {
    let g = Graph::new();
    let x = g.input("x", DType::F32, [4, 8]);
    let weights = g.input("weights", DType::F32, [LAYERS, 8, 8]);
    let y = stack(&g, &x, &weights);
    let found = gradients(&y.sum_all(), &[&x, &weights]).unwrap();
    for (name, value) in [("y", &y), ("dx", &found[0]), ("dweights", &found[1])] {
        g.result(name, value);
    }
    let literal = |dims: &[usize], seed| {
        let values = values::tensor(dims, -1.0, 1.0, seed);
        Literal::from_f64(values.ty().with_dtype(DType::F32), &values.to_f64())
    };
    let inputs = [literal(&[4, 8], 1), literal(&[LAYERS, 8, 8], 2)];
    on_cpu_in(&Cpu::default().threads(2), policy, &g.finish().unwrap(), &inputs).unwrap()
}

fn looped(g: &Graph, x: &Tensor, weights: &Tensor) -> Tensor {
    let body = g.function("layer");
    let h = body.input("h", DType::F32, [4, 8]);
    body.result("h", &layer(&h, &body.input("own", DType::F32, [8, 8])));
    let body = g.define(body).unwrap();
    let scan = Scan { body, carries: 1, constants: 0, trip_count: LAYERS, reverse: false };
    g.scan(scan, &[x], &[], &[weights]).remove(0)
}

fn written_out(_: &Graph, x: &Tensor, weights: &Tensor) -> Tensor {
    let own = |i| weights.narrow(0, i, 1).reshape([8, 8]);
    (0..LAYERS).fold(x.clone(), |h, i| layer(&h, &own(i)))
}

#[test]
fn a_loop_has_the_bits_of_its_layers_written_out() {
    for name in Policy::NAMES {
        let policy = Policy::named(name).unwrap();
        let (looped, written_out) = (run(&policy, looped), run(&policy, written_out));
        for (what, (looped, written_out)) in ["y", "dx", "dweights"].iter().zip(looped.iter().zip(&written_out)) {
            // Written out, the weights' gradients are padded and added, elementwise.
            let dtype = policy.compute(Class::Elementwise, "").dtype();
            let round = |l: &Literal| Literal::from_f64(l.ty().with_dtype(dtype), &l.to_f64());
            let same = round(looped) == round(written_out) && (looped == written_out || *what == "dweights");
            assert!(same, "{what} under {name}: {:?} and {:?}", looped.to_f64(), written_out.to_f64());
        }
    }
}

#[test]
fn an_exception_for_the_scope_of_a_loop_holds_within_it() {
    let within = |g: &Graph, x: &Tensor, weights: &Tensor| g.scope("layers", || looped(g, x, weights));
    let bf16 = run(&Policy::bf16(), within);
    let excepted = |scope: &str| run(&Policy::bf16().within(scope, Compute::F32), within);
    assert!(excepted("layers/**") == run(&Policy::f32(), within));
    assert!(excepted("others/**") == bf16);
    assert!(excepted("layers/gelu()/**") != bf16, "only what is within the composite");
}
