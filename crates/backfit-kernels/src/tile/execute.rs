//! The walk over tiles.

use super::group::{Op, SlotId, Unary};
use super::plan::{Plan, Transfer};
use super::{cast, float, integer, transfer};
use crate::context::Context;
use crate::elem::{Elem, Lane};
use crate::fold::{self, Combine, fold_row, with_float_combine, with_integer_combine};
use crate::isa::Isa;
use crate::stored::Stored;

/// The part of the domain under work, and the slots.
struct Tile<'a> {
    plan: &'a Plan,
    ctx: &'a Context<'a>,
    /// Pointer to each slot's values.
    slots: &'a mut [*mut u8],
    row: usize,
    rows: usize,
    col: usize,
    cols: usize,
}

/// Runs this thread's tiles.
///
/// # Safety
/// The plan is that of a checked group, and the context is valid for its accesses and scratch.
pub(super) unsafe fn run(plan: &Plan, ctx: &Context) {
    let tiles = ctx.share(plan.tiles(), 1);
    if tiles.is_empty() {
        return;
    }
    // SAFETY: scratch is as long as the plan asks, aligned, and this thread's own; the table comes first.
    let slots = unsafe {
        let slots = std::slice::from_raw_parts_mut(ctx.scratch.cast::<*mut u8>(), plan.offsets.len());
        for (slot, &offset) in slots.iter_mut().zip(&plan.offsets) {
            *slot = ctx.scratch.add(offset);
        }
        slots
    };
    let across = plan.cols.div_ceil(plan.tile_cols);
    let (rows, cols) = (plan.tile_rows, plan.tile_cols);
    let mut tile = Tile { plan, ctx, slots, row: 0, rows, col: 0, cols };
    // SAFETY: slots hold `tile_rows` rows of `tile_cols`; what is done once reads the same memory for every tile.
    unsafe {
        plan.once_loads.iter().for_each(|load| tile.load(load));
        plan.once_ops.iter().for_each(|op| tile.execute(op));
    }
    for number in tiles {
        tile.row = number / across * plan.tile_rows;
        tile.rows = plan.tile_rows.min(plan.rows - tile.row);
        tile.col = number % across * plan.tile_cols;
        tile.cols = plan.tile_cols.min(plan.cols - tile.col);
        // SAFETY: the tile lies in the domain.
        unsafe {
            plan.loads.iter().for_each(|load| tile.load(load));
            plan.ops.iter().for_each(|op| tile.execute(op));
            plan.stores.iter().for_each(|store| tile.store(store));
        }
    }
}

