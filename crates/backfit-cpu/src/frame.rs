//! Frames: a function as planned jobs over buffers.
//!
//! Every function is planned once. Its frame has base registers for its scratch, the program's constants,
//! each parameter and each result, so that one compiled body serves every call and every step of a loop.

use crate::fuse::{Extent, Group, Unit, fuse, source};
use crate::view::View;
use backfit_compile::plan::{Buffer, Place, Plan, Task, Tasks, Update, plan};
use backfit_ir::ops::scan::Scan;
use backfit_ir::{DType, Def, Error, FuncId, Function, Literal, Module, Op, Problem, Type, ValueId};
use std::collections::HashMap;

/// What a buffer is, beyond the planner's view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the frame's arena, where the plan says.
    Arena,
    /// The parameter with this index.
    Param(usize),
    /// The result with this index.
    Result(usize),
    /// In the program's constants, at this offset.
    Constant(usize),
}

/// A value as kernels read it.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The buffer.
    pub buffer: usize,
    /// Where in it.
    pub view: View,
    /// Element type.
    pub dtype: DType,
}

/// What one task does.
#[derive(Clone, Debug)]
pub enum Job {
    /// A fused group.
    Group(Group),
    /// A node with a kernel of its own.
    Node {
        /// Its index in the function.
        node: usize,
        /// What it reads.
        operands: Vec<Operand>,
        /// The buffers of its results.
        results: Vec<usize>,
    },
    /// Copies a view into a dense buffer.
    Copy {
        /// The view.
        from: Operand,
        /// The buffer.
        to: usize,
    },
}

/// The constants of a program, each stored once.
#[derive(Default)]
pub struct Constants {
    /// All bytes, each constant aligned to a cache line.
    pub bytes: Vec<u8>,
    known: HashMap<Literal, usize>,
}

impl Constants {
    fn offset(&mut self, literal: &Literal) -> usize {
        if let Some(&offset) = self.known.get(literal) {
            return offset;
        }
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(literal.bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(backfit_compile::plan::ALIGN), 0);
        self.known.insert(literal.clone(), offset);
        offset
    }
}

/// How a function's results relate to its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Results with an alias update their parameter: an entry point.
    Entry,
    /// Results are buffers of the caller.
    Call,
    /// The first results update the first parameters: the body of a loop with this many carries.
    Loop(usize),
}

/// A planned function.
pub struct Frame<'m> {
    /// The module it belongs to.
    pub module: &'m Module,
    /// The function.
    pub f: &'m Function,
    /// How it is called.
    pub kind: Kind,
    /// What each task does, by task number.
    pub jobs: Vec<Job>,
    /// What each buffer is.
    pub homes: Vec<Home>,
    /// What the planner was given.
    pub tasks: Tasks,
    /// What it said.
    pub plan: Plan,
    /// The buffers of values that have one.
    pub buffer_of: HashMap<ValueId, usize>,
    /// Dense copies of views that kernels could not read in place.
    pub dense: HashMap<ValueId, usize>,
}

/// Looks up the frames of callees.
pub type Callees = HashMap<(FuncId, Kind), usize>;

/// Plans a function; `scratch` tells the arena size of a callee's frame.
///
/// # Errors
/// Where an operator is outside what the CPU target carries out.
pub fn plan_frame<'m>(
    module: &'m Module,
    f: &'m Function,
    kind: Kind,
    fused: bool,
    constants: &mut Constants,
    scratch: &dyn Fn(FuncId, Kind) -> usize,
) -> Result<Frame<'m>, Error> {
    let fusion = fuse(f, fused);
    let mut planner = Planner {
        f,
        constants,
        scratch,
        jobs: Vec::new(),
        homes: Vec::new(),
        tasks: Tasks::default(),
        buffer_of: HashMap::new(),
        dense: HashMap::new(),
        outside: used_outside(f, &fusion.unit_of),
    };
    for (index, param) in f.params.iter().enumerate() {
        let buffer = planner.fixed(&param.name, f.ty(param.value).bytes(), Home::Param(index));
        planner.buffer_of.insert(param.value, buffer);
    }
    planner.claim_results(kind);
    for unit in &fusion.units {
        match unit {
            Unit::Group(group) => planner.group(group),
            Unit::Kernel(node) => planner.node(*node),
        }
    }
    planner.finish_results(kind);
    let Planner { jobs, homes, tasks, buffer_of, dense, .. } = planner;
    let plan = plan(&tasks).map_err(|e| e.because(format!("'{}' is being planned", f.name)))?;
    Ok(Frame { module, f, kind, jobs, homes, tasks, plan, buffer_of, dense })
}

