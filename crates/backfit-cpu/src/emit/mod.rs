//! From planned jobs to the machine's instructions.

mod contraction;
mod indexing;
mod movement;
mod reduction;
mod tile;
mod window;

use crate::frame::{Callees, Frame, Home, Job, Kind, Operand, loop_kind, unsupported};
use crate::view::View;
use backfit_compile::plan::{Step as PlanStep, Storage};
use backfit_ir::{DType, Error, Op, Type};
use backfit_kernels::context::{Access, Addr};
use backfit_kernels::elem::Elem;
use backfit_kernels::program::{Call, CallBase, Instruction, Step};

/// Where the parts of a frame lie, as addresses.
#[derive(Clone, Debug)]
pub struct Space {
    /// Start of the frame's arena.
    pub arena: Addr,
    /// Start of the program's constants.
    pub constants: Addr,
    /// Start of each parameter.
    pub params: Vec<Addr>,
    /// Start of each result that is not an update.
    pub results: Vec<Addr>,
}

/// The instructions of one step of a plan.
pub struct Emitted {
    /// What they do, in order.
    pub instructions: Vec<Instruction>,
    /// Index into the frame's jobs; `None` for the copy of an update.
    pub job: Option<usize>,
}

/// The instructions of a frame, step by step.
///
/// # Errors
/// Where an operator has attributes that no kernel covers; the error names the user's line.
pub fn emit(frame: &Frame, space: &Space, callees: &Callees) -> Result<Vec<Emitted>, Error> {
    let emitter = Emitter { frame, space, callees };
    let steps = frame.plan.steps.iter().map(|step| {
        let (instructions, job) = match *step {
            PlanStep::Task(task) => (emitter.job(task)?, Some(task)),
            PlanStep::Copy(update) => {
                let bytes = frame.tasks.buffers[update.new].bytes;
                (movement::copy_bytes(emitter.addr(update.new), emitter.addr(update.old), bytes), None)
            }
        };
        Ok(Emitted { instructions, job })
    });
    steps.collect()
}

/// Emits the jobs of one frame.
pub(crate) struct Emitter<'a> {
    pub frame: &'a Frame<'a>,
    pub space: &'a Space,
    pub callees: &'a Callees,
}

/// An operand with an address.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    /// Of element 0 of the view.
    pub addr: Addr,
    pub view: View,
    pub elem: Elem,
}