impl Tile<'_> {
    fn slot(&self, id: SlotId) -> *mut u8 {
        self.slots[id as usize]
    }

    /// Values of a slot in this tile.
    fn count(&self, id: SlotId) -> usize {
        if self.plan.row[id as usize] { self.rows } else { self.rows * self.cols }
    }

    /// Elements from the transfer's address to a row's first column in this tile.
    fn offset(&self, transfer: &Transfer, mut row: usize) -> isize {
        let mut offset = self.col as isize * transfer.col;
        for (&size, &stride) in self.plan.outer.iter().zip(&transfer.outer).rev() {
            offset += (row % size) as isize * stride;
            row /= size;
        }
        offset
    }

    /// Calls `visit(element offset, first row of the tile, rows, row stride)` for runs of rows that are equally far apart.
    #[inline(always)]
    fn runs(&self, transfer: &Transfer, mut visit: impl FnMut(isize, usize, usize, isize)) {
        let (size, stride) = match (self.plan.outer.last(), transfer.outer.last()) {
            (Some(&size), Some(&stride)) => (size, stride),
            _ => (1, 0),
        };
        let mut done = 0;
        while done < self.rows {
            let row = self.row + done;
            let run = (size - row % size).min(self.rows - done);
            visit(self.offset(transfer, row), done, run, stride);
            done += run;
        }
    }

    unsafe fn load(&mut self, load: &Transfer) {
        let (isa, elem) = (self.ctx.isa, load.elem);
        let bytes = elem.size() as isize;
        // SAFETY: the load's access was validated for the whole domain, of which this tile is a part; slots are long enough.
        unsafe {
            let memory = self.ctx.pointer::<u8>(load.addr);
            if load.direct {
                self.slots[load.slot as usize] = memory.offset(self.offset(load, self.row) * bytes);
                return;
            }
            let slot = self.slot(load.slot);
            if load.packed {
                let from = memory.offset(self.offset(load, self.row) * bytes);
                return transfer::load(isa, elem, from, 1, slot, self.rows * self.cols);
            }
            let lane = elem.lane().size();
            self.runs(load, |offset, first, rows, stride| {
                if load.row {
                    let from = memory.offset(offset * bytes);
                    return transfer::load(isa, elem, from, stride, slot.add(first * lane), rows);
                }
                for i in 0..rows {
                    let from = memory.offset((offset + i as isize * stride) * bytes);
                    let to = slot.add((first + i) * self.cols * lane);
                    transfer::load(isa, elem, from, load.col, to, self.cols);
                }
            });
        }
    }

    unsafe fn store(&self, store: &Transfer) {
        if store.row && self.col > 0 {
            return;
        }
        let (isa, elem) = (self.ctx.isa, store.elem);
        let bytes = elem.size() as isize;
        let slot = self.slot(store.slot);
        // SAFETY: as for `load`; no two elements of the domain share an address.
        unsafe {
            let memory = self.ctx.pointer::<u8>(store.addr);
            if store.packed {
                let to = memory.offset(self.offset(store, self.row) * bytes);
                return transfer::store(isa, elem, slot, to, 1, self.rows * self.cols);
            }
            let lane = elem.lane().size();
            self.runs(store, |offset, first, rows, stride| {
                if store.row {
                    let to = memory.offset(offset * bytes);
                    return transfer::store(isa, elem, slot.add(first * lane), to, stride, rows);
                }
                for i in 0..rows {
                    let from = slot.add((first + i) * self.cols * lane);
                    let to = memory.offset((offset + i as isize * stride) * bytes);
                    transfer::store(isa, elem, from, to, store.col, self.cols);
                }
            });
        }
    }

    unsafe fn execute(&self, op: &Op) {
        let to = self.slot(op.to());
        let n = self.count(op.to());
        let isa = self.ctx.isa;
        // SAFETY: check found every slot to have the lane and shape that the operation asks, `to` to be none of those read.
        unsafe {
            match *op {
                Op::Constant { bits, to: id } => self.constant(bits, id, n),
                Op::Iota { axis, elem, to: id } => self.iota(axis, elem, id),
                Op::Unary { op, elem, from, .. } => {
                    unary(isa, op, elem, self.slot(from), to, n);
                    if op != Unary::IsFinite {
                        settle(isa, elem, to, n);
                    }
                }
                Op::Binary { op, elem, a, b, .. } => {
                    let broadcasts = elem.lane() == Lane::F32 && float::broadcasts(op);
                    let one = |id: SlotId| broadcasts && self.plan.uniform[id as usize];
                    let (one_a, one_b) = (one(a), one(b));
                    let (a, b) = (self.slot(a), self.slot(b));
                    match (elem, elem.lane()) {
                        _ if one_b => float::binary_f32_right(isa, op, a, b, to, n),
                        _ if one_a => float::binary_f32_left(isa, op, b, a, to, n),
                        (_, Lane::F32) => float::binary_f32(isa, op, a, b, to, n),
                        (_, Lane::F64) => float::binary_f64(op, a, b, to, n),
                        (Elem::U32, _) => integer::binary::<u32>(op, a, b, to, n),
                        (Elem::U64, _) => integer::binary::<u64>(op, a, b, to, n),
                        (_, Lane::I32) => integer::binary::<i32>(op, a, b, to, n),
                        (_, Lane::I64) => integer::binary::<i64>(op, a, b, to, n),
                    }
                    settle(isa, elem, to, n);
                }
                Op::Compare { op, elem, a, b, .. } => {
                    let (a, b) = (self.slot(a), self.slot(b));
                    match (elem, elem.lane()) {
                        (_, Lane::F32) => float::compare_f32(isa, op, a, b, to, n),
                        (_, Lane::F64) => float::compare_f64(op, a, b, to, n),
                        (Elem::U32, _) => integer::compare::<u32>(op, a, b, to, n),
                        (Elem::U64, _) => integer::compare::<u64>(op, a, b, to, n),
                        (_, Lane::I32) => integer::compare::<i32>(op, a, b, to, n),
                        (_, Lane::I64) => integer::compare::<i64>(op, a, b, to, n),
                    }
                }
                Op::Select { mask: mask_id, on_true, on_false, to: id } => {
                    let (mask, a, b) = (self.slot(mask_id), self.slot(on_true), self.slot(on_false));
                    if self.plan.uniform[mask_id as usize] {
                        let from = if *mask.cast::<i32>() != 0 { a } else { b };
                        std::ptr::copy_nonoverlapping(from, to, n * if self.wide(id) { 8 } else { 4 });
                    } else if self.wide(id) {
                        float::select_64(mask, a, b, to, n);
                    } else {
                        float::select_32(isa, mask, a, b, to, n);
                    }
                }
                Op::Clamp { elem, low, value, high, .. } => {
                    let (low, x, high) = (self.slot(low), self.slot(value), self.slot(high));
                    match (elem, elem.lane()) {
                        (_, Lane::F32) => float::clamp_f32(isa, low, x, high, to, n),
                        (_, Lane::F64) => float::clamp_f64(low, x, high, to, n),
                        (Elem::U32, _) => integer::clamp::<u32>(low, x, high, to, n),
                        (Elem::U64, _) => integer::clamp::<u64>(low, x, high, to, n),
                        (_, Lane::I32) => integer::clamp::<i32>(low, x, high, to, n),
                        (_, Lane::I64) => integer::clamp::<i64>(low, x, high, to, n),
                    }
                }
                Op::Cast { source, target, from, .. } => {
                    cast::cast(source, target, self.slot(from), to, n);
                    settle(isa, target, to, n);
                }
                Op::ReducePrecision { exponent, mantissa, elem, from, .. } => {
                    cast::reduce_precision(elem.lane(), exponent, mantissa, self.slot(from), to, n);
                    settle(isa, elem, to, n);
                }
                Op::Bitcast { source, target, from, .. } => {
                    cast::bitcast(source, target, self.slot(from), to, n);
                    settle(isa, target, to, n);
                }
                Op::Expand { from, to: id } => self.expand(self.slot(from), id),
                Op::RowReduce { op, elem, from, .. } => {
                    let op = if elem == Elem::Bool { fold::of_bool(op) } else { op };
                    reduce_rows(isa, op, elem, self.slot(from), to, self.rows, self.cols);
                    settle(isa, elem, to, n);
                }
            }
        }
    }

    /// Whether a slot's values have 8 bytes.
    fn wide(&self, id: SlotId) -> bool {
        self.plan.wide[id as usize]
    }

    /// Fills a slot with one value.
    unsafe fn constant(&self, bits: u64, id: SlotId, n: usize) {
        let to = self.slot(id);
        // SAFETY: the slot has `n` values of its width.
        unsafe {
            if self.wide(id) {
                std::slice::from_raw_parts_mut(to.cast::<u64>(), n).fill(bits);
            } else {
                std::slice::from_raw_parts_mut(to.cast::<u32>(), n).fill(bits as u32);
            }
        }
    }

    /// Writes the index along an axis.
    unsafe fn iota(&self, axis: usize, elem: Elem, id: SlotId) {
        let to = self.slot(id);
        let outer = &self.plan.outer;
        let along_cols = axis == outer.len();
        let inner: usize = outer.iter().skip(axis + 1).product();
        let width = if self.plan.row[id as usize] { 1 } else { self.cols };
        for r in 0..self.rows {
            let first = if along_cols { self.col } else { (self.row + r) / inner % outer[axis] };
            let step = usize::from(along_cols);
            macro_rules! write {
                ($t:ty) => {{
                    // SAFETY: the slot has `rows · width` values of this lane.
                    let row = unsafe { std::slice::from_raw_parts_mut(to.cast::<$t>().add(r * width), width) };
                    for (c, value) in row.iter_mut().enumerate() {
                        *value = (first + c * step) as $t;
                    }
                }};
            }
            match elem.lane() {
                Lane::F32 => write!(f32),
                Lane::F64 => write!(f64),
                Lane::I32 => write!(i32),
                Lane::I64 => write!(i64),
            }
        }
        // SAFETY: as above.
        unsafe { settle(self.ctx.isa, elem, to, self.rows * width) };
    }

    /// Repeats each row's value over its columns.
    unsafe fn expand(&self, from: *const u8, id: SlotId) {
        let to = self.slot(id);
        for r in 0..self.rows {
            // SAFETY: the row slot has `rows` values, the full slot `rows · cols`, of the same width.
            unsafe {
                if self.wide(id) {
                    std::slice::from_raw_parts_mut(to.cast::<u64>().add(r * self.cols), self.cols)
                        .fill(*from.cast::<u64>().add(r));
                } else {
                    std::slice::from_raw_parts_mut(to.cast::<u32>().add(r * self.cols), self.cols)
                        .fill(*from.cast::<u32>().add(r));
                }
            }
        }
    }
}