/// For every value whether something other than its own group reads it.
fn used_outside(f: &Function, unit_of: &[Option<usize>]) -> Vec<bool> {
    let mut outside = vec![false; f.values.len()];
    let unit = |v: ValueId| match f.values[v.index()].def {
        Def::Node { node, .. } => unit_of[node],
        Def::Param(_) => None,
    };
    for (index, node) in f.nodes.iter().enumerate() {
        let Some(own) = unit_of[index] else { continue };
        for &operand in &node.operands {
            let value = source(f, operand).value;
            outside[value.index()] |= unit(value) != Some(own);
        }
    }
    f.results.iter().for_each(|r| outside[source(f, r.value).value.index()] = true);
    outside
}

struct Planner<'a> {
    f: &'a Function,
    constants: &'a mut Constants,
    scratch: &'a dyn Fn(FuncId, Kind) -> usize,
    jobs: Vec<Job>,
    homes: Vec<Home>,
    tasks: Tasks,
    buffer_of: HashMap<ValueId, usize>,
    dense: HashMap<ValueId, usize>,
    outside: Vec<bool>,
}

impl Planner<'_> {
    fn buffer(&mut self, name: &str, bytes: usize, home: Home) -> usize {
        let place = if home == Home::Arena { Place::Arena } else { Place::Fixed };
        self.tasks.buffers.push(Buffer { name: name.to_owned(), bytes, place });
        self.homes.push(home);
        self.homes.len() - 1
    }

    fn fixed(&mut self, name: &str, bytes: usize, home: Home) -> usize {
        self.buffer(name, bytes, home)
    }

    /// The parameter that a result updates, if it does.
    fn updates(&self, kind: Kind, result: usize) -> Option<usize> {
        match kind {
            Kind::Entry => self.f.results[result].alias,
            Kind::Loop(carries) => (result < carries).then_some(result),
            Kind::Call => None,
        }
    }

    /// Lets results be computed straight into their buffers, where one node's whole value is one result.
    fn claim_results(&mut self, kind: Kind) {
        let f = self.f;
        for (index, result) in f.results.iter().enumerate() {
            let own = matches!(f.values[result.value.index()].def, Def::Node { .. })
                && source(f, result.value).value == result.value
                && self.constant(result.value).is_none()
                && !self.buffer_of.contains_key(&result.value);
            if own {
                let home = if self.updates(kind, index).is_some() { Home::Arena } else { Home::Result(index) };
                let buffer = self.buffer(&result.name, f.ty(result.value).bytes(), home);
                self.buffer_of.insert(result.value, buffer);
                if let Some(param) = self.updates(kind, index) {
                    self.tasks.updates.push(Update { old: param, new: buffer });
                }
            }
        }
    }

    /// Copies the results that were not computed in place.
    fn finish_results(&mut self, kind: Kind) {
        let f = self.f;
        for (index, result) in f.results.iter().enumerate() {
            let update = self.updates(kind, index);
            let claimed = self.buffer_of.get(&result.value).copied().filter(|&b| match update {
                Some(param) => self.tasks.updates.contains(&Update { old: param, new: b }),
                None => self.homes[b] == Home::Result(index),
            });
            if claimed.is_some() || update.is_some_and(|param| f.params[param].value == result.value) {
                continue;
            }
            let home = if update.is_some() { Home::Arena } else { Home::Result(index) };
            let to = self.buffer(&result.name, f.ty(result.value).bytes(), home);
            let from = self.read(result.value);
            self.copy(from, to);
            if let Some(param) = update {
                self.tasks.updates.push(Update { old: param, new: to });
            }
        }
    }

    fn constant(&self, value: ValueId) -> Option<Literal> {
        constant(self.f, value)
    }

    /// The buffer of a value that is no view.
    fn buffer_of(&mut self, value: ValueId) -> usize {
        if let Some(&known) = self.buffer_of.get(&value) {
            return known;
        }
        let name = self.f.describe(value);
        let buffer = match self.constant(value) {
            Some(literal) => {
                let offset = self.constants.offset(&literal);
                self.fixed(&name, literal.bytes().len(), Home::Constant(offset))
            }
            None => self.buffer(&name, self.f.ty(value).bytes(), Home::Arena),
        };
        self.buffer_of.insert(value, buffer);
        buffer
    }

    /// A value as a view of a buffer.
    fn read(&mut self, value: ValueId) -> Operand {
        let source = source(self.f, value);
        Operand { buffer: self.buffer_of(source.value), view: source.view, dtype: self.f.ty(value).dtype }
    }

    /// A value as a dense buffer, copied where it is not.
    fn read_dense(&mut self, value: ValueId) -> Operand {
        let operand = self.read(value);
        if operand.view.is_dense() {
            return Operand { view: View::dense(&self.f.ty(value).shape), ..operand };
        }
        let buffer = match self.dense.get(&value) {
            Some(&known) => known,
            None => {
                let name = format!("dense {}", self.f.describe(value));
                let to = self.buffer(&name, self.f.ty(value).bytes(), Home::Arena);
                self.copy(operand.clone(), to);
                self.dense.insert(value, to);
                to
            }
        };
        Operand { buffer, view: View::dense(&self.f.ty(value).shape), dtype: operand.dtype }
    }

    /// An operand in another order of axes, dense.
    fn reordered(&mut self, operand: Operand, axes: &[usize]) -> Operand {
        let view = View {
            dims: axes.iter().map(|&a| operand.view.dims[a]).collect(),
            strides: axes.iter().map(|&a| operand.view.strides[a]).collect(),
            offset: operand.view.offset,
        };
        let shape = view.dims.clone().into();
        let to = self.buffer("packed operand", Type::new(operand.dtype, &shape).bytes(), Home::Arena);
        self.copy(Operand { view, ..operand.clone() }, to);
        // Seen again in the old order of axes.
        let dense = View::dense(&shape);
        let mut strides = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(i, &a)| strides[a] = dense.strides[i]);
        Operand { buffer: to, view: View { dims: operand.view.dims, strides, offset: 0 }, dtype: operand.dtype }
    }

    fn copy(&mut self, from: Operand, to: usize) {
        let task = Task { name: "copy".to_owned(), reads: vec![from.buffer], writes: vec![to], ..Task::default() };
        self.push(Job::Copy { from, to }, task);
    }

    fn push(&mut self, job: Job, mut task: Task) {
        task.reads.sort_unstable();
        task.reads.dedup();
        self.jobs.push(job);
        self.tasks.tasks.push(task);
    }

    // ---- groups ----

    fn group(&mut self, group: &Group) {
        let f = self.f;
        let own = |v: ValueId| group.members.iter().any(|m| f.nodes[m.node].results[0] == v);
        let mut reads: Vec<Operand> = Vec::new();
        for member in &group.members {
            for &operand in &f.nodes[member.node].operands {
                let source = source(f, operand);
                if own(source.value) || splat(f, operand).is_some() {
                    continue;
                }
                let extent =
                    if matches!(f.nodes[member.node].op, Op::Reduce { .. }) { Extent::Full } else { member.extent };
                let fits = columns_merge(group, extent, &source.view);
                reads.push(if fits { self.read(operand) } else { self.read_dense(operand) });
            }
        }
        let mut writes = Vec::new();
        let mut in_place = Vec::new();
        for member in &group.members {
            let value = f.nodes[member.node].results[0];
            if self.outside[value.index()] {
                let buffer = self.buffer_of(value);
                writes.push(buffer);
                if member.extent == Extent::Full {
                    in_place.extend(replaceable(&reads, f.ty(value)).into_iter().map(|r| (r, buffer)));
                }
            }
        }
        let task = Task {
            name: group_name(f, group),
            reads: reads.iter().map(|r| r.buffer).collect(),
            writes,
            in_place,
            scratch: 0,
        };
        self.push(Job::Group(group.clone()), task);
    }

    // ---- nodes with kernels of their own ----

    fn node(&mut self, index: usize) {
        let f = self.f;
        let node = &f.nodes[index];
        let mut operands: Vec<Operand> = Vec::new();
        for (at, &value) in node.operands.iter().enumerate() {
            let operand = if reads_strided(&node.op, at) { self.read(value) } else { self.read_dense(value) };
            operands.push(operand);
        }
        if let Op::DotGeneral(dot) = &node.op {
            operands = self.product_operands(dot, operands);
        }
        let results: Vec<usize> = node.results.iter().map(|&v| self.buffer_of(v)).collect();
        let in_place = match &node.op {
            Op::Scatter { .. } | Op::DynamicUpdateSlice => vec![(operands[0].buffer, results[0])],
            Op::Scan(scan) => (0..scan.carries).map(|i| (operands[i].buffer, results[i])).collect(),
            _ => vec![],
        };
        let in_place = once(in_place, &operands);
        let scratch = match &node.op {
            Op::Call(callee) => (self.scratch)(*callee, Kind::Call),
            Op::Scan(scan) => (self.scratch)(scan.body, loop_kind(scan)),
            _ => 0,
        };
        let task = Task {
            name: node.op.name().to_owned(),
            reads: operands.iter().map(|o| o.buffer).collect(),
            writes: results.clone(),
            in_place,
            scratch,
        };
        self.push(Job::Node { node: index, operands, results }, task);
    }

    /// Operands of a product whose free axes, and whose contracted axes, each lie along one stride.
    fn product_operands(
        &mut self,
        dot: &backfit_ir::ops::dot_general::DotGeneral,
        operands: Vec<Operand>,
    ) -> Vec<Operand> {
        let sides = [(&dot.lhs_batch, &dot.lhs_contract), (&dot.rhs_batch, &dot.rhs_contract)];
        let mut out = Vec::new();
        for (operand, (batch, contract)) in operands.into_iter().zip(sides) {
            let free = backfit_ir::ops::dot_general::DotGeneral::free(operand.view.dims.len(), batch, contract);
            let line = |axes: &[usize]| crate::emit::line(&operand.view, axes).is_some();
            let fits = line(&free) && line(contract);
            let order: Vec<usize> = batch.iter().chain(&free).chain(contract).copied().collect();
            out.push(if fits { operand } else { self.reordered(operand, &order) });
        }
        out
    }
}

