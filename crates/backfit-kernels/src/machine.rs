//! The machine: a memory, threads, and the walk over a program.

use crate::context::{Addr, Context};
use crate::isa::Isa;
use crate::memory::Memory;
use crate::pool::{Barrier, Pool};
use crate::program::{Instruction, Program};

/// Runs programs in one memory. Several programs may share it.
pub struct Machine {
    memory: Memory,
    pool: Pool,
    barrier: Barrier,
    isa: Isa,
    /// One per thread.
    workspaces: Vec<Workspace>,
}

/// What a thread owns: base registers of nested frames, and scratch.
struct Workspace {
    registers: Vec<*mut u8>,
    scratch: Memory,
}

// SAFETY: the registers are plain addresses, used only during a run by the thread that owns the workspace.
unsafe impl Send for Machine {}
// SAFETY: `&Machine` only reads the memory's bytes.
unsafe impl Sync for Machine {}

impl Machine {
    /// A machine with this memory and these threads; an error where the processor lacks `isa`.
    pub fn new(memory: Memory, pool: Pool, isa: Isa) -> Result<Machine, String> {
        if !isa.is_supported() {
            return Err(format!("this machine does not have {isa:?}"));
        }
        let threads = pool.threads();
        let workspaces = (0..threads)
            .map(|_| Ok(Workspace { registers: Vec::new(), scratch: Memory::new(64)? }))
            .collect::<Result<_, String>>()?;
        Ok(Machine { memory, pool, barrier: Barrier::new(threads), isa, workspaces })
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory, to be written.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Allocates what the program needs beyond the memory, so that running it allocates nothing.
    pub fn reserve(&mut self, program: &Program) -> Result<(), String> {
        if program.memory_bytes() > self.memory.len() {
            return Err(format!(
                "the program needs a memory of {} bytes, not {}",
                program.memory_bytes(),
                self.memory.len()
            ));
        }
        for workspace in &mut self.workspaces {
            if workspace.registers.len() < program.registers() {
                workspace.registers.resize(program.registers(), std::ptr::null_mut());
            }
            if workspace.scratch.len() < program.scratch_bytes() {
                workspace.scratch = Memory::new(program.scratch_bytes())?;
            }
        }
        Ok(())
    }

    /// Runs the program once. An error where it does not fit the memory; then nothing has run.
    pub fn run(&mut self, program: &Program) -> Result<(), String> {
        self.reserve(program)?;
        self.barrier.reset();
        let start = self.memory.start();
        let threads = self.pool.threads();
        for workspace in &mut self.workspaces {
            workspace.registers[0] = start;
        }
        let workspaces = PerThread(self.workspaces.as_mut_ptr());
        let (barrier, isa) = (&self.barrier, self.isa);
        self.pool.run(&|thread| {
            // SAFETY: the pool runs each thread number once, below the number of workspaces.
            let Workspace { registers, scratch } = unsafe { &mut *workspaces.of(thread) };
            let walker = Walker { program, barrier, isa, thread, scratch: scratch.start() };
            // SAFETY: `reserve` made the registers and the scratch as long as the validated program needs,
            // and register 0 is the start of a memory that is long enough.
            barrier.guard(|| unsafe { walker.call(program.entry(), registers, threads) });
        });
        Ok(())
    }
}

/// Base of an array with one element per thread.
struct PerThread(*mut Workspace);

// SAFETY: each thread takes only its own element.
unsafe impl Sync for PerThread {}

impl PerThread {
    /// Pointer to a thread's element. Using it is up to the caller.
    fn of(&self, thread: usize) -> *mut Workspace {
        self.0.wrapping_add(thread)
    }
}

/// One thread's walk over the program.
struct Walker<'a> {
    program: &'a Program,
    barrier: &'a Barrier,
    isa: Isa,
    thread: usize,
    scratch: *mut u8,
}

impl Walker<'_> {
    /// Runs a function whose base registers are the first of `registers`; the rest is for nested frames.
    ///
    /// # Safety
    /// The registers point at the extents that the function asks for, aligned, in one memory; there are as many as
    /// validation counted; and `scratch` is as long as it found.
    unsafe fn call(&self, number: usize, registers: &mut [*mut u8], threads: usize) {
        let function = &self.program.functions()[number];
        let (bases, rest) = registers.split_at_mut(function.bases.len());
        for step in &function.steps {
            let together = step.parallel && threads > 1;
            if step.parallel || self.thread == 0 {
                let threads = if together { threads } else { 1 };
                if let Instruction::Call(call) = &step.instruction {
                    for iteration in 0..call.trip_count as isize {
                        for (register, base) in rest.iter_mut().zip(&call.bases) {
                            let Addr { base: from, offset } = base.addr;
                            *register =
                                bases[from as usize].wrapping_add(offset).wrapping_offset(iteration * base.stride);
                        }
                        // SAFETY: validation checked extents and alignment for every iteration, and the number of registers.
                        unsafe { self.call(call.function, rest, threads) };
                    }
                } else {
                    let ctx = Context { thread: self.thread, threads, bases, isa: self.isa, scratch: self.scratch };
                    // SAFETY: the program was validated, the bases are as promised, `isa` is supported.
                    unsafe { step.instruction.run(&ctx) };
                }
            }
            if step.barrier && threads > 1 {
                self.barrier.wait();
            }
        }
    }
}
