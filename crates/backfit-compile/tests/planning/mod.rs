//! Random task graphs, and what the planner is measured against: brute force over orders, memory byte by byte.

pub mod brute;
pub mod memory;

use backfit_compile::plan::{Buffer, Place, Task, Tasks, Update};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// What a random graph may contain.
#[derive(Clone, Copy)]
pub struct Mix {
    pub tasks: usize,
    /// Sizes are multiples of this.
    pub unit: usize,
    pub in_place: bool,
    pub updates: bool,
}

pub fn arena(tasks: &mut Tasks, bytes: usize) -> usize {
    let name = format!("b{}", tasks.buffers.len());
    tasks.buffers.push(Buffer { name, bytes, place: Place::Arena });
    tasks.buffers.len() - 1
}

pub fn fixed(tasks: &mut Tasks, name: &str, bytes: usize) -> usize {
    tasks.buffers.push(Buffer { name: name.to_owned(), bytes, place: Place::Fixed });
    tasks.buffers.len() - 1
}

/// Adds a task; a name is made up.
pub fn task(tasks: &mut Tasks, reads: &[usize], writes: &[usize], in_place: &[(usize, usize)]) -> usize {
    let name = format!("t{}", tasks.tasks.len());
    let task = Task { name, reads: reads.into(), writes: writes.into(), in_place: in_place.into(), scratch: 0 };
    tasks.tasks.push(task);
    tasks.tasks.len() - 1
}

/// A random graph: each task reads some of what is there, and defines a buffer or two.
pub fn random_graph(random: &mut Random, mix: Mix) -> Tasks {
    let mut tasks = Tasks::default();
    let size = |random: &mut Random| {
        let most = if random.chance(30) { 60 } else { 12 };
        mix.unit * (1 + random.below(most))
    };
    let mut known = Vec::new();
    for name in ["input", "weight", "state"] {
        let bytes = size(random);
        known.push(fixed(&mut tasks, name, bytes));
    }
    for _ in 0..mix.tasks {
        let recent = known.len().saturating_sub(if random.chance(70) { 4 } else { known.len() });
        let mut reads: Vec<usize> =
            (0..1 + random.below(3)).map(|_| recent + random.below(known.len() - recent)).collect();
        reads.iter_mut().for_each(|r| *r = known[*r]);
        reads.sort_unstable();
        reads.dedup();
        let writes: Vec<usize> = (0..1 + usize::from(random.chance(15)))
            .map(|_| {
                let like = random.chance(50).then(|| tasks.buffers[*random.pick(&reads)].bytes);
                let bytes = like.unwrap_or_else(|| size(random));
                arena(&mut tasks, bytes)
            })
            .collect();
        let pairs: Vec<_> = reads.iter().flat_map(|&r| writes.iter().map(move |&w| (r, w))).collect();
        let pairs: Vec<_> = pairs.into_iter().filter(|_| mix.in_place && random.chance(60)).collect();
        let at = task(&mut tasks, &reads, &writes, &pairs);
        if random.chance(20) {
            tasks.tasks[at].scratch = size(random);
        }
        known.extend(writes);
    }
    if mix.updates {
        add_updates(random, &mut tasks);
    }
    tasks
}

/// New contents for the weight and the state: buffers of their size, or copies of each other.
fn add_updates(random: &mut Random, tasks: &mut Tasks) {
    for old in [1, 2] {
        let bytes = tasks.buffers[old].bytes;
        let free = |b: &usize| {
            let own = &tasks.buffers[*b];
            own.bytes == bytes && own.place == Place::Arena && tasks.updates.iter().all(|u| u.new != *b)
        };
        let candidates: Vec<usize> = (0..tasks.buffers.len()).filter(free).collect();
        let new = if candidates.is_empty() || random.chance(30) {
            let source = random.below(tasks.buffers.len());
            let new = arena(tasks, bytes);
            task(tasks, &[source], &[new], &[]);
            new
        } else {
            *random.pick(&candidates)
        };
        tasks.updates.push(Update { old, new });
    }
}

/// A training step in layers: activations forward, gradients backward, one update per weight.
pub fn layered(random: &mut Random, layers: usize) -> Tasks {
    let mut tasks = Tasks::default();
    let widths: Vec<usize> = (0..=layers).map(|_| 64 * (1 + random.below(64))).collect();
    let input = fixed(&mut tasks, "input", widths[0]);
    let mut acts = vec![input];
    let mut weights = Vec::new();
    for layer in 0..layers {
        let weight = fixed(&mut tasks, &format!("w{layer}"), widths[layer] / 2 + widths[layer + 1]);
        let sum = arena(&mut tasks, widths[layer + 1]);
        let reads = [acts[layer], weight];
        task(&mut tasks, &reads, &[sum], &[]);
        let act = arena(&mut tasks, widths[layer + 1]);
        let mut reads = vec![sum];
        if layer > 1 && widths[layer - 1] == widths[layer + 1] {
            reads.push(acts[layer - 1]);
        }
        task(&mut tasks, &reads, &[act], &[(sum, act)]);
        acts.push(act);
        weights.push(weight);
    }
    let mut grad = arena(&mut tasks, widths[layers]);
    task(&mut tasks, &[acts[layers]], &[grad], &[]);
    for layer in (0..layers).rev() {
        let before = arena(&mut tasks, widths[layer + 1]);
        task(&mut tasks, &[grad, acts[layer + 1]], &[before], &[(grad, before)]);
        let (bytes, weight) = (tasks.buffers[weights[layer]].bytes, weights[layer]);
        let weight_grad = arena(&mut tasks, bytes);
        let at = task(&mut tasks, &[before, acts[layer]], &[weight_grad], &[]);
        tasks.tasks[at].scratch = 64 * random.below(8);
        let new = arena(&mut tasks, bytes);
        task(&mut tasks, &[weight, weight_grad], &[new], &[(weight, new), (weight_grad, new)]);
        tasks.updates.push(Update { old: weight, new });
        if layer > 0 {
            grad = arena(&mut tasks, widths[layer]);
            task(&mut tasks, &[before, weight], &[grad], &[]);
        }
    }
    tasks
}
