//! Gradients through loops, against unrolled graphs and central differences.

use super::{arguments, assert_near, count, evaluate, input, module, weighted};
use backfit_cpu::Cpu;
use backfit_grad::{grad_check, gradients};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, FuncId, Graph, Tensor};
use backfit_suites::compare::on_cpu;

const STEPS: usize = 4;

/// One step: the new state, and an output.
fn cell(h: &Tensor, w: &Tensor, x: &Tensor) -> [Tensor; 2] {
    let new = (h.matmul(w) + x).tanh();
    let out = &new * &new + h;
    [new, out]
}

/// `cell` as the body of a loop; `spare` gives it results that nobody uses.
fn body(g: &Graph, spare: bool) -> FuncId {
    let f = g.function("cell");
    let [h, w, x] =
        [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![2, 3])].map(|(name, dims)| input(&f, name, &dims));
    let [new, out] = cell(&h, &w, &x);
    f.result("h", &new);
    f.result("out", &out);
    if spare {
        f.result("spare", &new.exp().sum_all());
        f.result("copy", &out);
        f.result("same x", &x);
    }
    g.define(f).expect("a body")
}

/// What a loss is made of.
#[derive(Clone, Copy)]
struct Loss {
    state: bool,
    outputs: bool,
}

const BOTH: Loss = Loss { state: true, outputs: true };

struct Rnn {
    g: Graph,
    inputs: [Tensor; 3],
    loss: Tensor,
}

impl Rnn {
    fn new(of: Loss, run: impl FnOnce(&Graph, &[Tensor; 3]) -> [Tensor; 2]) -> Self {
        let g = Graph::new();
        let inputs = [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![STEPS, 2, 3])];
        let inputs = inputs.map(|(name, dims)| input(&g, name, &dims));
        let [state, outputs] = run(&g, &inputs);
        let terms = [(of.state, state), (of.outputs, outputs)].into_iter().enumerate();
        let terms = terms.filter(|(_, (used, _))| *used).map(|(i, (_, t))| weighted(&t, i as u64 + 1));
        let loss = terms.reduce(|a, b| a + b).expect("a term");
        Rnn { g, inputs, loss }
    }

    fn looped(of: Loss, reverse: bool, spare: bool) -> Self {
        Rnn::new(of, |g, [h, w, x]| {
            let scan = Scan { body: body(g, spare), carries: 1, constants: 1, trip_count: STEPS, reverse };
            let mut results = g.scan(scan, &[h], &[w], &[x]).into_iter();
            [results.next().expect("the state"), results.next().expect("the outputs")]
        })
    }

    fn unrolled(of: Loss, reverse: bool) -> Self {
        Rnn::new(of, |g, [h, w, x]| {
            let mut h = h.clone();
            let mut outputs: Vec<Option<Tensor>> = vec![None; STEPS];
            for i in 0..STEPS {
                let at = if reverse { STEPS - 1 - i } else { i };
                let [new, out] = cell(&h, w, &x.narrow(0, at, 1).squeeze(0));
                h = new;
                outputs[at] = Some(out.unsqueeze(0));
            }
            [h, g.concatenate(&outputs.iter().flatten().collect::<Vec<_>>(), 0)]
        })
    }

    fn gradients(&self) -> Vec<Tensor> {
        gradients(&self.loss, &self.inputs.each_ref()).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The loss and all gradients.
    fn values(&self) -> Vec<Vec<f64>> {
        let found = self.gradients();
        let results: Vec<&Tensor> = std::iter::once(&self.loss).chain(&found).collect();
        evaluate(&self.g, &results)
    }
}

#[test]
fn a_loop_has_the_gradients_of_the_unrolled_graph() {
    let losses = [BOTH, Loss { state: true, outputs: false }, Loss { state: false, outputs: true }];
    for of in losses {
        for reverse in [false, true] {
            let unrolled = Rnn::unrolled(of, reverse).values();
            assert_near(&Rnn::looped(of, reverse, false).values(), &unrolled);
            assert_near(&Rnn::looped(of, reverse, true).values(), &unrolled);
        }
    }
}

#[test]
fn gradients_and_second_derivatives_of_loops_equal_central_differences() {
    for reverse in [false, true] {
        let rnn = Rnn::looped(BOTH, reverse, true);
        assert!(grad_check(&rnn.loss, &[]).unwrap().worst() <= 1e-8);
        let terms = rnn.gradients().into_iter().enumerate().map(|(i, t)| weighted(&t, i as u64 + 5));
        let report = grad_check(&terms.reduce(|a, b| a + b).unwrap(), &[]).unwrap();
        assert!(report.worst() <= 1e-7, "{report}");
    }
}

