//! How a group is run: merged axes, tile sizes, slot places, what is done once.

use super::group::{Group, MAX_OUTER, Op, Slot, SlotId, TILE};
use crate::context::Addr;
use crate::elem::Elem;

/// A load or store over the merged axes.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub addr: Addr,
    pub elem: Elem,
    pub outer: Vec<isize>,
    pub col: isize,
    pub slot: SlotId,
    pub row: bool,
    /// Rows follow each other without gaps, so that a tile is one run.
    pub packed: bool,
    /// The slot is the memory itself: nothing is copied.
    pub direct: bool,
}

/// The resolved group.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub outer: Vec<usize>,
    pub rows: usize,
    pub cols: usize,
    /// Whole rows of a tile, and columns of it.
    pub tile_rows: usize,
    pub tile_cols: usize,
    /// Loads and operations whose values are the same in every tile.
    pub once_loads: Vec<Transfer>,
    pub once_ops: Vec<Op>,
    pub loads: Vec<Transfer>,
    pub ops: Vec<Op>,
    pub stores: Vec<Transfer>,
    /// Whether each slot is a row slot, and where it lies in scratch.
    pub row: Vec<bool>,
    /// Whether each slot's values have 8 bytes.
    pub wide: Vec<bool>,
    pub offsets: Vec<usize>,
    /// Whether each slot holds one and the same value everywhere.
    pub uniform: Vec<bool>,
    pub scratch_bytes: usize,
}

/// Axes under merging: sizes (the last is the columns) and the strides of each transfer, loads first.
struct Axes {
    sizes: Vec<usize>,
    strides: Vec<Vec<isize>>,
    /// The original number of each axis.
    names: Vec<usize>,
}

impl Plan {
    pub(super) fn new(group: &Group) -> Plan {
        let axes = merge(group);
        let (cols, outer) = axes.sizes.split_last().map_or((1, &[][..]), |(c, o)| (*c, o));
        let rows: usize = outer.iter().product();
        let whole = cols <= TILE || group.reduces();
        let tile_rows = if whole { (TILE / cols.max(1)).clamp(1, rows.max(1)) } else { 1 };
        let mut plan = Plan {
            outer: outer.to_vec(),
            rows,
            cols,
            tile_rows,
            tile_cols: if whole { cols } else { TILE },
            once_loads: Vec::new(),
            once_ops: Vec::new(),
            loads: Vec::new(),
            ops: Vec::new(),
            stores: Vec::new(),
            row: group.slots.iter().map(|slot| slot.row).collect(),
            wide: group.slots.iter().map(|slot| slot.lane.size() == 8).collect(),
            offsets: Vec::new(),
            uniform: vec![false; group.slots.len()],
            scratch_bytes: 0,
        };
        plan.divide(group, &axes);
        plan.place(group);
        plan
    }

    /// Gives slots their places, after the table of their pointers. Slots that are not in use at the same time share one,
    /// so that few tiles fill the cache.
    fn place(&mut self, group: &Group) {
        let mut end = (group.slots.len() * size_of::<*mut u8>()).next_multiple_of(64);
        let bytes = |slot: &Slot| {
            let values = if slot.row { self.tile_rows } else { self.tile_rows * self.tile_cols };
            (values * slot.lane.size()).next_multiple_of(64)
        };
        let mut offsets = vec![None; group.slots.len()];
        let mut free: Vec<(usize, usize)> = Vec::new();
        let mut take = |slot: SlotId, free: &mut Vec<(usize, usize)>| {
            let size = bytes(&group.slots[slot as usize]);
            offsets[slot as usize].get_or_insert_with(|| {
                if let Some(i) = free.iter().position(|&(_, s)| s == size) {
                    return free.swap_remove(i).0;
                }
                end += size;
                end - size
            });
            (offsets[slot as usize], size)
        };
        // What is made once is kept for all tiles.
        let once = self.once_loads.iter().map(|l| l.slot).chain(self.once_ops.iter().map(Op::to));
        once.for_each(|slot| {
            take(slot, &mut free);
        });
        let loads = self.loads.iter().filter(|load| !load.direct);
        loads.for_each(|load| {
            take(load.slot, &mut free);
        });
        let last_use = self.last_uses(group.slots.len());
        for (i, op) in self.ops.iter().enumerate() {
            take(op.to(), &mut free);
            // Freed only now: an operation never writes where it reads.
            let mut done = Vec::new();
            op.each_read(&mut |id| done.push(id));
            done.push(op.to());
            done.sort_unstable();
            done.dedup();
            let direct = |id| self.loads.iter().any(|load| load.slot == id && load.direct);
            for id in done.into_iter().filter(|&id| last_use[id as usize] == Some(i) && !direct(id)) {
                if let (Some(offset), size) = take(id, &mut Vec::new()) {
                    free.push((offset, size));
                }
            }
        }
        self.offsets = offsets.into_iter().map(|offset| offset.unwrap_or(0)).collect();
        self.scratch_bytes = end;
    }

    /// The operation that last touches each slot; none for what is kept or stored.
    fn last_uses(&self, slots: usize) -> Vec<Option<usize>> {
        let mut last = vec![None; slots];
        for (i, op) in self.ops.iter().enumerate() {
            op.each_read(&mut |id| last[id as usize] = Some(i));
            last[op.to() as usize] = Some(i);
        }
        let kept = self.once_loads.iter().map(|l| l.slot).chain(self.once_ops.iter().map(Op::to));
        for slot in kept.chain(self.stores.iter().map(|store| store.slot)) {
            last[slot as usize] = None;
        }
        last
    }