/// A loop's kind.
pub fn loop_kind(scan: &Scan) -> Kind {
    Kind::Loop(scan.carries)
}

/// In-place pairs whose operand buffer is read only once, dense.
fn once(pairs: Vec<(usize, usize)>, operands: &[Operand]) -> Vec<(usize, usize)> {
    let single = |b: usize| operands.iter().filter(|o| o.buffer == b).count() == 1;
    let dense = |b: usize| operands.iter().any(|o| o.buffer == b && o.view.is_dense());
    pairs.into_iter().filter(|&(r, _)| single(r) && dense(r)).collect()
}

/// Operand buffers whose every read is the whole buffer in order, with elements as wide as the result's.
fn replaceable(reads: &[Operand], result: &Type) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for read in reads {
        let fits = |o: &Operand| {
            o.view.is_dense()
                && o.view.dims.iter().product::<usize>() == result.shape.elements()
                && o.dtype.bits() == result.dtype.bits()
        };
        let all = reads.iter().filter(|o| o.buffer == read.buffer).all(fits);
        if all && !found.contains(&read.buffer) {
            found.push(read.buffer);
        }
    }
    found
}

/// Whether a kernel reads this operand through any strides.
fn reads_strided(op: &Op, operand: usize) -> bool {
    match op {
        Op::DotGeneral(_)
        | Op::Convolution(_)
        | Op::Reduce { .. }
        | Op::ArgReduce { .. }
        | Op::Cumulative { .. }
        | Op::Concatenate { .. }
        | Op::Reshape(_)
        | Op::ReduceWindow { .. }
        | Op::SelectAndScatter { .. } => true,
        Op::Pad { .. } | Op::DynamicSlice { .. } => operand == 0,
        Op::DynamicUpdateSlice => operand < 2,
        Op::Scatter { .. } => operand == 0,
        _ => false,
    }
}

