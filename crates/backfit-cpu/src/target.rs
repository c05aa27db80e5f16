//! The target: from a program to an executable.

use crate::emit::{self, Emitted, Space, emit};
use crate::executable::{CpuExecutable, Entry, Segments};
use crate::frame::{Callees, Constants, Frame, Kind, loop_kind, plan_frame};
use backfit_compile::pipeline::{Lowered, Options, lower};
use backfit_compile::plan::ALIGN;
use backfit_compile::target::{Executable, Port, Program, Signature, Target};
use backfit_ir::{Error, FuncId, Function, Op, Problem, Role};
use backfit_kernels::context::Addr;
use backfit_kernels::isa::Isa;
use backfit_kernels::program as machine;
use std::collections::HashMap;

/// The CPU target. Subnormal numbers are flushed to zero in every thread, because a step slows down several times
/// once Adam's moments decay into them; [`Cpu::keep_subnormals`] turns that off.
///
/// ```
/// use backfit_cpu::Cpu;
/// let cpu = Cpu::default().threads(2);
/// assert_eq!(cpu.thread_count(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Cpu {
    threads: usize,
    flush_subnormals: bool,
    fuse: bool,
    without_loops: bool,
    packed_results: bool,
}

impl Default for Cpu {
    /// As many threads as the machine has cores.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Cpu { threads, flush_subnormals: true, fuse: true, without_loops: false, packed_results: false }
    }
}

impl Cpu {
    /// A fixed number of threads; results have the same bits for any. At least one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// How many threads run a program.
    pub fn thread_count(&self) -> usize {
        self.threads
    }

    /// Computes with subnormal numbers as IEEE 754 says, at the price of speed.
    pub fn keep_subnormals(mut self) -> Self {
        self.flush_subnormals = false;
        self
    }

    /// Runs every operator by itself. Results have the same bits; only tests and curious people want this.
    pub fn without_fusion(mut self) -> Self {
        self.fuse = false;
        self
    }

    /// Turns loops into calls, as targets without loops have them. Results have the same bits.
    pub fn without_loops(mut self) -> Self {
        self.without_loops = true;
        self
    }

    /// Packs all results of a called function that have one dtype into one, as targets with a single output need it.
    /// Results have the same bits.
    pub fn with_packed_results(mut self) -> Self {
        self.packed_results = true;
        self
    }

    /// Compiles a program; as [`Target::compile`], with the concrete type.
    ///
    /// # Errors
    /// Where an operator is not covered, an environment variable is wrong, or memory cannot be had.
    pub fn build(&self, program: &Program) -> Result<CpuExecutable, Error> {
        let isa = Isa::detect().map_err(|why| Problem::new(why).help("unset BACKFIT_ISA to use the best one"))?;
        let roots: Vec<FuncId> = program.functions.iter().map(|(_, id)| *id).collect();
        let options = Options {
            claims: &[],
            flush_subnormals: self.flush_subnormals,
            without_loops: self.without_loops,
            packed_results: self.packed_results,
            precision: program.precision.clone(),
        };
        let lowered = lower(&program.module, &roots, &options)?;
        let names: Vec<&str> = program.functions.iter().map(|(name, _)| name.as_str()).collect();
        let residents = residents(&lowered, &names)?;
        let (frames, callees, constants) = self.plan(&lowered)?;
        let entries: Vec<usize> = lowered.roots.iter().map(|id| callees[&(*id, Kind::Entry)]).collect();
        let segments = Segments::new(&lowered, &residents, &constants, entries.iter().map(|&e| &frames[e]));
        self.assemble(&lowered, &names, frames, callees, constants, residents, segments, isa)
    }

