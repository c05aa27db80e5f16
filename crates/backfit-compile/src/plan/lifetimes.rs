//! When each piece of arena memory is in use.

use super::storage::Layout;
use super::{Place, Plan, Step, Storage, Tasks};

/// Steps during which memory is in use, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The step that writes it.
    pub first: usize,
    /// The last step that reads it.
    pub last: usize,
}

impl Lifetime {
    pub(super) fn overlaps(self, other: Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn include(&mut self, step: usize) {
        self.first = self.first.min(step);
        self.last = self.last.max(step);
    }
}

/// What needs room in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A buffer and all that share its memory.
    Buffer(usize),
    /// The scratch of a task.
    Scratch(usize),
}

/// Room in the arena for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub owner: Owner,
    pub bytes: usize,
    pub lifetime: Lifetime,
}

pub(super) fn items(tasks: &Tasks, layout: &Layout) -> Vec<Item> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; tasks.buffers.len()];
    let mut items = Vec::new();
    for (at, step) in layout.steps.iter().enumerate() {
        let touched: Vec<usize> = match *step {
            Step::Task(t) => tasks.tasks[t].reads.iter().chain(&tasks.tasks[t].writes).copied().collect(),
            Step::Copy(update) => vec![update.new],
        };
        for b in touched {
            let root = layout.root[b];
            lifetimes[root].get_or_insert(Lifetime { first: at, last: at }).include(at);
        }
        if let Step::Task(t) = *step
            && tasks.tasks[t].scratch > 0
        {
            items.push(Item {
                owner: Owner::Scratch(t),
                bytes: tasks.tasks[t].scratch,
                lifetime: Lifetime { first: at, last: at },
            });
        }
    }
    for (b, lifetime) in lifetimes.into_iter().enumerate() {
        if let (Place::Arena, Some(lifetime)) = (tasks.buffers[b].place, lifetime) {
            items.push(Item { owner: Owner::Buffer(b), bytes: tasks.buffers[b].bytes, lifetime });
        }
    }
    items
}

pub(super) fn largest_live(items: &[Item], steps: usize) -> usize {
    let mut change = vec![0i64; steps + 1];
    for item in items {
        change[item.lifetime.first] += item.bytes as i64;
        change[item.lifetime.last + 1] -= item.bytes as i64;
    }
    let (mut live, mut largest) = (0, 0);
    for c in change {
        live += c;
        largest = largest.max(live);
    }
    largest as usize
}

pub(super) fn collect(
    tasks: &Tasks,
    layout: Layout,
    items: Vec<Item>,
    offsets: &[usize],
    arena_bytes: usize,
    largest_live_bytes: usize,
    orders: Vec<(&'static str, usize)>,
) -> Plan {
    let mut storage: Vec<Storage> = (0..tasks.buffers.len()).map(Storage::Fixed).collect();
    let mut scratch = vec![0; tasks.tasks.len()];
    let mut lifetimes = vec![None; tasks.buffers.len()];
    for (item, &offset) in items.iter().zip(offsets) {
        match item.owner {
            Owner::Scratch(task) => scratch[task] = offset,
            Owner::Buffer(b) => {
                storage[b] = Storage::Arena(offset);
                lifetimes[b] = Some(item.lifetime);
            }
        }
    }
    for b in 0..storage.len() {
        storage[b] = match tasks.buffers[b].place {
            Place::Fixed => Storage::Fixed(b),
            // A buffer that nothing touches has no memory; any address will do.
            Place::Arena if layout.root[b] == b && lifetimes[b].is_none() => Storage::Arena(0),
            Place::Arena => storage[layout.root[b]],
        };
        lifetimes[b] = lifetimes[layout.root[b]];
    }
    Plan {
        steps: layout.steps,
        storage,
        scratch,
        aliases: layout.aliases,
        lifetimes,
        arena_bytes,
        largest_live_bytes,
        orders,
    }
}
