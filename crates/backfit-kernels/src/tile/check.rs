//! Whether a group is consistent.

use super::group::{Binary, Group, MAX_OUTER, MAX_REDUCED_COLS, Op, Slot, SlotId, Unary};
use crate::context::{Access, Addr};
use crate::elem::{Elem, Lane};
use crate::fold;
use crate::strided;

impl Op {
    /// The slot that it writes.
    pub fn to(&self) -> SlotId {
        match *self {
            Op::Constant { to, .. }
            | Op::Iota { to, .. }
            | Op::Unary { to, .. }
            | Op::Binary { to, .. }
            | Op::Compare { to, .. }
            | Op::Select { to, .. }
            | Op::Clamp { to, .. }
            | Op::Cast { to, .. }
            | Op::ReducePrecision { to, .. }
            | Op::Bitcast { to, .. }
            | Op::Expand { to, .. }
            | Op::RowReduce { to, .. } => to,
        }
    }

    /// Calls `visit` for every slot that it reads.
    pub fn each_read(&self, visit: &mut dyn FnMut(SlotId)) {
        match *self {
            Op::Constant { .. } | Op::Iota { .. } => {}
            Op::Unary { from, .. }
            | Op::Cast { from, .. }
            | Op::ReducePrecision { from, .. }
            | Op::Bitcast { from, .. }
            | Op::Expand { from, .. }
            | Op::RowReduce { from, .. } => visit(from),
            Op::Binary { a, b, .. } | Op::Compare { a, b, .. } => [a, b].into_iter().for_each(visit),
            Op::Select { mask, on_true, on_false, .. } => {
                [mask, on_true, on_false].into_iter().for_each(visit);
            }
            Op::Clamp { low, value, high, .. } => [low, value, high].into_iter().for_each(visit),
        }
    }
}

