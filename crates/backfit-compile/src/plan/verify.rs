//! Whether a plan is right, found out by following what memory holds, step by step.

use super::{ALIGN, Place, Plan, Step, Storage, Tasks, Update};

/// Checks a plan against its tasks, independently of how it was made: every task runs once, nothing is read before it
/// is written or after its memory has been given to something else, memory is shared only where a task allows it, and
/// every fixed buffer ends with the contents that it is to have.
///
/// # Errors
/// The first thing that is wrong.
pub fn verify(tasks: &Tasks, plan: &Plan) -> Result<(), String> {
    check_storage(tasks, plan)?;
    let mut memory = Memory::new(tasks, plan);
    let mut runs = vec![0usize; tasks.tasks.len()];
    for step in &plan.steps {
        match *step {
            Step::Task(task) => {
                *runs.get_mut(task).ok_or_else(|| format!("there is no task {task}"))? += 1;
                memory.run(task)?;
            }
            Step::Copy(update) => memory.copy(update)?,
        }
    }
    if let Some(task) = runs.iter().position(|&n| n != 1) {
        return Err(format!("'{}' runs {} times", tasks.tasks[task].name, runs[task]));
    }
    memory.end()
}

/// Every buffer has a place of its size that it may have.
fn check_storage(tasks: &Tasks, plan: &Plan) -> Result<(), String> {
    if plan.storage.len() != tasks.buffers.len() || plan.scratch.len() != tasks.tasks.len() {
        return Err("the plan is one of other tasks".to_owned());
    }
    let inside = |offset: usize, bytes: usize| {
        offset.is_multiple_of(ALIGN) && offset.checked_add(bytes).is_some_and(|end| end <= plan.arena_bytes)
    };
    for (b, buffer) in tasks.buffers.iter().enumerate() {
        let fits = match (plan.storage[b], buffer.place) {
            (Storage::Arena(offset), Place::Arena) => buffer.bytes == 0 || inside(offset, buffer.bytes),
            (Storage::Arena(_), Place::Fixed) => false,
            (Storage::Fixed(fixed), Place::Fixed) => fixed == b,
            (Storage::Fixed(fixed), Place::Arena) => {
                tasks.updates.contains(&Update { old: fixed, new: b }) && tasks.buffers[fixed].bytes == buffer.bytes
            }
        };
        if !fits {
            return Err(format!("'{}' cannot be at {}", buffer.name, plan.storage[b]));
        }
    }
    for (task, &offset) in tasks.tasks.iter().zip(&plan.scratch) {
        if task.scratch > 0 && !inside(offset, task.scratch) {
            return Err(format!("the scratch of '{}' cannot be at arena+{offset}", task.name));
        }
    }
    Ok(())
}

/// A piece of memory: which (`None` is the arena), first byte, end.
type Range = (Option<usize>, usize, usize);

fn overlap(a: Range, b: Range) -> bool {
    a.0 == b.0 && a.1.max(b.1) < a.2.min(b.2)
}

/// What memory holds between two steps.
struct Memory<'p> {
    tasks: &'p Tasks,
    plan: &'p Plan,
    /// For every buffer whether its contents are intact where its storage says.
    holds: Vec<bool>,
    /// Those that are in the arena.
    in_arena: Vec<usize>,
    /// For every fixed buffer the buffers that may be in it.
    in_fixed: Vec<Vec<usize>>,
    /// For every update whether the old buffer holds the new contents by a copy.
    copied: Vec<bool>,
}

impl<'p> Memory<'p> {
    /// What is given from outside is there at the start.
    fn new(tasks: &'p Tasks, plan: &'p Plan) -> Self {
        let mut holds: Vec<bool> = tasks.buffers.iter().map(|b| b.place == Place::Fixed).collect();
        tasks.tasks.iter().flat_map(|t| &t.writes).for_each(|&b| holds[b] = false);
        let mut in_fixed: Vec<Vec<usize>> = vec![Vec::new(); tasks.buffers.len()];
        for (b, storage) in plan.storage.iter().enumerate() {
            if let Storage::Fixed(fixed) = storage {
                in_fixed[*fixed].push(b);
            }
        }
        Memory { tasks, plan, holds, in_arena: Vec::new(), in_fixed, copied: vec![false; tasks.updates.len()] }
    }

