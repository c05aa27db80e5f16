//! A fixed set of threads that run one closure together.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long an idle worker spins before it parks.
const SPIN: Duration = Duration::from_millis(1);

/// Spins between two looks at the clock, or two yields.
const SPINS: u32 = 256;

type Job = dyn Fn(usize) + Sync;

/// State that all threads share.
struct Shared {
    /// Number of the present region; it grows by one for each.
    epoch: AtomicUsize,
    /// What to run. Written by the caller before it raises `epoch`, read by workers after.
    job: UnsafeCell<Option<*const Job>>,
    /// Workers that have not finished the present region.
    running: AtomicUsize,
    /// Whether a worker's closure panicked.
    panicked: AtomicBool,
    stop: AtomicBool,
    /// Whether each worker is about to park.
    parked: Vec<AtomicBool>,
    flush_subnormals: bool,
}

// SAFETY: `job` is written only while no worker runs (`running` is 0) and read only between the raise of `epoch` and the
// worker's decrement of `running`; the atomics order these. The job itself is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// A pool of threads; the caller of [`Pool::run`] is thread 0.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `threads - 1` workers. With `flush_subnormals`, arithmetic inside [`Pool::run`] treats subnormal
    /// floats as zero, on all threads.
    pub fn new(threads: usize, flush_subnormals: bool) -> Result<Pool, String> {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            parked: (0..threads).map(|_| AtomicBool::new(false)).collect(),
            flush_subnormals,
        });
        let mut pool = Pool { shared, workers: Vec::new() };
        for number in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = thread::Builder::new()
                .name(format!("backfit-{number}"))
                .spawn(move || work(&shared, number))
                .map_err(|error| format!("cannot start thread {number}: {error}"))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Number of threads, with the caller.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job(number)` once on each thread, and returns when all have finished. A panic of any of them is raised here.
    pub fn run(&mut self, job: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        let _mode = FlushMode::enter(shared.flush_subnormals);
        if self.workers.is_empty() {
            return job(0);
        }
        // SAFETY: no worker reads `job` now (the last region has ended and `self` is borrowed exclusively). The pointer's
        // lifetime is erased, but no worker uses it after this call: we wait for `running` to reach 0 even if `job` panics.
        unsafe { *shared.job.get() = Some(std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const Job>(job)) };
        shared.running.store(self.workers.len(), Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        for (parked, worker) in shared.parked[1..].iter().zip(&self.workers) {
            if parked.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        let mine = catch_unwind(AssertUnwindSafe(|| job(0)));
        spin_until(|| shared.running.load(Ordering::Acquire) == 0);
        if let Err(panic) = mine {
            shared.panicked.store(false, Ordering::Relaxed);
            resume_unwind(panic);
        }
        if shared.panicked.swap(false, Ordering::Relaxed) {
            panic!("a worker thread panicked");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its jobs; there is nothing to report here.
            let _ = worker.join();
        }
    }
}

/// The life of a worker.
fn work(shared: &Shared, number: usize) {
    let _mode = FlushMode::enter(shared.flush_subnormals);
    let mut seen = 0;
    loop {
        seen = next_epoch(shared, number, seen);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        // SAFETY: the epoch was raised after the job was written, and the caller keeps it alive until `running` is 0.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
            if let Some(job) = *shared.job.get() {
                (*job)(number);
            }
        }));
        if outcome.is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for a region after `seen`: spins a while, then parks.
fn next_epoch(shared: &Shared, number: usize, seen: usize) -> usize {
    let changed = |order| Some(shared.epoch.load(order)).filter(|&epoch| epoch != seen);
    let start = Instant::now();
    while start.elapsed() < SPIN {
        for _ in 0..SPINS {
            if let Some(epoch) = changed(Ordering::Acquire) {
                return epoch;
            }
            std::hint::spin_loop();
        }
    }
    let parked = &shared.parked[number];
    loop {
        parked.store(true, Ordering::SeqCst);
        // The caller raises the epoch before it looks at `parked`: one of us sees the other.
        if let Some(epoch) = changed(Ordering::SeqCst) {
            parked.store(false, Ordering::SeqCst);
            return epoch;
        }
        thread::park();
    }
}

/// Spins, and yields now and then so that a machine with fewer cores than threads makes progress.
#[inline]
fn spin_until(done: impl Fn() -> bool) {
    let mut spins = 0u32;
    while !done() {
        spins += 1;
        if spins.is_multiple_of(8 * SPINS) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Where all threads of a region meet.
pub struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    epoch: AtomicUsize,
    poisoned: AtomicBool,
}

impl Barrier {
    /// For `threads` threads.
    pub fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: AtomicUsize::new(0), epoch: AtomicUsize::new(0), poisoned: AtomicBool::new(false) }
    }

    /// Returns when all threads have called it. Panics where one of them has poisoned the barrier instead.
    #[inline]
    pub fn wait(&self) {
        if self.threads == 1 {
            return;
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.epoch.store(epoch.wrapping_add(1), Ordering::Release);
            return;
        }
        spin_until(|| self.epoch.load(Ordering::Acquire) != epoch || self.poisoned.load(Ordering::Relaxed));
        assert!(!self.poisoned.load(Ordering::Relaxed), "another thread panicked");
    }

    /// Calls `body`; where it panics, the threads that wait for this one panic too instead of waiting for ever.
    pub fn guard(&self, body: impl FnOnce()) {
        struct Poison<'a>(&'a AtomicBool);
        impl Drop for Poison<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let poison = Poison(&self.poisoned);
        body();
        std::mem::forget(poison);
    }

    /// Makes the barrier new again, after a panic.
    pub fn reset(&mut self) {
        *self = Barrier::new(self.threads);
    }
}

/// Sets the flushing of subnormals on this thread, and restores the former mode when dropped.
struct FlushMode {
    former: Option<u64>,
}

impl FlushMode {
    fn enter(flush: bool) -> FlushMode {
        if !flush {
            return FlushMode { former: None };
        }
        let former = control::read();
        control::write(former | control::FLUSH);
        FlushMode { former: Some(former) }
    }
}

impl Drop for FlushMode {
    fn drop(&mut self) {
        if let Some(former) = self.former {
            control::write(former);
        }
    }
}

/// The floating-point control register.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod control {
    use std::arch::asm;

    /// Flush to zero, and denormals are zero.
    pub const FLUSH: u64 = 0x8040;

    pub fn read() -> u64 {
        let mut value = 0u32;
        // SAFETY: stores four bytes to a local.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut value, options(nostack, preserves_flags)) };
        u64::from(value)
    }

    pub fn write(value: u64) {
        let value = value as u32;
        // SAFETY: only FTZ and DAZ ever differ from a value that was read; exceptions stay masked.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &value, options(nostack, preserves_flags)) };
    }
}

/// The floating-point control register.
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod control {
    use std::arch::asm;

    /// FZ, and FZ16.
    pub const FLUSH: u64 = 1 << 24 | 1 << 19;

    pub fn read() -> u64 {
        let value: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub fn write(value: u64) {
        // SAFETY: only the flush bits ever differ from a value that was read.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
    }
}

/// No control register is known: subnormals are kept.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod control {
    pub const FLUSH: u64 = 0;

    pub fn read() -> u64 {
        0
    }

    pub fn write(_: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_the_job_once() {
        for threads in 1..4 {
            let mut pool = Pool::new(threads, false).unwrap();
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..100 {
                pool.run(&|thread| {
                    counts[thread].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 100));
        }
    }

    #[test]
    fn parked_workers_wake() {
        let mut pool = Pool::new(2, false).unwrap();
        let count = AtomicUsize::new(0);
        for _ in 0..3 {
            thread::sleep(5 * SPIN);
            pool.run(&|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(count.into_inner(), 6);
    }

    #[test]
    fn threads_meet_at_the_barrier() {
        let mut pool = Pool::new(3, false).unwrap();
        let barrier = Barrier::new(3);
        let count = AtomicUsize::new(0);
        pool.run(&|_| {
            for round in 1..200 {
                count.fetch_add(1, Ordering::Relaxed);
                barrier.wait();
                assert_eq!(count.load(Ordering::Relaxed), 3 * round);
                barrier.wait();
            }
        });
    }

    #[test]
    fn a_panic_is_raised_at_the_caller_and_does_not_hang() {
        let mut pool = Pool::new(3, false).unwrap();
        for culprit in 0..3 {
            let barrier = Barrier::new(3);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(&|thread| {
                    barrier.guard(|| {
                        assert_ne!(thread, culprit, "expected by the test");
                        barrier.wait();
                    });
                });
            }));
            assert!(outcome.is_err());
        }
        pool.run(&|_| {});
    }

    #[test]
    #[cfg(not(miri))]
    fn subnormals_are_flushed_only_inside_and_only_if_asked() {
        let halve = || std::hint::black_box(f32::MIN_POSITIVE) * std::hint::black_box(0.5);
        for flush in [false, true] {
            let mut pool = Pool::new(2, flush).unwrap();
            pool.run(&|_| assert_eq!(halve() == 0.0, flush));
            assert!(halve() > 0.0);
        }
    }
}
