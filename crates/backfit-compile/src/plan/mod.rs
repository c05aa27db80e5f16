//! The memory planner: from tasks over buffers to an order, storage for every buffer, and one arena.
//!
//! It knows bytes and dependencies only, not operators. A target turns nodes into tasks, asks for a [`Plan`]
//! and takes every address from it. Memory is known before anything runs.

mod lifetimes;
mod offsets;
mod schedule;
mod storage;
mod verify;

pub use lifetimes::Lifetime;
pub use storage::{Alias, Reason};
pub use verify::verify;

use backfit_ir::{Error, Problem};
use std::fmt;

/// Every address in the arena is a multiple of this: a cache line, and the widest vector.
pub const ALIGN: usize = 64;

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The planner chooses: shared over time with other buffers.
    Arena,
    /// Given from outside: inputs, outputs, constants, the resident store, a caller's operands.
    Fixed,
}

/// A piece of memory that tasks read and write whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// For people.
    pub name: String,
    /// Size.
    pub bytes: usize,
    /// Where it lives.
    pub place: Place,
}

/// A step of the program, before it has an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// For people.
    pub name: String,
    /// Buffers it reads.
    pub reads: Vec<usize>,
    /// Buffers it defines. Each buffer is written by one task.
    pub writes: Vec<usize>,
    /// Pairs (read, written) that may be one piece of memory: element i is read before element i is written.
    pub in_place: Vec<(usize, usize)>,
    /// Private memory that it needs while it runs.
    pub scratch: usize,
}

/// A buffer whose final contents belong in another, fixed one: new weights in the place of the old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The fixed buffer with the old contents.
    pub old: usize,
    /// The buffer with the new contents.
    pub new: usize,
}

/// What is to be planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// All tasks, in an order that respects their dependencies.
    pub tasks: Vec<Task>,
    /// Buffers that replace fixed ones.
    pub updates: Vec<Update>,
}

/// Where the bytes of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// At an offset in the arena.
    Arena(usize),
    /// In this fixed buffer: itself, or the one it updates.
    Fixed(usize),
}

/// One step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a task.
    Task(usize),
    /// Copies an update that could not be written in place.
    Copy(Update),
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Storage of every buffer.
    pub storage: Vec<Storage>,
    /// Offset of every task's scratch in the arena.
    pub scratch: Vec<usize>,
    /// Buffers that share memory with another on purpose, and why.
    pub aliases: Vec<Alias>,
    /// First and last step at which every buffer's memory is in use; `None` for fixed and unused ones.
    pub lifetimes: Vec<Option<Lifetime>>,
    /// Size of the arena.
    pub arena_bytes: usize,
    /// The largest number of bytes in use at one step: no arena can be smaller for this order.
    pub largest_live_bytes: usize,
    /// The order that was chosen, and the peaks of those that were not.
    pub orders: Vec<(&'static str, usize)>,
}

/// Plans an order and the storage of every buffer.
///
/// # Errors
/// Where tasks do not stand in an order of their dependencies, or sizes overflow.
pub fn plan(tasks: &Tasks) -> Result<Plan, Error> {
    check(tasks)?;
    let (order, orders) = schedule::best_order(tasks);
    let layout = storage::assign(tasks, &order);
    let steps = layout.steps.clone();
    let items = lifetimes::items(tasks, &layout);
    let largest_live_bytes = lifetimes::largest_live(&items, steps.len());
    let (offsets, arena_bytes) = offsets::best_fit(&items);
    let plan = lifetimes::collect(tasks, layout, items, &offsets, arena_bytes, largest_live_bytes, orders);
    debug_assert_eq!(verify(tasks, &plan), Ok(()));
    Ok(plan)
}

fn check(tasks: &Tasks) -> Result<(), Error> {
    let name = |b: usize| &tasks.buffers[b].name;
    let mut writers = vec![0; tasks.buffers.len()];
    tasks.tasks.iter().flat_map(|t| &t.writes).for_each(|&b| writers[b] += 1);
    if let Some(twice) = writers.iter().position(|&n| n > 1) {
        return Err(Problem::new(format!("'{}' is written twice", name(twice))).into());
    }
    let given = |b: usize| tasks.buffers[b].place == Place::Fixed && writers[b] == 0;
    let mut known: Vec<bool> = (0..tasks.buffers.len()).map(given).collect();
    for task in &tasks.tasks {
        if let Some(&early) = task.reads.iter().find(|&&b| !known[b]) {
            return Err(Problem::new(format!("'{}' reads '{}' before it is written", task.name, name(early))).into());
        }
        task.writes.iter().for_each(|&b| known[b] = true);
    }
    for (index, update) in tasks.updates.iter().enumerate() {
        if writers[update.new] == 0 || tasks.buffers[update.new].place == Place::Fixed {
            let what = format!("'{}' is updated with '{}', which no task computes", name(update.old), name(update.new));
            return Err(Problem::new(what).into());
        }
        if tasks.updates[..index].iter().any(|u| u.old == update.old) {
            return Err(Problem::new(format!("'{}' is updated twice", name(update.old))).into());
        }
    }
    let total = tasks.buffers.iter().try_fold(0usize, |sum, b| sum.checked_add(b.bytes)?.checked_add(ALIGN));
    total.map(|_| ()).ok_or_else(|| Problem::new("the buffers do not fit the address space").into())
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Arena(offset) => write!(f, "arena+{offset}"),
            Storage::Fixed(buffer) => write!(f, "fixed {buffer}"),
        }
    }
}