/// Whether the axes of a view that are a group's columns lie along one stride.
pub fn columns_merge(group: &Group, reader: Extent, view: &View) -> bool {
    let (Some(rows), Extent::Full) = (group.row_axes, reader) else { return true };
    let view = view.squeezed();
    view.dims.len() == group.domain.len() && {
        let axes: Vec<usize> = (rows..view.dims.len()).collect();
        crate::emit::line(&view, &axes).is_some()
    }
}

/// The literal of a constant, or of a packed constant cast to a wider dtype.
pub fn constant(f: &Function, value: ValueId) -> Option<Literal> {
    let node = f.node_of(value)?;
    match &node.op {
        Op::Constant(literal) => Some(literal.clone()),
        Op::Cast(dtype) => match &f.node_of(node.operands[0])?.op {
            Op::Constant(literal) if literal.ty().dtype.is_packed() => {
                Some(Literal::from_i64(f.ty(value).with_dtype(*dtype), &literal.to_i64()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The constant of which a value shows one element everywhere.
pub fn splat(f: &Function, value: ValueId) -> Option<Literal> {
    let literal = constant(f, source(f, value).value)?;
    let first = literal.splat()?;
    let width = literal.ty().dtype.bits() / 8;
    let one = Literal::from_bytes(literal.ty().with_shape([]), &literal.bytes()[..width]);
    one.filter(|_| !first.is_nan() || literal.ty().dtype.is_float())
}

fn group_name(f: &Function, group: &Group) -> String {
    let mut names: Vec<&str> = Vec::new();
    for member in &group.members {
        names.push(f.nodes[member.node].op.name());
    }
    const SHOWN: usize = 6;
    let rest = names.len().saturating_sub(SHOWN);
    let mut text = names[..names.len().min(SHOWN)].join("+");
    if rest > 0 {
        text.push_str(&format!("+{rest} more"));
    }
    text
}

/// A kernel's refusal, with the user's line.
pub fn unsupported(f: &Function, node: usize, why: impl Into<String>) -> Error {
    let node = &f.nodes[node];
    Problem::new(format!("the cpu target cannot run '{}': {}", node.op.name(), why.into()))
        .at(backfit_ir::Place::Source(node.loc.clone()))
        .into()
}
