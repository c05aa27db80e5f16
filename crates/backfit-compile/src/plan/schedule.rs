//! The order of tasks: the one with the smallest peak among several candidates.

use super::{Place, Tasks};
use std::collections::HashMap;

/// Up to this many tasks the best order is found exactly, by dynamic programming over sets of finished tasks.
const EXACT: usize = 16;

/// What orders are judged by: dependencies, and bytes that live between tasks.
struct Problem {
    /// Tasks that must precede each task.
    before: Vec<Vec<usize>>,
    /// Arena bytes that each task defines.
    defines: Vec<usize>,
    /// Scratch of each task.
    scratch: Vec<usize>,
    /// For every arena buffer: bytes, and the tasks that read it (last one frees it). Updates live to the end.
    buffers: Vec<(usize, Vec<usize>, bool)>,
    /// The arena buffers that each task reads.
    reads: Vec<Vec<usize>>,
    /// The arena buffers that each task writes.
    writes: Vec<Vec<usize>>,
}

/// The chosen order and every candidate's peak; the chosen one comes first.
pub(super) fn best_order(tasks: &Tasks) -> (Vec<usize>, Vec<(&'static str, usize)>) {
    let problem = Problem::new(tasks);
    let given: Vec<usize> = (0..tasks.tasks.len()).collect();
    let mut candidates = vec![("as built", given), ("least growth first", problem.greedy())];
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
        let n = tasks.tasks.len();
        let mut writer: Vec<Option<usize>> = vec![None; tasks.buffers.len()];
        for (t, task) in tasks.tasks.iter().enumerate() {
            task.writes.iter().for_each(|&b| writer[b] = Some(t));
        }
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); n];
        let mut buffers: Vec<_> = tasks.buffers.iter().map(|b| (b.bytes, Vec::new(), false)).collect();
        for (t, task) in tasks.tasks.iter().enumerate() {
            for &b in &task.reads {
                before[t].extend(writer[b].filter(|&w| w != t));
                if buffers[b].1.last() != Some(&t) {
                    buffers[b].1.push(t);
                }
            }
        }
        let in_arena = |b: &&usize| tasks.buffers[**b].place == Place::Arena;
        let pick = |list: &[usize]| {
            let mut own: Vec<usize> = list.iter().filter(in_arena).copied().collect();
            own.sort_unstable();
            own.dedup();
            own
        };
        let reads: Vec<Vec<usize>> = tasks.tasks.iter().map(|t| pick(&t.reads)).collect();
        let mut writes: Vec<Vec<usize>> = tasks.tasks.iter().map(|t| pick(&t.writes)).collect();
        for update in &tasks.updates {
            before_update(tasks, &writer, &mut before, update.old, update.new);
            // The new contents go straight into the fixed buffer, so they take no arena.
            writes.iter_mut().for_each(|w| w.retain(|&b| b != update.new));
            buffers[update.new].2 = true;
        }
        let defines = writes.iter().map(|w| w.iter().map(|&b| tasks.buffers[b].bytes).sum()).collect();
        let scratch = tasks.tasks.iter().map(|t| t.scratch).collect();
        Problem { before, defines, scratch, buffers, reads, writes }
    }

    fn respects(&self, order: &[usize]) -> bool {
        let mut position = vec![usize::MAX; self.before.len()];
        order.iter().enumerate().for_each(|(i, &t)| position[t] = i);
        order.len() == self.before.len()
            && (0..order.len()).all(|t| self.before[t].iter().all(|&b| position[b] < position[t]))
    }

    /// Bytes freed by a task, given how many readers of each buffer are still to come (this one included).
    fn frees(&self, task: usize, remaining: &[usize]) -> usize {
        let read = self.reads[task].iter().filter(|&&b| remaining[b] == 1 && !self.buffers[b].2);
        let unread = self.writes[task].iter().filter(|&&b| self.buffers[b].1.is_empty());
        read.chain(unread).map(|&b| self.buffers[b].0).sum()
    }

    fn readers(&self) -> Vec<usize> {
        self.buffers.iter().map(|(_, readers, _)| readers.len()).collect()
    }

    fn peak(&self, order: &[usize]) -> usize {
        let mut remaining = self.readers();
        let (mut live, mut peak) = (0, 0);
        for &task in order {
            live += self.defines[task];
            peak = peak.max(live + self.scratch[task]);
            live -= self.frees(task, &remaining);
            self.reads[task].iter().for_each(|&b| remaining[b] -= 1);
        }
        peak
    }

    /// Always the ready task that makes memory grow least; among equals the earliest as built.
    fn greedy(&self) -> Vec<usize> {
        let n = self.before.len();
        let mut waiting: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (t, before) in self.before.iter().enumerate() {
            before.iter().for_each(|&b| after[b].push(t));
        }
        let mut ready: Vec<usize> = (0..n).filter(|&t| waiting[t] == 0).collect();
        let mut remaining = self.readers();
        let mut order = Vec::with_capacity(n);
        while !ready.is_empty() {
            let growth = |t: usize| self.defines[t] as i64 - self.frees(t, &remaining) as i64;
            let (slot, _) = ready.iter().enumerate().min_by_key(|&(_, &t)| (growth(t), t)).expect("not empty");
            let task = ready.swap_remove(slot);
            order.push(task);
            self.reads[task].iter().for_each(|&b| remaining[b] -= 1);
            for &next in &after[task] {
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(next);
                }
            }
        }
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
                    let reached = peak.max(live + self.defines[task] + self.scratch[task]);
                    let set = done | 1 << task;
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
        written
            .filter(|&&b| self.buffers[b].2 || self.buffers[b].1.iter().any(|t| !is_done(t)))
            .map(|&b| self.buffers[b].0)
            .sum()
    }
}

/// All other readers of an old value precede the task that writes the new one, where that makes no cycle.
fn before_update(tasks: &Tasks, writer: &[Option<usize>], before: &mut [Vec<usize>], old: usize, new: usize) {
    let Some(writing) = writer[new] else { return };
    let dependents = dependents(before, writing);
    for (t, task) in tasks.tasks.iter().enumerate() {
        if t != writing && task.reads.contains(&old) && !dependents[t] {
            before[writing].push(t);
        }
    }
}

/// The tasks that depend on a task, directly or not.
fn dependents(before: &[Vec<usize>], task: usize) -> Vec<bool> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (t, list) in before.iter().enumerate() {
        list.iter().for_each(|&b| after[b].push(t));
    }
    let mut found = vec![false; before.len()];
    let mut open = vec![task];
    while let Some(t) = open.pop() {
        for &next in &after[t] {
            if !std::mem::replace(&mut found[next], true) {
                open.push(next);
            }
        }
    }
    found
}
