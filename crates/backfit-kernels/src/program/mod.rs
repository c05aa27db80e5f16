//! Programs: functions of instructions over byte addresses, validated once and then run without checks.

mod instruction;
mod races;
#[cfg(test)]
mod tests;
mod validate;

pub use instruction::{Call, CallBase, Instruction};

/// One instruction, and how threads run it.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to do.
    pub instruction: Instruction,
    /// Whether all threads share the work. Otherwise thread 0 does it alone
    /// (a call then runs its whole callee on thread 0).
    pub parallel: bool,
    /// Whether all threads meet after it.
    pub barrier: bool,
}

/// A list of steps over base registers.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// How many bytes must lie behind each base register.
    pub bases: Vec<usize>,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// A validated program. Every access of every instruction, through every call and iteration, lies in the memory.
#[derive(Clone, Debug)]
pub struct Program {
    functions: Vec<Function>,
    entry: usize,
    memory_bytes: usize,
    scratch_bytes: usize,
    registers: usize,
}

impl Program {
    /// Validates `functions`; `entry` has one base register, the start of a memory of `memory_bytes`.
    ///
    /// A function may call only functions before it in the list, so that there is no recursion.
    pub fn new(functions: Vec<Function>, entry: usize, memory_bytes: usize) -> Result<Program, String> {
        let needs = validate::validate(&functions, entry, memory_bytes)?;
        Ok(Program { functions, entry, memory_bytes, scratch_bytes: needs.scratch_bytes, registers: needs.registers })
    }

    /// The functions, in order.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Number of the function that a run starts with.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// Size of the memory that it runs in.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Private scratch that each thread needs, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Base registers that each thread needs, over all nested frames.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// Finds steps that several threads could run at the same time (no barrier between them) and of which one writes
    /// bytes that the other touches. Walks every call and iteration: for tests and debugging.
    pub fn check_races(&self) -> Result<(), String> {
        races::check(self)
    }
}
