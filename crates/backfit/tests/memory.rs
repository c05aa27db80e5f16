//! What a program needs is what its report says, and little more than what is alive at once.
#![allow(unsafe_code)] // an allocator that measures cannot be written without

use backfit::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which notes the largest zeroed allocation.
struct Measuring;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's obligations are those of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

fn step(logits: &Tensor, label: &Tensor, optimizer: AdamW) -> TrainStep {
    TrainStep::new(&logits.cross_entropy(label)).optimizer(optimizer).clip(Clip::GlobalNorm(1.0))
}

fn perceptron() -> TrainStep {
    let g = Graph::new();
    let (x, label) = (g.input("x", F32, [128, 784]), g.input("label", I32, [128]));
    let logits = nn::linear(&g, "fc2", &nn::linear(&g, "fc1", &x, 256).gelu(), 10);
    step(&logits, &label, AdamW::new(1e-3))
}

fn convolutional() -> TrainStep {
    let g = Graph::new();
    let (x, label) = (g.input("x", F32, [64, 3, 32, 32]), g.input("label", I32, [64]));
    let block = |name: &str, x: &Tensor, channels: usize| {
        let y = nn::Conv2d::new(&format!("{name}.conv"), channels, [3, 3]).padding([1, 1]).bias(false).apply(&g, x);
        nn::BatchNorm::new(&format!("{name}.bn")).apply(&g, &y).relu().max_pool2d([2, 2], [2, 2], [0, 0])
    };
    let h = block("block2", &block("block1", &x, 16), 32).flatten(1);
    step(&nn::linear(&g, "fc", &nn::dropout(&h, 0.25), 10), &label, AdamW::new(1e-3))
}

fn transformer() -> TrainStep {
    let g = Graph::new();
    let (tokens, next) = (g.input("tokens", I32, [16, 64]), g.input("next", I32, [16, 64]));
    let mut x = nn::embedding(&g, "tokens", &tokens, 128, 64);
    for layer in 0..2 {
        let block = nn::TransformerBlock::new(&format!("block{layer}"), 4, 192);
        x = block.causal(true).gated().kv_heads(2).rotary(Rotary::default()).apply(&g, &x);
    }
    step(&nn::linear(&g, "head", &nn::rms_norm(&g, "norm", &x), 128), &next, AdamW::new(1e-3))
}

// One test, so that no other thread of the harness allocates while it measures.
#[test]
fn programs_take_what_their_reports_say_and_at_most_a_tenth_more_than_what_lives_at_once() {
    for (name, step) in
        [("perceptron", perceptron()), ("convolutional", convolutional()), ("transformer", transformer())]
    {
        let model = step.build().unwrap();
        LARGEST.store(0, Ordering::SeqCst);
        let executable = model.compile(&Cpu::default().threads(2)).unwrap();
        let executable = executable.executable();
        let memory = executable.memory();
        assert_eq!(LARGEST.load(Ordering::SeqCst), memory.total_bytes, "{name}");
        let parts = memory.resident_bytes + memory.constant_bytes + memory.staging_bytes + memory.arena_bytes;
        let rounding = 64 * (4 + executable.residents().len());
        assert!((parts..parts + rounding).contains(&memory.total_bytes), "{name}: {memory:?}");
        for function in executable.functions() {
            let (arena, live) = (function.plan.arena_bytes, function.plan.largest_live_bytes);
            assert!(arena <= memory.arena_bytes, "{name}, {}", function.name);
            println!(
                "{name} {}: arena {arena}, alive at once {live}: {:.3}",
                function.name,
                arena as f64 / live as f64
            );
            if function.name == "step" {
                assert!(arena as f64 <= 1.1 * live as f64, "{name}: arena {arena}, alive at once {live}");
            }
        }
    }
}
