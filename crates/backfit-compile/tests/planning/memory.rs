//! A plan carried out on memory whose every byte remembers what it holds.

use backfit_compile::plan::{Place, Plan, Step, Storage, Tasks};
use std::collections::HashMap;

/// A byte: in the arena or in a fixed buffer.
type Byte = (Option<usize>, usize);

/// What the bytes of a buffer hold: the contents that are called after a buffer, from this offset.
type Contents = (usize, usize);

/// Runs a plan. `Err` where a task reads anything but its operands' contents, or an update is lost.
pub fn run(tasks: &Tasks, plan: &Plan) -> Result<(), String> {
    let mut memory: HashMap<Byte, Contents> = HashMap::new();
    let written = |b: usize| tasks.tasks.iter().any(|t| t.writes.contains(&b));
    for (b, buffer) in
        tasks.buffers.iter().enumerate().filter(|(b, buffer)| buffer.place == Place::Fixed && !written(*b))
    {
        memory.extend((0..buffer.bytes).map(|i| ((Some(b), i), (b, i))));
    }
    let mut runs = vec![0; tasks.tasks.len()];
    for step in &plan.steps {
        match *step {
            Step::Task(t) => {
                runs[t] += 1;
                run_task(tasks, plan, t, &mut memory)?;
            }
            Step::Copy(update) => {
                check(tasks, plan, update.new, &memory)?;
                if !tasks.updates.contains(&update) {
                    return Err("copies what is no update".to_owned());
                }
                let bytes = tasks.buffers[update.new].bytes;
                memory.extend((0..bytes).map(|i| ((Some(update.old), i), (update.new, i))));
            }
        }
    }
    if runs.iter().any(|&n| n != 1) {
        return Err("a task does not run once".to_owned());
    }
    for (b, buffer) in tasks.buffers.iter().enumerate().filter(|(_, buffer)| buffer.place == Place::Fixed) {
        let update = tasks.updates.iter().find(|u| u.old == b);
        let holds = update.map_or(b, |u| u.new);
        if (0..buffer.bytes).any(|i| memory.get(&(Some(b), i)) != Some(&(holds, i))) {
            return Err(format!("'{}' ends with the wrong contents", buffer.name));
        }
    }
    Ok(())
}

fn bytes(tasks: &Tasks, plan: &Plan, buffer: usize) -> Vec<Byte> {
    let range = 0..tasks.buffers[buffer].bytes;
    match plan.storage[buffer] {
        Storage::Arena(offset) => range.map(|i| (None, offset + i)).collect(),
        Storage::Fixed(f) => range.map(|i| (Some(f), i)).collect(),
    }
}

fn check(tasks: &Tasks, plan: &Plan, buffer: usize, memory: &HashMap<Byte, Contents>) -> Result<(), String> {
    let found = bytes(tasks, plan, buffer);
    let intact = found.iter().enumerate().all(|(i, byte)| memory.get(byte) == Some(&(buffer, i)));
    if intact { Ok(()) } else { Err(format!("'{}' is gone", tasks.buffers[buffer].name)) }
}

fn run_task(tasks: &Tasks, plan: &Plan, task: usize, memory: &mut HashMap<Byte, Contents>) -> Result<(), String> {
    let own = &tasks.tasks[task];
    let scratch: Vec<Byte> = (0..own.scratch).map(|i| (None, plan.scratch[task] + i)).collect();
    own.reads.iter().try_for_each(|&b| check(tasks, plan, b, memory))?;
    let mut touched: HashMap<Byte, usize> = HashMap::new();
    for (w, byte) in own.writes.iter().flat_map(|&w| bytes(tasks, plan, w).into_iter().map(move |byte| (w, byte))) {
        if touched.insert(byte, w).is_some() {
            return Err("two results share a byte".to_owned());
        }
    }
    let out_of_bounds = |byte: &Byte| byte.0.is_none() && byte.1 >= plan.arena_bytes;
    if touched.keys().chain(&scratch).any(out_of_bounds) || scratch.iter().any(|byte| touched.contains_key(byte)) {
        return Err("a result or scratch lies where it must not".to_owned());
    }
    for &r in &own.reads {
        for (i, byte) in bytes(tasks, plan, r).into_iter().enumerate() {
            let allowed = touched.get(&byte).is_none_or(|&w| {
                own.in_place.contains(&(r, w))
                    && bytes(tasks, plan, w).get(i) == Some(&byte)
                    && tasks.buffers[r].bytes == tasks.buffers[w].bytes
            });
            if !allowed || scratch.contains(&byte) {
                return Err(format!("writes over its operand '{}'", tasks.buffers[r].name));
            }
        }
    }
    memory.retain(|byte, _| !scratch.contains(byte));
    for &w in &own.writes {
        memory.extend(bytes(tasks, plan, w).into_iter().enumerate().map(|(i, byte)| (byte, (w, i))));
    }
    Ok(())
}
