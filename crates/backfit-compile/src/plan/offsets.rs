//! Offsets in the arena: best fit.
//!
//! Items are placed one by one into the smallest gap between those already placed that live at the same time.
//! Several orders of placing are tried, and then improved by placing earlier what came out on top; the smallest arena wins.

use super::ALIGN;
use super::lifetimes::Item;

/// The offset of every item, and the size of the arena.
pub(super) fn best_fit(items: &[Item]) -> (Vec<usize>, usize) {
    let duration = |i: usize| items[i].lifetime.last - items[i].lifetime.first;
    let mut by_size: Vec<usize> = (0..items.len()).collect();
    by_size.sort_by_key(|&i| (std::cmp::Reverse(items[i].bytes), items[i].lifetime.first, i));
    let mut by_area = by_size.clone();
    by_area.sort_by_key(|&i| std::cmp::Reverse(items[i].bytes as u128 * (duration(i) as u128 + 1)));
    let mut by_duration = by_size.clone();
    by_duration.sort_by_key(|&i| std::cmp::Reverse(duration(i)));
    let mut by_start = by_size.clone();
    by_start.sort_by_key(|&i| (items[i].lifetime.first, std::cmp::Reverse(items[i].bytes)));
    let bound = largest_live(items);
    let mut best = (vec![0; items.len()], usize::MAX);
    for order in [by_size, by_area, by_duration, by_start] {
        let found = improved(items, order, bound);
        if found.1 < best.1 {
            best = found;
        }
        if best.1 <= bound {
            break;
        }
    }
    best
}

/// Comparisons of two items that improving may cost.
const EFFORT: usize = 1 << 19;

/// Places in an order; as long as there is hope, again with the topmost item earlier.
fn improved(items: &[Item], mut order: Vec<usize>, bound: usize) -> (Vec<usize>, usize) {
    let mut best = place(items, &order);
    let mut last = best.clone();
    for round in 0..(EFFORT / (items.len() * items.len()).max(1)).min(300) {
        if best.1 <= bound {
            break;
        }
        let (offsets, size) = &last;
        let Some(at) = order.iter().rposition(|&i| offsets[i] + items[i].bytes == *size) else { break };
        // The first item cannot come earlier: let it come last instead, for another start.
        let to = if at == 0 { order.len() - 1 } else { (at - 1) * (round % 3) / 2 };
        let item = order.remove(at);
        order.insert(to, item);
        last = place(items, &order);
        if last.1 < best.1 {
            best = last.clone();
        }
    }
    best
}

/// An arena of this size is good enough: what lives at once, each item up to where the next may begin.
fn largest_live(items: &[Item]) -> usize {
    let steps = items.iter().map(|i| i.lifetime.last + 1).max().unwrap_or(0);
    let aligned = |item: &Item| Item { bytes: item.bytes.next_multiple_of(ALIGN), ..*item };
    super::lifetimes::largest_live(&items.iter().map(aligned).collect::<Vec<_>>(), steps)
}

fn place(items: &[Item], order: &[usize]) -> (Vec<usize>, usize) {
    let mut offsets = vec![0; items.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(items.len()); // sorted by offset
    let mut size = 0;
    for &item in order {
        let offset = gap(items, &offsets, &placed, item);
        offsets[item] = offset;
        size = size.max(offset + items[item].bytes);
        let at = placed.partition_point(|&p| offsets[p] <= offset);
        placed.insert(at, item);
    }
    (offsets, size)
}

/// The smallest gap that holds the item; after everything else if there is none.
fn gap(items: &[Item], offsets: &[usize], placed: &[usize], item: usize) -> usize {
    let own = items[item];
    let mut best: Option<(usize, usize)> = None;
    let mut end = 0usize;
    for &other in placed.iter().filter(|&&p| items[p].lifetime.overlaps(own.lifetime)) {
        let start = end.next_multiple_of(ALIGN);
        if offsets[other] >= start + own.bytes {
            let room = offsets[other] - start;
            if best.is_none_or(|(smallest, _)| room < smallest) {
                best = Some((room, start));
            }
        }
        end = end.max(offsets[other] + items[other].bytes);
    }
    best.map_or(end.next_multiple_of(ALIGN), |(_, start)| start)
}
