//! Time of whole training steps: `cargo run --release -p backfit --example step_bench`.
//!
//! `benchmarks/peers.py` times the same steps in other frameworks. Threads: `BACKFIT_BENCH_THREADS`, else all.

use backfit::prelude::*;
use std::time::Instant;

fn main() -> backfit::Result<()> {
    let given = std::env::var("BACKFIT_BENCH_THREADS").ok().and_then(|n| n.parse().ok());
    let cpu = given.map_or_else(Cpu::default, |n| Cpu::default().threads(n));
    for batch in [64, 512] {
        measure(&format!("mlp {batch:4}"), &cpu, &[batch, 784], |g, x| {
            let h = nn::linear(g, "fc1", x, 128).relu();
            nn::linear(g, "fc2", &h, 10)
        })?;
    }
    measure("cnn   64", &cpu, &[64, 3, 32, 32], |g, x| {
        let conv = |name: &str, x: &Tensor, channels: usize| {
            nn::Conv2d::new(name, channels, [3, 3]).padding([1, 1]).apply(g, x).relu()
        };
        let pool = |x: Tensor| x.max_pool2d([2, 2], [2, 2], [0, 0]);
        let h = pool(conv("conv2", &conv("conv1", x, 32), 32));
        let h = pool(conv("conv4", &conv("conv3", &h, 64), 64));
        let h = nn::linear(g, "fc1", &h.flatten(1), 256).relu();
        nn::linear(g, "fc2", &h, 10)
    })
}

/// Builds a classifier, trains it on one batch and prints the median time of a step.
fn measure(name: &str, cpu: &Cpu, dims: &[usize], logits: impl Fn(&Graph, &Tensor) -> Tensor) -> backfit::Result<()> {
    let g = Graph::new();
    let x = g.parameter("x", Type::new(F32, dims), backfit::ir::Role::Input, None);
    let label = g.input("label", I32, [dims[0]]);
    let loss = logits(&g, &x).cross_entropy(&label);
    let model = TrainStep::new(&loss).optimizer(Adam::new(1e-3)).build()?;
    let mut trainer = Trainer::new(model.compile(cpu)?);
    let batch = samples(dims)?.batches(dims[0]).next().expect("there is one batch")?;
    for _ in 0..10 {
        trainer.step(&batch)?;
    }
    let (mut times, begun) = (Vec::new(), Instant::now());
    while times.len() < 20 || (times.len() < 400 && begun.elapsed().as_secs_f64() < 4.0) {
        let start = Instant::now();
        trainer.step(&batch)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{name}  {} threads  {:16} {:8.3} ms", cpu.thread_count(), "backfit", times[times.len() / 2]);
    Ok(())
}

/// One batch of numbers in [0, 1) and classes.
fn samples(dims: &[usize]) -> backfit::Result<Dataset> {
    let ty = Type::new(F32, dims);
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let values: Vec<f64> = (0..ty.shape.elements()).map(|_| f64::from(next()) / f64::from(1 << 24)).collect();
    let labels: Vec<i32> = (0..dims[0]).map(|_| (next() % 10) as i32).collect();
    Dataset::new([("x", Literal::from_f64(ty, &values)), ("label", Literal::from_i32([dims[0]], &labels))])
}