impl Group {
    /// Whether it reduces rows.
    pub(super) fn reduces(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::RowReduce { .. }))
    }

    /// The bytes that a load or store touches.
    pub(super) fn access(
        &self,
        addr: Addr,
        elem: Elem,
        outer_strides: &[isize],
        col_stride: isize,
        write: bool,
    ) -> Result<Access, String> {
        let outer = self.outer.iter().copied().zip(outer_strides.iter().copied());
        strided::access(addr, elem.size(), outer.chain([(self.cols, col_stride)]), write)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.outer.len() > MAX_OUTER {
            return Err(format!("{} outer axes, above {MAX_OUTER}", self.outer.len()));
        }
        strided::product(self.outer.iter().copied().chain([self.cols]))?;
        if self.reduces() && self.cols > MAX_REDUCED_COLS {
            return Err(format!("reduces rows of {}, above {MAX_REDUCED_COLS}", self.cols));
        }
        let mut written = vec![false; self.slots.len()];
        for (i, load) in self.loads.iter().enumerate() {
            let at = |error| format!("load {i}: {error}");
            self.check_transfer(load.slot, load.elem, &load.outer_strides, load.col_stride).map_err(at)?;
            self.access(load.addr, load.elem, &load.outer_strides, load.col_stride, false).map_err(at)?;
            written[load.slot as usize] = true;
        }
        for (i, op) in self.ops.iter().enumerate() {
            self.check_op(op, &written).map_err(|error| format!("op {i} ({op:?}): {error}"))?;
            written[op.to() as usize] = true;
        }
        for (i, store) in self.stores.iter().enumerate() {
            let at = |error| format!("store {i}: {error}");
            self.check_transfer(store.slot, store.elem, &store.outer_strides, store.col_stride).map_err(at)?;
            self.access(store.addr, store.elem, &store.outer_strides, store.col_stride, true).map_err(at)?;
            if !written[store.slot as usize] {
                return Err(at("its slot is never written".into()));
            }
        }
        Ok(())
    }

    fn slot(&self, id: SlotId) -> Result<Slot, String> {
        self.slots.get(id as usize).copied().ok_or_else(|| format!("there is no slot {id}"))
    }

    fn check_transfer(&self, slot: SlotId, elem: Elem, outer: &[isize], col: isize) -> Result<(), String> {
        let slot = self.slot(slot)?;
        if slot.lane != elem.lane() {
            return Err(format!("{elem:?} in a slot of {:?}", slot.lane));
        }
        if outer.len() != self.outer.len() {
            return Err(format!("{} outer strides for {} axes", outer.len(), self.outer.len()));
        }
        if slot.row && col != 0 {
            return Err("a row slot with a column stride".into());
        }
        Ok(())
    }

    fn check_op(&self, op: &Op, written: &[bool]) -> Result<(), String> {
        let to = self.slot(op.to())?;
        let mut result = Ok(());
        op.each_read(&mut |id| {
            let problem = match self.slot(id) {
                Err(error) => Some(error),
                Ok(_) if id == op.to() => Some("reads the slot that it writes".into()),
                Ok(_) if !written[id as usize] => Some(format!("slot {id} is not written yet")),
                Ok(slot) => match op {
                    Op::Expand { .. } if !slot.row || to.row => Some("expands from row to full".into()),
                    Op::RowReduce { .. } if slot.row || !to.row => Some("reduces from full to row".into()),
                    Op::Expand { .. } | Op::RowReduce { .. } => None,
                    _ if slot.row != to.row => Some("mixes row and full slots".into()),
                    _ => None,
                },
            };
            if let (Ok(()), Some(problem)) = (&result, problem) {
                result = Err(problem);
            }
        });
        result?;
        self.check_lanes(op, to)
    }

    /// Checks the lanes of an operation whose slots exist.
    fn check_lanes(&self, op: &Op, to: Slot) -> Result<(), String> {
        let lane = |id: SlotId| self.slots[id as usize].lane;
        let all = |ids: &[SlotId], elem: Elem| ids.iter().all(|&id| lane(id) == elem.lane());
        let fits = match *op {
            Op::Constant { .. } => true,
            Op::Iota { axis, elem, .. } => {
                if axis > self.outer.len() || (axis == self.outer.len() && to.row) {
                    return Err(format!("there is no axis {axis} to count along"));
                }
                to.lane == elem.lane()
            }
            Op::Unary { op: Unary::IsFinite, elem, from, .. } => all(&[from], elem) && to.lane == Lane::I32,
            Op::Unary { op, elem, from, to } => all(&[from, to], elem) && unary_exists(op, elem),
            Op::Binary { op, elem, a, b, to } => all(&[a, b, to], elem) && binary_exists(op, elem),
            Op::Compare { elem, a, b, .. } => all(&[a, b], elem) && to.lane == Lane::I32,
            Op::Select { mask, on_true, on_false, .. } => {
                lane(mask) == Lane::I32 && lane(on_true) == to.lane && lane(on_false) == to.lane
            }
            Op::Clamp { elem, low, value, high, to } => all(&[low, value, high, to], elem),
            Op::Cast { source, target, from, .. } => all(&[from], source) && to.lane == target.lane(),
            Op::ReducePrecision { exponent, mantissa, elem, from, to } => {
                let (e, m) = if elem.lane() == Lane::F64 { (11, 52) } else { (8, 23) };
                elem.is_float() && all(&[from, to], elem) && (1..=e).contains(&exponent) && mantissa <= m
            }
            Op::Bitcast { source, target, from, .. } => {
                source.size() == target.size() && all(&[from], source) && to.lane == target.lane()
            }
            Op::Expand { from, .. } => lane(from) == to.lane,
            Op::RowReduce { op, elem, from, to } => {
                all(&[from, to], elem) && !(elem.is_float() && fold::is_bitwise(op))
            }
        };
        if fits { Ok(()) } else { Err("its types do not fit".into()) }
    }
}

fn unary_exists(op: Unary, elem: Elem) -> bool {
    match op {
        Unary::Neg | Unary::Abs | Unary::Sign => true,
        Unary::Not => !elem.is_float(),
        _ => elem.is_float(),
    }
}

fn binary_exists(op: Binary, elem: Elem) -> bool {
    match op {
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight => !elem.is_float(),
        Binary::Atan2 => elem.is_float(),
        _ => true,
    }
}