    /// Sorts loads and operations into those done once and those done for each tile.
    fn divide(&mut self, group: &Group, axes: &Axes) {
        let mut writes = vec![0; group.slots.len()];
        group.loads.iter().for_each(|load| writes[load.slot as usize] += 1);
        group.ops.iter().for_each(|op| writes[op.to() as usize] += 1);
        let mut stored = vec![false; group.slots.len()];
        group.stores.iter().for_each(|store| stored[store.slot as usize] = true);
        let mut same = vec![false; group.slots.len()];
        let whole = self.tile_cols == self.cols;
        for (i, load) in group.loads.iter().enumerate() {
            let slot = load.slot as usize;
            let mut transfer = self.transfer(load.addr, load.elem, load.slot, &axes.strides[i]);
            let single = writes[slot] == 1;
            same[slot] =
                single && transfer.outer.iter().all(|&s| s == 0) && (whole || transfer.col == 0) && !transfer.packed;
            self.uniform[slot] = same[slot] && transfer.col == 0;
            transfer.direct = single && !stored[slot] && load.elem.fills_lane() && transfer.packed;
            if same[slot] { self.once_loads.push(transfer) } else { self.loads.push(transfer) }
        }
        for op in &group.ops {
            let to = op.to() as usize;
            let mut once = writes[to] == 1;
            op.each_read(&mut |id| once &= same[id as usize]);
            let mut uniform = once && !matches!(op, Op::Iota { .. } | Op::RowReduce { .. });
            op.each_read(&mut |id| uniform &= self.uniform[id as usize]);
            self.uniform[to] = uniform;
            let mut op = op.clone();
            if let Op::Iota { axis, .. } = &mut op {
                *axis = axes.names.iter().position(|name| name == axis).unwrap_or(0);
                once &= *axis == self.outer.len() && whole;
            }
            same[to] = once;
            if once { self.once_ops.push(op) } else { self.ops.push(op) }
        }
        for (i, store) in group.stores.iter().enumerate() {
            let strides = &axes.strides[group.loads.len() + i];
            let transfer = self.transfer(store.addr, store.elem, store.slot, strides);
            self.stores.push(transfer);
        }
    }

    fn transfer(&self, addr: Addr, elem: Elem, slot: SlotId, strides: &[isize]) -> Transfer {
        let (&col, outer) = strides.split_last().unwrap_or((&0, &[]));
        let row = self.row[slot as usize];
        let mut expected = self.cols as isize;
        let mut packed = !row && (col == 1 || self.cols == 1);
        // A tile of one row needs no regular row distance.
        if self.tile_rows > 1 {
            for (&size, &stride) in self.outer.iter().zip(outer).rev() {
                packed &= stride == expected || size == 1;
                expected *= size as isize;
            }
        }
        Transfer { addr, elem, outer: outer.to_vec(), col, slot, row, packed, direct: false }
    }

    /// Number of tiles.
    pub(super) fn tiles(&self) -> usize {
        self.rows.div_ceil(self.tile_rows) * self.cols.div_ceil(self.tile_cols.max(1))
    }
}

/// Merges axes that all transfers walk as one, and drops those of size 1.
fn merge(group: &Group) -> Axes {
    let mut sizes = group.outer.clone();
    sizes.push(group.cols);
    let loads = group.loads.iter().map(|l| (&l.outer_strides, l.col_stride));
    let stores = group.stores.iter().map(|s| (&s.outer_strides, s.col_stride));
    let strides = loads.chain(stores).map(|(outer, col)| outer.iter().copied().chain([col]).collect()).collect();
    let mut axes = Axes { names: (0..sizes.len()).collect(), sizes, strides };
    let mut counted = [false; MAX_OUTER + 1];
    for op in &group.ops {
        if let Op::Iota { axis, .. } = op {
            counted[*axis] = true;
        }
    }
    let has_rows = group.slots.iter().any(|slot| slot.row);
    let mut axis = axes.sizes.len();
    while axis > 0 {
        axis -= 1;
        let last = axis + 1 == axes.sizes.len();
        // The last axis keeps its meaning where rows matter.
        let fixed = counted[axes.names[axis]] || (last && has_rows);
        if fixed || axes.sizes.len() == 1 {
            continue;
        }
        if axes.sizes[axis] == 1 {
            axes.remove(axis);
        } else if axis > 0 && !counted[axes.names[axis - 1]] && axes.merges(axis) {
            axes.sizes[axis - 1] *= axes.sizes[axis];
            axes.strides.iter_mut().for_each(|s| s[axis - 1] = s[axis]);
            axes.remove(axis);
        }
    }
    axes
}

impl Axes {
    fn remove(&mut self, axis: usize) {
        self.sizes.remove(axis);
        self.names.remove(axis);
        self.strides.iter_mut().for_each(|s| {
            s.remove(axis);
        });
    }

    /// Whether every transfer walks this axis and the one outside it as one.
    fn merges(&self, axis: usize) -> bool {
        let size = self.sizes[axis] as isize;
        self.sizes[axis - 1].checked_mul(self.sizes[axis]).is_some()
            && self.strides.iter().all(|s| s[axis].checked_mul(size) == Some(s[axis - 1]))
    }
}
