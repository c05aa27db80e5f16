//! What a target is: it compiles a program, and what it compiled can run.

use crate::pipeline::StageReport;
use crate::plan::Plan;
use crate::precision::Policy;
use backfit_ir::{Error, FuncId, Literal, Module, Role, Type};

/// Functions of one module that share a resident store, each under a name: `init`, `step`, `eval`, `predict`.
#[derive(Clone, Debug)]
pub struct Program {
    /// All functions.
    pub module: Module,
    /// The entry points.
    pub functions: Vec<(String, FuncId)>,
    /// In which dtypes it computes.
    pub precision: Policy,
}

impl Program {
    /// A program that computes in the dtypes it declares.
    pub fn new(module: Module, functions: Vec<(String, FuncId)>) -> Self {
        Program { module, functions, precision: Policy::f32() }
    }

    /// Computes in the dtypes of a policy.
    pub fn precision(mut self, policy: Policy) -> Self {
        self.precision = policy;
        self
    }
}

/// A parameter or result of a compiled function.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// A parameter's role; a result has that of what it updates, or `Input` where it is returned.
    pub role: Role,
}

/// What a compiled function is fed and returns. Resident parameters and updates are not listed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Signature {
    /// The function's name.
    pub name: String,
    /// Inputs and hyper-parameters.
    pub inputs: Vec<Port>,
    /// Results that are returned.
    pub outputs: Vec<Port>,
}

/// The bytes that a compiled program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// Scratch memory of the function with the largest.
    pub arena_bytes: usize,
    /// Weights, state, optimizer state.
    pub resident_bytes: usize,
    /// Baked constants.
    pub constant_bytes: usize,
    /// Buffers through which inputs and results pass.
    pub staging_bytes: usize,
    /// Everything together, as it was allocated.
    pub total_bytes: usize,
}

/// What a compiled function looks like inside.
#[derive(Clone, Debug)]
pub struct FunctionReport {
    /// The function's name.
    pub name: String,
    /// One line per instruction, in order.
    pub instructions: Vec<InstructionReport>,
    /// Names of the planned buffers; indices as in the plan.
    pub buffers: Vec<(String, usize)>,
    /// The plan of its own frame.
    pub plan: Plan,
}

/// One instruction of a compiled function.
#[derive(Clone, Debug)]
pub struct InstructionReport {
    /// What it is: a kernel's name and sizes, or a fused group.
    pub name: String,
    /// The operators it carries out.
    pub operators: Vec<String>,
    /// The user's lines they stem from.
    pub locations: Vec<String>,
    /// Arithmetic operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Whether several threads share it.
    pub parallel: bool,
}

/// Something that compiles programs.
pub trait Target {
    /// The target's name, as in `--target cpu`.
    fn name(&self) -> &'static str;

    /// Compiles a program.
    ///
    /// # Errors
    /// Where the target cannot carry out an operator; the error names it and the user's line.
    fn compile(&self, program: &Program) -> Result<Box<dyn Executable>, Error>;
}

/// A compiled program with its resident store. Running allocates nothing.
pub trait Executable: Send {
    /// What each function is fed and returns, in the order of [`Program::functions`].
    fn signatures(&self) -> &[Signature];

    /// Names, types and roles in the resident store.
    fn residents(&self) -> &[Port];

    /// The bytes that an input of a function is fed through; little-endian, row-major.
    fn input(&mut self, function: usize, input: usize) -> &mut [u8];

    /// The bytes of a result after the function ran.
    fn output(&self, function: usize, output: usize) -> &[u8];

    /// Runs a function on what its inputs hold.
    ///
    /// # Errors
    /// Where the target failed.
    fn run(&mut self, function: usize) -> Result<(), Error>;

    /// Copies a tensor out of the resident store. `None` where there is none of this name.
    fn read(&self, name: &str) -> Option<Literal>;

    /// Replaces a tensor of the resident store.
    ///
    /// # Errors
    /// Where there is none of this name, or of another type.
    fn write(&mut self, name: &str, value: &Literal) -> Result<(), Error>;

    /// Whether subnormal numbers count as zero.
    fn flushes_subnormals(&self) -> bool;

    /// The bytes in use.
    fn memory(&self) -> MemoryReport;

    /// What each function looks like inside.
    fn functions(&self) -> Vec<FunctionReport>;

    /// What every stage did.
    fn stages(&self) -> &[StageReport];
}
