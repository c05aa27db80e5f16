//! The smallest peak over all orders of a few tasks, by trying them all.

use backfit_compile::plan::{ALIGN, Place, Tasks};

/// The smallest peak of live bytes, every buffer rounded up to the alignment. Updates are not modelled.
pub fn smallest_peak(tasks: &Tasks) -> usize {
    let mut search = Search::new(tasks);
    search.descend(&mut Vec::new(), 0, 0);
    search.best
}

struct Search<'t> {
    tasks: &'t Tasks,
    before: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    best: usize,
}

impl<'t> Search<'t> {
    fn new(tasks: &'t Tasks) -> Self {
        let writer = |b: &usize| tasks.tasks.iter().position(|t| t.writes.contains(b));
        let before = tasks.tasks.iter().map(|t| t.reads.iter().filter_map(writer).collect()).collect();
        let reads = |b: usize| (0..tasks.tasks.len()).filter(|&t| tasks.tasks[t].reads.contains(&b)).collect();
        let readers = (0..tasks.buffers.len()).map(reads).collect();
        Search { tasks, before, readers, best: usize::MAX }
    }

    fn bytes(&self, buffer: usize) -> usize {
        let own = &self.tasks.buffers[buffer];
        if own.place == Place::Arena { own.bytes.next_multiple_of(ALIGN) } else { 0 }
    }

    /// Continues an order that keeps `live` bytes and had a peak of `peak`.
    fn descend(&mut self, done: &mut Vec<usize>, live: usize, peak: usize) {
        if done.len() == self.tasks.tasks.len() {
            self.best = self.best.min(peak);
            return;
        }
        for task in 0..self.tasks.tasks.len() {
            if done.contains(&task) || !self.before[task].iter().all(|b| done.contains(b)) {
                continue;
            }
            let (during, after) = self.run(task, done, live);
            if peak.max(during) < self.best {
                done.push(task);
                self.descend(done, after, peak.max(during));
                done.pop();
            }
        }
    }

    /// Live bytes during and after a task.
    fn run(&self, task: usize, done: &[usize], live: usize) -> (usize, usize) {
        let own = &self.tasks.tasks[task];
        let dies = |b: usize| self.readers[b].iter().all(|r| *r == task || done.contains(r));
        let defined: usize = own.writes.iter().map(|&b| self.bytes(b)).sum();
        let freed: usize = own.reads.iter().chain(&own.writes).filter(|&&b| dies(b)).map(|&b| self.bytes(b)).sum();
        let reused = self.reuse(own.writes.as_slice(), &own.in_place, &mut Vec::new(), &dies);
        let during = live + defined - reused + own.scratch.next_multiple_of(ALIGN);
        (during, live + defined - freed)
    }

    /// The most bytes that results may take over from operands that die, each operand by one result.
    fn reuse(
        &self,
        writes: &[usize],
        pairs: &[(usize, usize)],
        taken: &mut Vec<usize>,
        dies: &dyn Fn(usize) -> bool,
    ) -> usize {
        let Some((&write, rest)) = writes.split_first() else { return 0 };
        let mut most = self.reuse(rest, pairs, taken, dies);
        for &(read, _) in pairs.iter().filter(|(_, w)| *w == write) {
            let same = self.tasks.buffers[read].bytes == self.tasks.buffers[write].bytes;
            if same && self.bytes(read) > 0 && dies(read) && !taken.contains(&read) {
                taken.push(read);
                most = most.max(self.bytes(read) + self.reuse(rest, pairs, taken, dies));
                taken.pop();
            }
        }
        most
    }
}