impl Emitter<'_> {
    /// The address of a buffer.
    pub fn addr(&self, buffer: usize) -> Addr {
        let (buffer, offset) = match self.frame.plan.storage[buffer] {
            Storage::Arena(offset) => return at(self.space.arena, offset),
            Storage::Fixed(buffer) => (buffer, 0),
        };
        let start = match self.frame.homes[buffer] {
            Home::Param(i) => self.space.params[i],
            Home::Result(i) => self.space.results[i],
            Home::Constant(offset) => at(self.space.constants, offset),
            Home::Arena => unreachable!("an arena buffer has arena storage"),
        };
        at(start, offset)
    }

    pub fn located(&self, operand: &Operand) -> Located {
        let elem = elem(operand.dtype);
        let addr = at(self.addr(operand.buffer), operand.view.offset * elem.size());
        Located { addr, view: operand.view.clone(), elem }
    }

    pub fn result(&self, node: usize, results: &[usize], index: usize) -> (Addr, Type) {
        let f = self.frame.f;
        (self.addr(results[index]), f.ty(f.nodes[node].results[index]).clone())
    }

    fn job(&self, task: usize) -> Result<Vec<Instruction>, Error> {
        match &self.frame.jobs[task] {
            Job::Group(group) => self.group(group),
            Job::Copy { from, to } => Ok(movement::copy(&self.located(from), self.addr(*to))),
            Job::Node { node, operands, results } => self.node(task, *node, operands, results),
        }
    }

    fn node(
        &self,
        task: usize,
        node: usize,
        operands: &[Operand],
        results: &[usize],
    ) -> Result<Vec<Instruction>, Error> {
        let f = self.frame.f;
        let x: Vec<Located> = operands.iter().map(|o| self.located(o)).collect();
        let (out, ty) = if results.is_empty() {
            (Addr { base: 0, offset: 0 }, Type::new(DType::U8, [0]))
        } else {
            self.result(node, results, 0)
        };
        if !results.is_empty() && f.nodes[node].results.iter().all(|&v| f.ty(v).shape.elements() == 0) {
            return Ok(vec![]);
        }
        let refuse = |why: String| unsupported(f, node, why);
        Ok(match &f.nodes[node].op {
            Op::DotGeneral(dot) => vec![contraction::dot(dot, &x, out, &ty).map_err(refuse)?],
            Op::Convolution(c) => vec![contraction::convolution(c, &x, out, &ty).map_err(refuse)?],
            Op::Reduce { monoid, axes, accumulator } => {
                vec![reduction::reduce(*monoid, axes, *accumulator, &x[0], out).map_err(refuse)?]
            }
            Op::ArgReduce { extreme, axis } => vec![reduction::arg_reduce(*extreme, *axis, &x[0], out)],
            Op::Cumulative { monoid, axis, reverse, exclusive } => {
                vec![reduction::cumulative(*monoid, *axis, *reverse, *exclusive, &x[0], out, &ty)]
            }
            Op::ReduceWindow { monoid, window } => {
                vec![window::reduce(*monoid, window, &x[0], out, &ty)]
            }
            Op::SelectAndScatter { extreme, window } => {
                vec![window::select(*extreme, window, &x, out, &ty).map_err(refuse)?]
            }
            Op::Pad { low, interior, .. } => movement::pad(low, interior, &x, out, &ty),
            Op::Concatenate { axis } => movement::concatenate(*axis, &x, out, &ty),
            Op::Transpose(_) | Op::Broadcast { .. } | Op::Slice { .. } | Op::Reverse(_) | Op::Reshape(_) => {
                movement::copy(&x[0], out)
            }
            Op::DynamicSlice { .. } => vec![indexing::dynamic_slice(&x, out, &ty)],
            Op::DynamicUpdateSlice => indexing::dynamic_update_slice(&x, out, &ty),
            Op::Gather { axis } => vec![indexing::gather(*axis, &x, out, &ty)],
            Op::Scatter { mode, axis } => indexing::scatter(*mode, *axis, &x, out, &ty),
            Op::Sort { axis, descending } => {
                let outs: Vec<Addr> = results.iter().map(|&r| self.addr(r)).collect();
                vec![indexing::sort(*axis, *descending, &x, &outs)]
            }
            Op::RngBits(shape) => vec![indexing::rng_bits(&x[0], out, shape.elements())],
            Op::Call(callee) => {
                let params = x.iter().map(|o| CallBase { addr: o.addr, stride: 0 });
                let outs = results.iter().map(|&r| CallBase { addr: self.addr(r), stride: 0 });
                vec![self.call(task, (*callee, Kind::Call), params.chain(outs).collect(), 1)]
            }
            Op::Scan(scan) => self.scan(task, node, scan, &x, results),
            Op::Constant(_)
            | Op::Iota { .. }
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Clamp
            | Op::Cast(_)
            | Op::Bitcast(_)
            | Op::ReducePrecision { .. }
            | Op::Barrier => return Err(unsupported(f, node, "it has no kernel of its own")),
        })
    }

    /// A call: arena, constants, parameters, results.
    fn call(
        &self,
        task: usize,
        callee: (backfit_ir::FuncId, Kind),
        operands: Vec<CallBase>,
        trip_count: usize,
    ) -> Instruction {
        let arena = CallBase { addr: at(self.space.arena, self.frame.plan.scratch[task]), stride: 0 };
        let constants = CallBase { addr: self.space.constants, stride: 0 };
        let bases = [arena, constants].into_iter().chain(operands).collect();
        Call { function: self.callees[&callee], bases, trip_count }.into()
    }

    /// Copies the carries to where they end up, then runs the body over them in place.
    fn scan(
        &self,
        task: usize,
        node: usize,
        scan: &backfit_ir::ops::scan::Scan,
        x: &[Located],
        results: &[usize],
    ) -> Vec<Instruction> {
        let f = self.frame.f;
        let mut instructions = Vec::new();
        let mut bases = Vec::new();
        let outs: Vec<Addr> = results.iter().map(|&r| self.addr(r)).collect();
        for i in 0..scan.carries {
            let bytes = f.ty(f.nodes[node].results[i]).bytes();
            instructions.extend(movement::copy_bytes(x[i].addr, outs[i], bytes));
            bases.push(CallBase { addr: outs[i], stride: 0 });
        }
        bases.extend(
            x[scan.carries..scan.carries + scan.constants].iter().map(|o| CallBase { addr: o.addr, stride: 0 }),
        );
        let stacked = |addr: Addr, bytes: usize| {
            let slice = bytes / scan.trip_count.max(1);
            let last = slice * scan.trip_count.saturating_sub(1);
            match scan.reverse {
                true => CallBase { addr: at(addr, last), stride: -(slice as isize) },
                false => CallBase { addr, stride: slice as isize },
            }
        };
        for (i, operand) in x.iter().enumerate().skip(scan.carries + scan.constants) {
            bases.push(stacked(operand.addr, f.ty(f.nodes[node].operands[i]).bytes()));
        }
        for (i, &out) in outs.iter().enumerate().skip(scan.carries) {
            bases.push(stacked(out, f.ty(f.nodes[node].results[i]).bytes()));
        }
        if scan.trip_count > 0 {
            instructions.push(self.call(task, (scan.body, loop_kind(scan)), bases, scan.trip_count));
        }
        instructions
    }
}