    /// Plans every function that a root reaches, callees first.
    fn plan<'l>(&self, lowered: &'l Lowered) -> Result<(Vec<Frame<'l>>, Callees, Constants), Error> {
        let module = &lowered.module;
        let mut wanted: Vec<(FuncId, Kind)> = Vec::new();
        for function in &module.functions {
            for node in &function.nodes {
                match &node.op {
                    Op::Call(callee) => wanted.push((*callee, Kind::Call)),
                    Op::Scan(scan) => wanted.push((scan.body, loop_kind(scan))),
                    _ => {}
                }
            }
        }
        wanted.extend(lowered.roots.iter().map(|&id| (id, Kind::Entry)));
        // Callees stand before callers in a module; entries come last of all.
        wanted.sort_by_key(|(id, kind)| (*kind == Kind::Entry, id.0));
        let mut frames: Vec<Frame> = Vec::new();
        let mut callees = Callees::new();
        let mut constants = Constants::default();
        for (id, kind) in wanted {
            if callees.contains_key(&(id, kind)) {
                continue;
            }
            let scratch = |id: FuncId, kind: Kind| frames[callees[&(id, kind)]].plan.arena_bytes;
            let frame = plan_frame(module, module.function(id), kind, self.fuse, &mut constants, &scratch)?;
            callees.insert((id, kind), frames.len());
            frames.push(frame);
        }
        Ok((frames, callees, constants))
    }

    #[allow(clippy::too_many_arguments)] // the pieces of one assembly, each used once
    fn assemble(
        &self,
        lowered: &Lowered,
        names: &[&str],
        frames: Vec<Frame>,
        callees: Callees,
        constants: Constants,
        residents: Vec<Port>,
        segments: Segments,
        isa: Isa,
    ) -> Result<CpuExecutable, Error> {
        let mut functions: Vec<machine::Function> = Vec::new();
        let mut entries = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let entry = lowered.roots.iter().position(|id| callees[&(*id, Kind::Entry)] == index);
            let space = match entry {
                Some(entry) => segments.entry_space(entry, frame),
                None => callee_space(frame),
            };
            let emitted = emit(frame, &space, &callees)?;
            let bases = match entry {
                Some(_) => vec![segments.total],
                None => extents(frame, constants.bytes.len()),
            };
            let (steps, jobs) = self.steps(emitted, entry.is_none());
            functions.push(machine::Function { bases, steps });
            if let Some(entry) = entry {
                let program =
                    machine::Program::new(functions.clone(), functions.len() - 1, segments.total).map_err(|why| {
                        Problem::new(format!("the planned program is invalid: {why}; please report this"))
                    })?;
                let report = crate::report::function(names[entry], frame, &functions[index], &jobs);
                let signature = signature(names[entry], frame.f);
                entries.push((entry, Entry { program, signature, report }));
            }
        }
        entries.sort_by_key(|(entry, _)| *entry);
        let entries = entries.into_iter().map(|(_, e)| e).collect();
        let stages = lowered.stages.clone();
        CpuExecutable::new(
            entries,
            residents,
            segments,
            &constants.bytes,
            stages,
            isa,
            self.threads,
            self.flush_subnormals,
        )
    }

    fn steps(&self, emitted: Vec<Emitted>, callee: bool) -> (Vec<machine::Step>, Vec<Option<usize>>) {
        let jobs = emitted.iter().flat_map(|e| std::iter::repeat_n(e.job, e.instructions.len())).collect();
        let instructions = emitted.into_iter().flat_map(|e| e.instructions).collect();
        (emit::steps(instructions, self.threads, callee, &crate::report::is_parallel), jobs)
    }
}

impl Target for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn compile(&self, program: &Program) -> Result<Box<dyn Executable>, Error> {
        Ok(Box::new(self.build(program)?))
    }
}

/// The resident store: every resident parameter of any entry point, by name.
fn residents(lowered: &Lowered, names: &[&str]) -> Result<Vec<Port>, Error> {
    let mut residents: Vec<Port> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (&root, name) in lowered.roots.iter().zip(names) {
        let f = lowered.module.function(root);
        for param in f.params.iter().filter(|p| p.role.is_resident()) {
            let port = Port { name: param.name.clone(), ty: f.ty(param.value).clone(), role: param.role };
            match known.get(&port.name) {
                Some(&at) if residents[at].ty != port.ty => {
                    let what = format!("'{}' is {} in '{name}' and {} elsewhere", port.name, port.ty, residents[at].ty);
                    return Err(Problem::new(what).into());
                }
                Some(_) => {}
                None => {
                    known.insert(port.name.clone(), residents.len());
                    residents.push(port);
                }
            }
        }
    }
    Ok(residents)
}

/// What an entry point is fed and returns.
pub(crate) fn signature(name: &str, f: &Function) -> Signature {
    let inputs = f.params.iter().filter(|p| !p.role.is_resident());
    let outputs = f.results.iter().filter(|r| r.alias.is_none());
    Signature {
        name: name.to_owned(),
        inputs: inputs.map(|p| Port { name: p.name.clone(), ty: f.ty(p.value).clone(), role: p.role }).collect(),
        outputs: outputs.map(|r| Port { name: r.name.clone(), ty: f.ty(r.value).clone(), role: Role::Input }).collect(),
    }
}

/// The base registers of a callee: arena, constants, parameters, results.
fn callee_space(frame: &Frame) -> Space {
    let base = |n: usize| Addr { base: n as u16, offset: 0 };
    let params = frame.f.params.len();
    Space {
        arena: base(0),
        constants: base(1),
        params: (0..params).map(|i| base(2 + i)).collect(),
        results: result_bases(frame).into_iter().map(|n| base(2 + params + n)).collect(),
    }
}

/// For every result its number among those that are buffers of the caller.
fn result_bases(frame: &Frame) -> Vec<usize> {
    let updated = match frame.kind {
        Kind::Loop(carries) => carries,
        _ => 0,
    };
    (0..frame.f.results.len()).map(|i| i.saturating_sub(updated)).collect()
}

fn extents(frame: &Frame, constants: usize) -> Vec<usize> {
    let f = frame.f;
    let updated = if let Kind::Loop(carries) = frame.kind { carries } else { 0 };
    let params = f.params.iter().map(|p| f.ty(p.value).bytes());
    let results = f.results[updated..].iter().map(|r| f.ty(r.value).bytes());
    [frame.plan.arena_bytes.next_multiple_of(ALIGN), constants].into_iter().chain(params).chain(results).collect()
}
