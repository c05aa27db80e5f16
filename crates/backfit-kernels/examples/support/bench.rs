//! What the benchmarks share: a team of spinning threads, and alternating measurements.

use backfit_kernels::context::Context;
use backfit_kernels::isa::Isa;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Runs closures on a number of threads, which spin in between.
pub struct Team {
    threads: usize,
}

impl Team {
    /// A team of this many threads.
    pub fn new(threads: usize) -> Team {
        Team { threads }
    }

    /// Its number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `part` once on every thread and returns seconds, without the time to start threads.
    pub fn run(&self, isa: Isa, bases: &[*mut u8], scratch: usize, part: impl Fn(&Context) + Sync) -> f64 {
        struct Shared<T>(T);
        // SAFETY: the kernels write disjoint parts.
        unsafe impl<T> Sync for Shared<T> {}
        let bases = &Shared(bases);
        let (ready, go, done) = (Barrier::new(self.threads), AtomicBool::new(false), AtomicUsize::new(0));
        let work = |thread: usize| {
            let bases: &Shared<&[*mut u8]> = bases;
            let mut memory = vec![[0u64; 8]; scratch / 64 + 2];
            let address = memory.as_mut_ptr() as usize;
            let scratch = address.next_multiple_of(64) as *mut u8;
            let ctx = Context { thread, threads: self.threads, bases: bases.0, isa, scratch };
            ready.wait();
            if thread > 0 {
                while !go.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                for _ in 0..REPEAT {
                    round(&done, self.threads, || part(&ctx));
                }
                return 0.0;
            }
            part(&ctx); // warm the scratch
            let start = Instant::now();
            go.store(true, Ordering::Release);
            for _ in 0..REPEAT {
                round(&done, self.threads, || part(&ctx));
            }
            start.elapsed().as_secs_f64() / REPEAT as f64
        };
        std::thread::scope(|scope| {
            for thread in 1..self.threads {
                scope.spawn(move || work(thread));
            }
            work(0)
        })
    }
}

/// Runs per measurement.
const REPEAT: usize = 5;

/// Works, then waits until all have worked.
fn round(done: &AtomicUsize, threads: usize, work: impl Fn()) {
    work();
    let arrived = done.fetch_add(1, Ordering::AcqRel) + 1;
    let target = arrived.next_multiple_of(threads);
    let mut spins = 0u32;
    while done.load(Ordering::Acquire) < target {
        std::hint::spin_loop();
        spins += 1;
        if spins > 1000 {
            std::thread::yield_now(); // other processes may hold the core
        }
    }
}

/// Median seconds of two alternatives.
pub struct Pair {
    ours: f64,
    theirs: f64,
}

impl Pair {
    /// Measures both in alternation. `ours` returns its own seconds.
    pub fn alternate(mut ours: impl FnMut() -> f64, mut theirs: impl FnMut()) -> Pair {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let begun = Instant::now();
        while a.len() < 9 || (a.len() < 60 && begun.elapsed().as_secs_f64() < 0.4) {
            a.push(ours());
            theirs();
            let start = Instant::now();
            for _ in 0..REPEAT {
                theirs();
            }
            b.push(start.elapsed().as_secs_f64() / REPEAT as f64);
        }
        a.sort_by(f64::total_cmp);
        b.sort_by(f64::total_cmp);
        Pair { ours: a[a.len() / 2], theirs: b[b.len() / 2] }
    }

    /// One line: speeds and their ratio.
    pub fn print(&self, name: &str, threads: usize, flops: f64) {
        println!(
            "{name:28} {threads} threads  ours {:7.1}  theirs {:7.1}  ratio {:.2}",
            flops / self.ours / 1e9,
            flops / self.theirs / 1e9,
            self.theirs / self.ours
        );
    }
}
