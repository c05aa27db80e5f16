//! The order of tasks: the one with the smallest peak among several candidates.

use super::{ALIGN, Place, Tasks};
use std::collections::{BTreeSet, HashMap};

/// Up to this many tasks the best order is found exactly, by dynamic programming over sets of finished tasks.
const EXACT: usize = 16;

/// What orders are judged by: dependencies, and bytes that live between tasks.
struct Problem {
    /// Tasks that must precede each task.
    before: Vec<Vec<usize>>,
    /// Tasks that must follow each task.
    after: Vec<Vec<usize>>,
    /// Arena bytes that each task defines.
    defines: Vec<usize>,
    /// Scratch of each task.
    scratch: Vec<usize>,
    /// Bytes of every buffer, up to where the next may begin.
    bytes: Vec<usize>,
    /// The tasks that read each buffer; the last one frees it.
    readers: Vec<Vec<usize>>,
    /// The arena buffers that each task reads.
    reads: Vec<Vec<usize>>,
    /// The arena buffers that each task writes.
    writes: Vec<Vec<usize>>,
    /// For each task the arena buffers (read, written) of equal size that may be one.
    in_place: Vec<Vec<(usize, usize)>>,
}

/// The chosen order and every candidate's peak; the chosen one comes first.
pub(super) fn best_order(tasks: &Tasks) -> (Vec<usize>, Vec<(&'static str, usize)>) {
    let problem = Problem::new(tasks);
    let given: Vec<usize> = (0..tasks.tasks.len()).collect();
    let forward = problem.greedy();
    let backward = problem.backward();
    let mut candidates = vec![("as built", given), ("least growth first", forward), ("least growth last", backward)];
    if tasks.tasks.len() <= EXACT {
        candidates.push(("exact", problem.exact()));
    }
    let mut rated: Vec<_> = candidates
        .into_iter()
        .filter(|(_, order)| problem.respects(order))
        .map(|(name, order)| (problem.peak(&order), name, order))
        .collect();
    rated.sort_by_key(|(peak, _, _)| *peak);
    let orders = rated.iter().map(|(peak, name, _)| (*name, *peak)).collect();
    (rated.swap_remove(0).2, orders)
}

impl Problem {
    fn new(tasks: &Tasks) -> Self {
        let mut writer: Vec<Option<usize>> = vec![None; tasks.buffers.len()];
        for (t, task) in tasks.tasks.iter().enumerate() {
            task.writes.iter().for_each(|&b| writer[b] = Some(t));
        }
        let mut edges = Edges::new(tasks.tasks.len());
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); tasks.buffers.len()];
        for (t, task) in tasks.tasks.iter().enumerate() {
            for &b in task.reads.iter().filter(|&&b| writer[b] != Some(t)) {
                writer[b].into_iter().for_each(|w| edges.add(w, t));
                if readers[b].last() != Some(&t) {
                    readers[b].push(t);
                }
            }
        }
        let mut in_arena: Vec<bool> = tasks.buffers.iter().map(|b| b.place == Place::Arena).collect();
        for update in &tasks.updates {
            if let Some(writing) = writer[update.new] {
                edges.before_update(writing, &readers[update.old]);
            }
            // The new contents go straight into the fixed buffer, so they take no arena.
            in_arena[update.new] = false;
        }
        let bytes: Vec<usize> = tasks.buffers.iter().map(|b| b.bytes.next_multiple_of(ALIGN)).collect();
        let pick = |list: &[usize]| {
            let mut own: Vec<usize> = list.iter().copied().filter(|&b| in_arena[b]).collect();
            own.sort_unstable();
            own.dedup();
            own
        };
        let same = |r: usize, w: usize| tasks.buffers[r].bytes == tasks.buffers[w].bytes;
        let fits = |&(r, w): &(usize, usize)| in_arena[r] && in_arena[w] && same(r, w);
        let writes: Vec<Vec<usize>> = tasks.tasks.iter().map(|t| pick(&t.writes)).collect();
        Problem {
            before: edges.before,
            after: edges.after,
            defines: writes.iter().map(|w| w.iter().map(|&b| bytes[b]).sum()).collect(),
            scratch: tasks.tasks.iter().map(|t| t.scratch.next_multiple_of(ALIGN)).collect(),
            reads: tasks.tasks.iter().map(|t| pick(&t.reads)).collect(),
            in_place: tasks.tasks.iter().map(|t| t.in_place.iter().copied().filter(fits).collect()).collect(),
            bytes,
            readers,
            writes,
        }
    }

    fn respects(&self, order: &[usize]) -> bool {
        let mut position = vec![usize::MAX; self.before.len()];
        order.iter().enumerate().for_each(|(i, &t)| position[t] = i);
        order.len() == self.before.len()
            && (0..order.len()).all(|t| self.before[t].iter().all(|&b| position[b] < position[t]))
    }

    /// Bytes freed by a task, given which of its operands it reads last.
    fn frees(&self, task: usize, last: &impl Fn(usize) -> bool) -> usize {
        let read = self.reads[task].iter().filter(|&&b| last(b));
        let unread = self.writes[task].iter().filter(|&&b| self.readers[b].is_empty());
        read.chain(unread).map(|&b| self.bytes[b]).sum()
    }

    /// Bytes that a task needs while it runs, beyond those that live before it.
    fn needs(&self, task: usize, last: &impl Fn(usize) -> bool) -> usize {
        let mut reused = 0;
        let pairs = &self.in_place[task];
        for (i, &(read, write)) in pairs.iter().enumerate() {
            let first = |p: &&(usize, usize)| (p.0 == read || p.1 == write) && last(p.0);
            if last(read) && !pairs[..i].iter().any(|p| first(&p)) {
                reused += self.bytes[read];
            }
        }
        self.defines[task] - reused + self.scratch[task]
    }

    fn peak(&self, order: &[usize]) -> usize {
        let mut remaining: Vec<usize> = self.readers.iter().map(Vec::len).collect();
        let (mut live, mut peak) = (0, 0);
        for &task in order {
            let last = |b: usize| remaining[b] == 1;
            peak = peak.max(live + self.needs(task, &last));
            live = live + self.defines[task] - self.frees(task, &last);
            self.reads[task].iter().for_each(|&b| remaining[b] -= 1);
        }
        peak
    }

    /// Always the ready task that makes memory grow least; among equals the earliest as built.
    fn greedy(&self) -> Vec<usize> {
        let mut remaining: Vec<usize> = self.readers.iter().map(Vec::len).collect();
        let mut done = vec![false; self.before.len()];
        let growth = |t: usize| self.defines[t] as i64 - self.frees(t, &|b| self.readers[b].len() == 1) as i64;
        let growth = (0..self.before.len()).map(growth).collect();
        by_growth(&self.before, &self.after, growth, |task| {
            let mut changes = Vec::new();
            done[task] = true;
            for &b in &self.reads[task] {
                remaining[b] -= 1;
                if remaining[b] == 1 {
                    let last = self.readers[b].iter().find(|&&t| !done[t]);
                    changes.extend(last.map(|&t| (t, -(self.bytes[b] as i64))));
                }
            }
            changes
        })
    }

    /// The same from the end: always the task that leaves least to be kept before it; among equals the latest as built.
    fn backward(&self) -> Vec<usize> {
        let n = self.before.len();
        let mirrored = |edges: &[Vec<usize>]| -> Vec<Vec<usize>> {
            edges.iter().rev().map(|list| list.iter().map(|&t| n - 1 - t).collect()).collect()
        };
        let mut writer = vec![None; self.bytes.len()];
        (0..n).for_each(|t| self.writes[t].iter().for_each(|&b| writer[b] = Some(t)));
        let kept = |t: usize| self.reads[t].iter().map(|&b| self.bytes[b] as i64).sum();
        let growth = (0..n).rev().map(kept).collect();
        let mut live = vec![false; self.bytes.len()];
        let mut order = by_growth(&mirrored(&self.after), &mirrored(&self.before), growth, |task| {
            let mut changes = Vec::new();
            for &b in &self.reads[n - 1 - task] {
                if !std::mem::replace(&mut live[b], true) {
                    let cheaper = self.readers[b].iter().copied().chain(writer[b]);
                    changes.extend(cheaper.map(|t| (n - 1 - t, -(self.bytes[b] as i64))));
                }
            }
            changes
        });
        order.iter_mut().for_each(|t| *t = n - 1 - *t);
        order.reverse();
        order
    }

    /// The best order of few tasks: over sets of finished tasks, the smallest peak that reaches each.
    fn exact(&self) -> Vec<usize> {
        let n = self.before.len();
        let masks: Vec<u32> = self.before.iter().map(|b| b.iter().fold(0, |m, &t| m | 1 << t)).collect();
        let mut best: HashMap<u32, (usize, usize)> = HashMap::from([(0, (0, usize::MAX))]);
        let mut layer = vec![0u32];
        for _ in 0..n {
            let mut next = Vec::new();
            for &done in &layer {
                let (peak, _) = best[&done];
                let live = self.live_after(done);
                for task in (0..n).filter(|&t| done >> t & 1 == 0 && masks[t] & done == masks[t]) {
                    let set = done | 1 << task;
                    let last = |b: usize| self.readers[b].iter().all(|&t| set >> t & 1 == 1);
                    let reached = peak.max(live + self.needs(task, &last));
                    let entry = best.entry(set).or_insert_with(|| {
                        next.push(set);
                        (usize::MAX, usize::MAX)
                    });
                    if reached < entry.0 {
                        *entry = (reached, task);
                    }
                }
            }
            layer = next;
        }
        let mut order = Vec::with_capacity(n);
        let mut set = (1u32 << n) - 1;
        while set != 0 {
            let Some(&(_, task)) = best.get(&set) else { return Vec::new() };
            order.push(task);
            set &= !(1 << task);
        }
        order.reverse();
        order
    }

    fn live_after(&self, done: u32) -> usize {
        let is_done = |t: &usize| done >> t & 1 == 1;
        let written = (0..self.before.len()).filter(is_done).flat_map(|t| &self.writes[t]);
        written.filter(|&&b| self.readers[b].iter().any(|t| !is_done(t))).map(|&b| self.bytes[b]).sum()
    }
}