/// An address some bytes further on.
pub fn at(addr: Addr, bytes: usize) -> Addr {
    Addr { base: addr.base, offset: addr.offset + bytes }
}

/// The machine's element type.
pub fn elem(dtype: DType) -> Elem {
    match dtype {
        DType::F64 => Elem::F64,
        DType::F32 => Elem::F32,
        DType::F16 => Elem::F16,
        DType::BF16 => Elem::BF16,
        DType::I64 => Elem::I64,
        DType::I32 => Elem::I32,
        DType::I16 => Elem::I16,
        DType::I8 => Elem::I8,
        DType::U64 => Elem::U64,
        DType::U32 => Elem::U32,
        DType::U16 => Elem::U16,
        DType::U8 => Elem::U8,
        DType::Bool => Elem::Bool,
        DType::I4 | DType::U4 | DType::U1 => unreachable!("packed dtypes are unpacked when constants are made"),
    }
}

/// Axes of a view as one line of (size, stride), in the given order; `None` where strides cannot tell it.
pub fn line(view: &View, axes: &[usize]) -> Option<(usize, isize)> {
    let picked = View {
        dims: axes.iter().map(|&a| view.dims[a]).collect(),
        strides: axes.iter().map(|&a| view.strides[a]).collect(),
        offset: 0,
    };
    match picked.runs()[..] {
        [] => Some((picked.dims.iter().product(), 0)),
        [run] => Some(run),
        _ => None,
    }
}

/// Instructions as steps of the machine: which all threads share, and where they meet.
///
/// Threads meet wherever an instruction touches bytes that another has written since they last met, or writes
/// bytes that another has touched.
pub fn steps(
    emitted: Vec<Instruction>,
    threads: usize,
    ends_with_barrier: bool,
    is_parallel: &dyn Fn(&Instruction) -> bool,
) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open: Vec<(Access, bool)> = Vec::new();
    for instruction in emitted {
        let parallel = threads > 1 && is_parallel(&instruction);
        let mut touched: Vec<Access> = Vec::new();
        instruction.accesses(&mut |access| touched.push(access));
        let is_call = matches!(instruction, Instruction::Call(_));
        let clashes = |a: &Access, (b, alone): &(Access, bool)| {
            (parallel || !alone)
                && (a.write || b.write)
                && a.addr.base == b.addr.base
                && a.addr.offset < b.addr.offset + b.bytes
                && b.addr.offset < a.addr.offset + a.bytes
        };
        let clash = is_call || touched.iter().any(|a| open.iter().any(|b| clashes(a, b)));
        if clash && let Some(last) = steps.last_mut() {
            last.barrier = threads > 1;
            open.clear();
        }
        open.extend(touched.into_iter().map(|a| (a, !parallel)));
        steps.push(Step { instruction, parallel, barrier: threads > 1 && is_call });
        if is_call {
            open.clear();
        }
    }
    if ends_with_barrier && let Some(last) = steps.last_mut() {
        last.barrier = threads > 1;
    }
    steps
}
