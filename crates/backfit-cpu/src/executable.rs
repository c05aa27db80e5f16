//! A compiled program, its memory and its threads.

use crate::emit::Space;
use crate::frame::{Constants, Frame, Home};
use backfit_compile::pipeline::{Lowered, StageReport};
use backfit_compile::plan::ALIGN;
use backfit_compile::target::{Executable, FunctionReport, MemoryReport, Port, Signature};
use backfit_ir::{Error, Literal, Problem};
use backfit_kernels::context::Addr;
use backfit_kernels::isa::Isa;
use backfit_kernels::machine::Machine;
use backfit_kernels::memory::Memory;
use backfit_kernels::pool::Pool;
use backfit_kernels::program::Program;
use std::ops::Range;

/// How the one memory is divided: resident store, constants, staging of inputs and results, arena.
#[derive(Clone, Debug)]
pub struct Segments {
    /// Offset of every resident tensor.
    residents: Vec<usize>,
    names: Vec<String>,
    constants: usize,
    entries: Vec<EntryPorts>,
    arena: usize,
    report: MemoryReport,
    /// Everything together.
    pub total: usize,
}

/// Where the parameters and results of an entry point lie.
#[derive(Clone, Debug, Default)]
struct EntryPorts {
    /// Offset of every parameter, resident ones included.
    params: Vec<usize>,
    /// Offset of every result, updates included.
    results: Vec<usize>,
    /// Bytes of the parameters that are fed.
    inputs: Vec<Range<usize>>,
    /// Bytes of the results that are returned.
    outputs: Vec<Range<usize>>,
}

impl Segments {
    /// Lays out the memory for these entry frames. All share one arena, as large as the largest needs.
    pub fn new<'f, 'm: 'f>(
        lowered: &Lowered,
        residents: &[Port],
        constants: &Constants,
        frames: impl Iterator<Item = &'f Frame<'m>>,
    ) -> Segments {
        let mut end = 0usize;
        let mut take = |bytes: usize| {
            let start = end;
            end = (end + bytes).next_multiple_of(ALIGN);
            start
        };
        let resident: Vec<usize> = residents.iter().map(|p| take(p.ty.bytes())).collect();
        let constants_start = take(constants.bytes.len());
        let arena_bytes = frames.map(|f| f.plan.arena_bytes).max().unwrap_or(0);
        let staging_start = take(0);
        let mut entries = Vec::new();
        for &root in &lowered.roots {
            let f = lowered.module.function(root);
            let mut ports = EntryPorts::default();
            for param in &f.params {
                let bytes = f.ty(param.value).bytes();
                let known = residents.iter().position(|p| p.name == param.name).filter(|_| param.role.is_resident());
                let start = known.map_or_else(|| take(bytes), |i| resident[i]);
                ports.params.push(start);
                if known.is_none() {
                    ports.inputs.push(start..start + bytes);
                }
            }
            for result in &f.results {
                let bytes = f.ty(result.value).bytes();
                let start = result.alias.map_or_else(|| take(bytes), |i| ports.params[i]);
                ports.results.push(start);
                if result.alias.is_none() {
                    ports.outputs.push(start..start + bytes);
                }
            }
            entries.push(ports);
        }
        let arena = take(arena_bytes);
        let report = MemoryReport {
            arena_bytes,
            resident_bytes: constants_start,
            constant_bytes: constants.bytes.len(),
            staging_bytes: arena - staging_start,
            total_bytes: end,
        };
        let names = residents.iter().map(|p| p.name.clone()).collect();
        Segments { residents: resident, names, constants: constants_start, entries, arena, report, total: end }
    }

    /// The addresses of an entry frame: all relative to the start of memory.
    pub fn entry_space(&self, entry: usize, frame: &Frame) -> Space {
        let absolute = |&offset: &usize| Addr { base: 0, offset };
        let EntryPorts { params, results, .. } = &self.entries[entry];
        debug_assert!(frame.homes.iter().all(|h| !matches!(h, Home::Param(i) if *i >= params.len())));
        Space {
            arena: absolute(&self.arena),
            constants: absolute(&self.constants),
            params: params.iter().map(absolute).collect(),
            results: results.iter().map(absolute).collect(),
        }
    }
}