    fn range(&self, buffer: usize) -> Range {
        let bytes = self.tasks.buffers[buffer].bytes;
        match self.plan.storage[buffer] {
            Storage::Arena(offset) => (None, offset, offset + bytes),
            Storage::Fixed(fixed) => (Some(fixed), 0, bytes),
        }
    }

    fn name(&self, buffer: usize) -> &str {
        &self.tasks.buffers[buffer].name
    }

    fn run(&mut self, task: usize) -> Result<(), String> {
        let own = &self.tasks.tasks[task];
        let scratch = (None, self.plan.scratch[task], self.plan.scratch[task] + own.scratch);
        if let Some(&lost) = own.reads.iter().find(|&&b| !self.holds[b]) {
            return Err(format!("'{}' does not hold its contents when '{}' reads it", self.name(lost), own.name));
        }
        if let Some(&b) = own.reads.iter().chain(&own.writes).find(|&&b| overlap(scratch, self.range(b))) {
            return Err(format!("the scratch of '{}' overlaps '{}'", own.name, self.name(b)));
        }
        for (i, &w) in own.writes.iter().enumerate() {
            if let Some(&other) = own.writes[..i].iter().find(|&&other| overlap(self.range(w), self.range(other))) {
                return Err(format!("'{}' writes '{}' over '{}'", own.name, self.name(w), self.name(other)));
            }
            for &r in &own.reads {
                let in_place = self.range(w) == self.range(r) && own.in_place.contains(&(r, w));
                if overlap(self.range(w), self.range(r)) && !in_place {
                    return Err(format!("'{}' writes over its operand '{}'", own.name, self.name(r)));
                }
            }
        }
        self.overwrite(scratch);
        own.writes.iter().for_each(|&w| self.overwrite(self.range(w)));
        for &w in &own.writes {
            self.holds[w] = true;
            if matches!(self.plan.storage[w], Storage::Arena(_)) {
                self.in_arena.push(w);
            }
        }
        Ok(())
    }

    /// Whatever lies in a piece of memory is lost.
    fn overwrite(&mut self, range: Range) {
        let there = range.0.map_or(&self.in_arena, |fixed| &self.in_fixed[fixed]);
        let lost: Vec<usize> = there.iter().copied().filter(|&b| overlap(range, self.range(b))).collect();
        lost.into_iter().for_each(|b| self.holds[b] = false);
        match range.0 {
            None => self.in_arena.retain(|&b| self.holds[b]),
            Some(fixed) => {
                for (copied, update) in self.copied.iter_mut().zip(&self.tasks.updates) {
                    *copied &= update.old != fixed;
                }
            }
        }
    }

    fn copy(&mut self, update: Update) -> Result<(), String> {
        let Some(index) = self.tasks.updates.iter().position(|u| *u == update) else {
            return Err(format!("{update:?} was not asked for"));
        };
        if !self.holds[update.new] {
            return Err(format!("'{}' does not hold its contents when it is copied", self.name(update.new)));
        }
        self.overwrite((Some(update.old), 0, self.tasks.buffers[update.old].bytes));
        self.copied[index] = true;
        Ok(())
    }

    /// Updates have reached the old buffers; all other fixed buffers hold what they did, or what was written to them.
    fn end(&self) -> Result<(), String> {
        for (b, buffer) in self.tasks.buffers.iter().enumerate().filter(|(_, buffer)| buffer.place == Place::Fixed) {
            let right = match self.tasks.updates.iter().position(|u| u.old == b) {
                None => self.holds[b] || buffer.bytes == 0,
                Some(index) => {
                    let new = self.tasks.updates[index].new;
                    self.copied[index] || self.holds[new] && self.plan.storage[new] == Storage::Fixed(b)
                }
            };
            if !right {
                return Err(format!("'{}' ends with the wrong contents", buffer.name));
            }
        }
        Ok(())
    }
}
