//! From the second step on nothing is allocated, on any thread.
#![allow(unsafe_code)] // an allocator that counts cannot be written without

use backfit::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's obligations are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    run();
    ALLOCATIONS.load(Ordering::SeqCst) - before
}

fn network(at_once: usize) -> (Trainer, Vec<Batch>) {
    let digits = datasets::digits().unwrap().take(256).to_unit("image").unwrap();
    let g = Graph::new();
    let x = g.input("image", F32, [64, 1, 28, 28]);
    let label = g.input("label", I32, [64]);
    let h = nn::batch_norm(&g, "bn", &nn::conv2d(&g, "conv", &x, 4, [3, 3])).relu().max_pool2d([2, 2], [2, 2], [0, 0]);
    let h = nn::linear(&g, "fc1", &h.flatten(1).dropout(0.1), 32).gelu();
    let logits = nn::linear(&g, "fc2", &h, 10);
    let step = TrainStep::new(&logits.cross_entropy(&label))
        .optimizer(Adam::new(1e-3))
        .clip(Clip::GlobalNorm(1.0))
        .unroll(at_once);
    let step = step.loss_scale(LossScale::dynamic()).ema(0.9);
    let model = step.report("accuracy", &logits.accuracy(&label)).build().unwrap();
    let trainer = Trainer::new(model.compile(&Cpu::default().threads(2)).unwrap());
    (trainer, digits.batches(64).map(Result::unwrap).collect())
}

// One test, so that no other thread of the harness allocates while it counts.
#[test]
fn steps_do_not_allocate_and_the_counter_sees_what_does() {
    let (mut trainer, batches) = network(1);
    trainer.step(&batches[0]).unwrap();
    for batch in batches.iter().cycle().take(8) {
        let found = allocations(|| {
            let out = trainer.step(batch).unwrap();
            assert!(out["loss"].is_finite() && !out.skipped());
        });
        assert_eq!(found, 0);
    }
    let (mut several, batches) = network(2);
    several.step_all(&batches).unwrap();
    assert_eq!(allocations(|| assert_eq!(several.step_all(&batches).unwrap().len(), 4)), 0);
    let mut kept = Vec::with_capacity(4);
    assert!(allocations(|| kept.extend(batches.iter().map(|batch| trainer.step(batch).unwrap()))) > 0);
    assert!(allocations(|| drop(std::hint::black_box(vec![1_u8]))) > 0);
    assert!(allocations(|| drop(std::thread::spawn(|| vec![1_u8]).join())) > 0);
}