/// A compiled entry point.
pub(crate) struct Entry {
    pub program: Program,
    pub signature: Signature,
    pub report: FunctionReport,
}

/// A program compiled for the CPU.
pub struct CpuExecutable {
    machine: Machine,
    programs: Vec<Program>,
    signatures: Vec<Signature>,
    reports: Vec<FunctionReport>,
    residents: Vec<Port>,
    segments: Segments,
    stages: Vec<StageReport>,
    memory: MemoryReport,
    flush_subnormals: bool,
}

impl CpuExecutable {
    #[allow(clippy::too_many_arguments)] // the pieces of one program, each used once
    pub(crate) fn new(
        entries: Vec<Entry>,
        residents: Vec<Port>,
        segments: Segments,
        constants: &[u8],
        stages: Vec<StageReport>,
        isa: Isa,
        threads: usize,
        flush_subnormals: bool,
    ) -> Result<CpuExecutable, Error> {
        let fail = |why: String| Error::from(Problem::new(why));
        let mut memory = Memory::new(segments.total.max(ALIGN)).map_err(fail)?;
        let range = segments.constants..segments.constants + constants.len();
        if let Some(target) = memory.write(range) {
            target.copy_from_slice(constants);
        }
        let pool = Pool::new(threads, flush_subnormals).map_err(fail)?;
        let mut machine = Machine::new(memory, pool, isa).map_err(fail)?;
        for entry in &entries {
            machine.reserve(&entry.program).map_err(fail)?;
        }
        let mut executable = CpuExecutable {
            machine,
            programs: Vec::new(),
            signatures: Vec::new(),
            reports: Vec::new(),
            residents,
            memory: segments.report,
            segments,
            stages,
            flush_subnormals,
        };
        for entry in entries {
            executable.programs.push(entry.program);
            executable.signatures.push(entry.signature);
            executable.reports.push(entry.report);
        }
        Ok(executable)
    }

    /// The machine's programs, for tests that look for races.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    fn resident(&self, name: &str) -> Option<(usize, Range<usize>)> {
        let index = self.segments.names.iter().position(|n| n == name)?;
        let start = self.segments.residents[index];
        Some((index, start..start + self.residents[index].ty.bytes()))
    }
}

impl Executable for CpuExecutable {
    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn residents(&self) -> &[Port] {
        &self.residents
    }

    fn input(&mut self, function: usize, input: usize) -> &mut [u8] {
        let range = self.segments.entries[function].inputs[input].clone();
        self.machine.memory_mut().write(range).unwrap_or_default()
    }

    fn output(&self, function: usize, output: usize) -> &[u8] {
        let range = self.segments.entries[function].outputs[output].clone();
        self.machine.memory().read(range).unwrap_or_default()
    }

    fn run(&mut self, function: usize) -> Result<(), Error> {
        self.machine.run(&self.programs[function]).map_err(|why| Problem::new(why).into())
    }

    fn read(&self, name: &str) -> Option<Literal> {
        let (index, range) = self.resident(name)?;
        Literal::from_bytes(self.residents[index].ty.clone(), self.machine.memory().read(range)?)
    }

    fn write(&mut self, name: &str, value: &Literal) -> Result<(), Error> {
        let Some((index, range)) = self.resident(name) else {
            return Err(Problem::new(format!("there is no resident tensor '{name}'")).into());
        };
        let ty = &self.residents[index].ty;
        if ty != value.ty() {
            return Err(Problem::new(format!("'{name}' is {ty}, the value is {}", value.ty())).into());
        }
        if let Some(bytes) = self.machine.memory_mut().write(range) {
            bytes.copy_from_slice(value.bytes());
        }
        Ok(())
    }

    fn flushes_subnormals(&self) -> bool {
        self.flush_subnormals
    }

    fn memory(&self) -> MemoryReport {
        self.memory
    }

    fn functions(&self) -> Vec<FunctionReport> {
        self.reports.clone()
    }

    fn stages(&self) -> &[StageReport] {
        &self.stages
    }
}
