//! Which buffers share memory on purpose, and why.

use super::{Place, Step, Tasks, Update};

/// Why two buffers are one piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The task that writes it reads the other for the last time, element by element.
    InPlace,
    /// It is the new value of a fixed buffer whose old value nothing reads any more.
    Update,
}

/// A buffer that lies in the memory of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The buffer.
    pub buffer: usize,
    /// The one whose memory it takes.
    pub of: usize,
    /// Why.
    pub reason: Reason,
}

/// Steps in order, and for every buffer the representative whose memory it shares.
pub(super) struct Layout {
    pub steps: Vec<Step>,
    pub aliases: Vec<Alias>,
    /// The representative of each buffer: itself, or the buffer at the end of its chain of aliases.
    pub root: Vec<usize>,
}

pub(super) fn assign(tasks: &Tasks, order: &[usize]) -> Layout {
    let mut layout = Layout {
        steps: order.iter().map(|&t| Step::Task(t)).collect(),
        aliases: Vec::new(),
        root: (0..tasks.buffers.len()).collect(),
    };
    let mut position = vec![0; tasks.tasks.len()];
    order.iter().enumerate().for_each(|(i, &t)| position[t] = i);
    let mut last_read = vec![None; tasks.buffers.len()];
    let mut written = vec![None; tasks.buffers.len()];
    for &t in order {
        tasks.tasks[t].reads.iter().for_each(|&b| last_read[b] = Some(position[t]));
        tasks.tasks[t].writes.iter().for_each(|&b| written[b] = Some(position[t]));
    }
    for update in &tasks.updates {
        if update_in_place(tasks, order, update, &last_read, &written) {
            layout.alias(update.new, update.old, Reason::Update);
        } else {
            layout.steps.push(Step::Copy(*update));
            last_read[update.new] = Some(layout.steps.len() - 1);
        }
    }
    // A copy at the end reads its source last, and overwrites the old contents after all tasks.
    let mut last_use = last_read;
    for &t in order {
        in_place(tasks, t, position[t], &mut last_use, &mut layout);
    }
    layout
}

/// Whether the new contents may be written straight over the old: the task that writes them is the last to read the
/// old ones, and may do so in place, or no task reads them from then on.
fn update_in_place(
    tasks: &Tasks,
    order: &[usize],
    update: &Update,
    last_read: &[Option<usize>],
    written: &[Option<usize>],
) -> bool {
    let Some(at) = written[update.new] else { return false };
    if tasks.buffers[update.new].place != Place::Arena
        || tasks.buffers[update.new].bytes != tasks.buffers[update.old].bytes
    {
        return false;
    }
    match last_read[update.old] {
        Some(read) if read == at => tasks.tasks[order[at]].in_place.contains(&(update.old, update.new)),
        Some(read) => read < at,
        None => true,
    }
}

/// Lets the results of a task take over operands that die with it. `last_use` tells of each representative when its
/// memory is read last, by whatever name.
fn in_place(tasks: &Tasks, task: usize, at: usize, last_use: &mut [Option<usize>], layout: &mut Layout) {
    let own = &tasks.tasks[task];
    for &(read, write) in &own.in_place {
        let root = layout.root[read];
        let free = |b: usize| tasks.buffers[b].place == Place::Arena;
        let same = tasks.buffers[read].bytes == tasks.buffers[write].bytes;
        if !free(root) || !free(write) || !same || layout.root[write] != write {
            continue;
        }
        let dies = last_use[root].is_none_or(|last| last <= at);
        let taken = own.writes.iter().any(|&w| layout.root[w] == root);
        let shares = |&&r: &&usize| layout.root[r] == root;
        let others = own.reads.iter().filter(shares).all(|&r| r == read || own.in_place.contains(&(r, write)));
        if dies && !taken && others {
            last_use[root] = last_use[root].max(last_use[write]);
            layout.alias(write, read, Reason::InPlace);
        }
    }
}

impl Layout {
    fn alias(&mut self, buffer: usize, of: usize, reason: Reason) {
        self.root[buffer] = self.root[of];
        self.aliases.push(Alias { buffer, of, reason });
    }
}