/// Rounds or wraps a result to its type.
unsafe fn settle(isa: Isa, elem: Elem, slot: *mut u8, n: usize) {
    if !elem.fills_lane() {
        // SAFETY: the caller's promise.
        unsafe { transfer::settle(isa, elem, slot, n) };
    }
}

unsafe fn unary(isa: Isa, op: Unary, elem: Elem, x: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (elem, elem.lane()) {
            (Elem::Bool, _) if op == Unary::Not => integer::not_bool(x, to, n),
            (_, Lane::F32) => float::unary_f32(isa, op, x, to, n),
            (_, Lane::F64) => float::unary_f64(op, x, to, n),
            (Elem::U32, _) => integer::unary::<u32>(op, x, to, n),
            (Elem::U64, _) => integer::unary::<u64>(op, x, to, n),
            (_, Lane::I32) => integer::unary::<i32>(op, x, to, n),
            (_, Lane::I64) => integer::unary::<i64>(op, x, to, n),
        }
    }
}

/// Reduces each row by the one tree.
unsafe fn reduce_rows(
    isa: Isa,
    op: super::Reduction,
    elem: Elem,
    from: *const u8,
    to: *mut u8,
    rows: usize,
    cols: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (elem, elem.lane()) {
            (_, Lane::F32) => with_float_combine!(op, C => float_rows::<C>(isa, from, to, rows, cols)),
            (_, Lane::F64) => with_float_combine!(op, C => rows_of::<f64, C>(from, to, rows, cols)),
            (Elem::U32, _) => with_integer_combine!(op, C => rows_of::<u32, C>(from, to, rows, cols)),
            (Elem::U64, _) => with_integer_combine!(op, C => rows_of::<u64, C>(from, to, rows, cols)),
            (_, Lane::I32) => with_integer_combine!(op, C => rows_of::<i32, C>(from, to, rows, cols)),
            (_, Lane::I64) => with_integer_combine!(op, C => rows_of::<i64, C>(from, to, rows, cols)),
        }
    }
}

per_isa! { fn float_rows<C: Combine<f32>>(from: *const u8, to: *mut u8, rows: usize, cols: usize) = rows_body::<f32, C> }

/// For types whose speed matters less. Each is a function of its own: inlined into one, they take the compiler minutes.
#[inline(never)]
unsafe fn rows_of<T: Stored<Lane = T>, C: Combine<T>>(from: *const u8, to: *mut u8, rows: usize, cols: usize) {
    // SAFETY: the caller's promise.
    unsafe { rows_body::<T, C>(from, to, rows, cols) }
}

#[inline(always)]
unsafe fn rows_body<T: Stored<Lane = T>, C: Combine<T>>(from: *const u8, to: *mut u8, rows: usize, cols: usize) {
    for r in 0..rows {
        // SAFETY: the full slot has `rows · cols` values, the row slot `rows`.
        unsafe {
            let row = std::slice::from_raw_parts(from.cast::<T>().add(r * cols), cols);
            *to.cast::<T>().add(r) = fold_row::<T, C>(row);
        }
    }
}
