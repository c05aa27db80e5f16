//! Offsets in the arena: best fit.
//!
//! Items are placed one by one into the smallest gap between those already placed that live at the same time.
//! Several orders of placing are tried; the smallest arena wins.

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
    let tried = [by_size, by_area, by_duration, by_start].map(|order| place(items, &order));
    tried.into_iter().min_by_key(|(_, size)| *size).unwrap_or_default()
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