#[test]
fn on_the_cpu_loops_have_the_same_gradients_to_second_order() {
    for reverse in [false, true] {
        let rnn = Rnn::looped(BOTH, reverse, true);
        let mut results = rnn.gradients();
        let second = weighted(&results[1], 3);
        results.extend(gradients(&second, &rnn.inputs.each_ref()).unwrap());
        let results: Vec<&Tensor> = results.iter().collect();
        let found = on_cpu(&Cpu::default().threads(2), &module(&rnn.g, &results), &arguments(&rnn.g)).unwrap();
        let found: Vec<Vec<f64>> = found.iter().map(backfit_ir::Literal::to_f64).collect();
        assert_near(&found, &evaluate(&rnn.g, &results));
    }
}

#[test]
fn a_loop_computes_only_the_gradients_that_are_asked_for() {
    let products = |wanted: &[usize]| {
        let rnn = Rnn::looped(BOTH, false, false);
        let targets: Vec<&Tensor> = wanted.iter().map(|&i| &rnn.inputs[i]).collect();
        let found = gradients(&rnn.loss, &targets).unwrap();
        let module = module(&rnn.g, &found.iter().collect::<Vec<_>>());
        let roots = [backfit_ir::FuncId(module.functions.len() as u32 - 1)];
        let (live, _) = backfit_ir::rewrite::live_functions(&module, &roots);
        let bodies = live.functions.iter().flat_map(|f| &f.nodes).filter_map(|n| match &n.op {
            backfit_ir::Op::Scan(scan) => Some(scan.body),
            _ => None,
        });
        let inlined = |body| backfit_ir::rewrite::inline_calls(&live, body, |_| true).nodes;
        bodies.flat_map(inlined).filter(|n| n.op.name() == "dot_general").count()
    };
    assert_eq!(products(&[0]), 2, "the state: its own product, and that of its cotangent");
    assert_eq!(products(&[2]), 2, "the inputs: no product for the weights");
    assert_eq!(products(&[0, 1, 2]), 3, "all: one more for the weights");
}

#[test]
fn weights_that_only_the_outputs_use_get_their_sum() {
    let g = Graph::new();
    let f = g.function("scaled");
    let [n, w, x] = [f.input("n", DType::I32, [] as [usize; 0]), input(&f, "w", &[3]), input(&f, "x", &[3])];
    f.result("n", &(&n + 1.0));
    f.result("y", &(&w * &x * n.cast(DType::F64)));
    let body = g.define(f).unwrap();
    let (w, x) = (input(&g, "w", &[3]), input(&g, "x", &[STEPS, 3]));
    let scan = Scan { body, carries: 1, constants: 1, trip_count: STEPS, reverse: false };
    let y = g.scan(scan, &[&g.scalar(DType::I32, 1.0)], &[&w], &[&x]);
    let loss = weighted(&y[1], 1);
    assert_eq!(gradients(&loss, &[&w]).unwrap()[0].ty(), w.ty());
    assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
}

#[test]
fn loops_of_one_step_and_of_none_are_differentiated() {
    for trip_count in [0, 1] {
        let g = Graph::new();
        let inputs = [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![trip_count, 2, 3])];
        let [h, w, x] = inputs.map(|(name, dims)| input(&g, name, &dims));
        let scan = Scan { body: body(&g, true), carries: 1, constants: 1, trip_count, reverse: false };
        let loss = weighted(&g.scan(scan, &[&h], &[&w], &[&x])[0], 1);
        let found = gradients(&loss, &[&h, &w, &x]).unwrap();
        let values = evaluate(&g, &found.iter().collect::<Vec<_>>());
        assert_eq!(values[1].iter().all(|v| *v == 0.0), trip_count == 0);
        assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
    }
}

#[test]
fn loops_within_loops_and_functions_are_differentiated() {
    let g = Graph::new();
    let inner = body(&g, false);
    let f = g.function("outer");
    let [h, w, x] =
        [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![2, 2, 3])].map(|(name, dims)| input(&f, name, &dims));
    let scan = Scan { body: inner, carries: 1, constants: 1, trip_count: 2, reverse: true };
    let y = f.scan(scan, &[&h], &[&w], &[&x]);
    f.result("h", &y[0].softmax(-1));
    f.result("sums", &y[1].sum(&[0, 1]));
    let outer = g.define(f).unwrap();
    let [h, w, x] =
        [("h", vec![2, 3]), ("w", vec![3, 3]), ("x", vec![3, 2, 2, 3])].map(|(name, dims)| input(&g, name, &dims));
    let scan = Scan { body: outer, carries: 1, constants: 1, trip_count: 3, reverse: false };
    let y = g.scan(scan, &[&h], &[&w], &[&x]);
    let loss = weighted(&y[0], 1) + weighted(&y[1], 2);
    assert!(grad_check(&loss, &[]).unwrap().worst() <= 1e-8);
    let first = gradients(&loss, &[&w]).unwrap();
    assert!(count(&module(&g, &[&first[0]]), "scan") >= 2);
    assert!(grad_check(&weighted(&first[0], 3), &[]).unwrap().worst() <= 1e-7);
}
