//! A good choice of what to keep where trying all would take too long: minimum cuts, then single changes.
//!
//! For a price λ of a byte in operations, the cheapest choice is a minimum cut: a value is *available* or not, a step
//! *run again* or not; an available value costs λ·bytes unless its step is run again, which costs its operations and
//! makes all its operands available. What is required is available. The choices for all λ are the corners of the
//! lower hull over (bytes, operations); those between the corners are reached by keeping one value more, or another
//! one instead.

use super::problem::{Choice, Recomputation, Source};

/// So often the price is halved between the corners.
const PRICES: usize = 48;
/// Up to so many candidates, one value is exchanged for another.
const EXCHANGED: usize = 64;

/// A choice with few operations within the budget, or the fewest bytes that can be kept.
pub(super) fn best(recomputation: &Recomputation, budget: u64) -> Result<Choice, u64> {
    let (mut low, mut high) = (1e-9f64, 1e15f64);
    let mut best = cheapest(recomputation, high);
    if best.bytes > budget {
        return Err(best.bytes);
    }
    for _ in 0..PRICES {
        let price = (low * high).sqrt();
        let choice = cheapest(recomputation, price);
        if choice.bytes <= budget {
            high = price;
            if choice.is_better_than(&best) {
                best = choice;
            }
        } else {
            low = price;
        }
    }
    Ok(improved(recomputation, best, budget))
}

/// The choice with the fewest operations where a byte costs as many as `price`.
fn cheapest(recomputation: &Recomputation, price: f64) -> Choice {
    let (values, steps) = (recomputation.values.len(), recomputation.steps.len());
    let (source, sink) = (values + steps, values + steps + 1);
    let mut network = Network::new(values + steps + 2);
    for (v, value) in recomputation.values.iter().enumerate() {
        let cost = price * value.bytes as f64;
        match value.source {
            Source::Free => {}
            Source::Input => network.edge(v, sink, cost),
            Source::Step(s) => network.edge(v, values + s, cost),
        }
    }
    for (s, step) in recomputation.steps.iter().enumerate() {
        network.edge(values + s, sink, step.flops as f64);
        step.operands.iter().for_each(|&v| network.edge(values + s, v, f64::INFINITY));
    }
    recomputation.required.iter().for_each(|&v| network.edge(source, v, f64::INFINITY));
    let ours = network.cut(source, sink);
    let again = |v: usize| matches!(recomputation.values[v].source, Source::Step(s) if ours[values + s]);
    recomputation.follow(|v| !again(v))
}

/// Keeps one value more, or another one instead, as long as that saves operations within the budget.
fn improved(recomputation: &Recomputation, mut best: Choice, budget: u64) -> Choice {
    let candidates = recomputation.candidates();
    loop {
        let mut found: Option<Choice> = None;
        let dropped = best.kept.iter().filter(|_| candidates.len() <= EXCHANGED).map(|&v| Some(v));
        for without in std::iter::once(None).chain(dropped) {
            for &more in &candidates {
                let keep = |v| v == more || Some(v) != without && best.kept.binary_search(&v).is_ok();
                let choice = recomputation.follow(keep);
                let better = choice.bytes <= budget && choice.is_better_than(found.as_ref().unwrap_or(&best));
                if better {
                    found = Some(choice);
                }
            }
        }
        match found {
            Some(choice) => best = choice,
            None => return best,
        }
    }
}

/// A flow network; edge 2i + 1 is the reverse of edge 2i.
struct Network {
    edges: Vec<(usize, f64)>,
    from: Vec<Vec<usize>>,
}

impl Network {
    fn new(nodes: usize) -> Network {
        Network { edges: Vec::new(), from: vec![Vec::new(); nodes] }
    }

    fn edge(&mut self, from: usize, to: usize, capacity: f64) {
        self.from[from].push(self.edges.len());
        self.edges.push((to, capacity));
        self.from[to].push(self.edges.len());
        self.edges.push((from, 0.0));
    }

    /// Which nodes stand on the source's side of a minimum cut. Edmonds and Karp: shortest augmenting paths.
    fn cut(mut self, source: usize, sink: usize) -> Vec<bool> {
        loop {
            let mut via: Vec<Option<usize>> = vec![None; self.from.len()];
            let mut reached = vec![false; self.from.len()];
            reached[source] = true;
            let mut queue = std::collections::VecDeque::from([source]);
            while let Some(node) = queue.pop_front() {
                for &edge in &self.from[node] {
                    let (to, capacity) = self.edges[edge];
                    if capacity > 0.0 && !std::mem::replace(&mut reached[to], true) {
                        via[to] = Some(edge);
                        queue.push_back(to);
                    }
                }
            }
            if !reached[sink] {
                return reached;
            }
            let path: Vec<usize> = std::iter::successors(via[sink], |&e| via[self.edges[e ^ 1].0]).collect();
            let flow = path.iter().map(|&e| self.edges[e].1).fold(f64::INFINITY, f64::min);
            for edge in path {
                self.edges[edge].1 -= flow;
                self.edges[edge ^ 1].1 += flow;
            }
        }
    }
}