/// An order in which every task follows those `before` it, always with the ready task of least growth. `run` tells how
/// a task changes the growth of others.
fn by_growth(
    before: &[Vec<usize>],
    after: &[Vec<usize>],
    mut growth: Vec<i64>,
    mut run: impl FnMut(usize) -> Vec<(usize, i64)>,
) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let ready = (0..before.len()).filter(|&t| waiting[t] == 0);
    let mut ready: BTreeSet<(i64, usize)> = ready.map(|t| (growth[t], t)).collect();
    let mut order = Vec::with_capacity(before.len());
    while let Some((_, task)) = ready.pop_first() {
        order.push(task);
        for (changed, by) in run(task) {
            let was_ready = ready.remove(&(growth[changed], changed));
            growth[changed] += by;
            if was_ready {
                ready.insert((growth[changed], changed));
            }
        }
        for &next in &after[task] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.insert((growth[next], next));
            }
        }
    }
    order
}

/// Which task waits for which.
struct Edges {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Edges {
    fn new(tasks: usize) -> Self {
        Edges { before: vec![Vec::new(); tasks], after: vec![Vec::new(); tasks] }
    }

    fn add(&mut self, first: usize, then: usize) {
        self.before[then].push(first);
        self.after[first].push(then);
    }

    /// All other readers of an old value precede the task that writes the new one, where that makes no cycle.
    fn before_update(&mut self, writing: usize, readers: &[usize]) {
        if readers.iter().all(|&t| t == writing) {
            return;
        }
        let mut dependent = vec![false; self.before.len()];
        let mut open = vec![writing];
        while let Some(t) = open.pop() {
            for &next in &self.after[t] {
                if !std::mem::replace(&mut dependent[next], true) {
                    open.push(next);
                }
            }
        }
        readers.iter().filter(|&&t| t != writing && !dependent[t]).for_each(|&t| self.add(t, writing));
    }
}
