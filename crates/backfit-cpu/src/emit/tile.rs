//! A fused group as a tile program: loads, operations on slots, stores.

use super::{Emitter, at, elem, line};
use crate::frame::{columns_merge, splat, unsupported};
use crate::fuse::{Extent, Group, Member, source};
use crate::view::View;
use backfit_ir::op::{Binary, Comparison, Unary};
use backfit_ir::{Error, Function, Literal, Op, ValueId};
use backfit_kernels::elem::{Elem, Lane};
use backfit_kernels::program::Instruction;
use backfit_kernels::tile::{self, Tile};
use std::collections::HashMap;

impl Emitter<'_> {
    /// The instruction of a group.
    pub(super) fn group(&self, group: &Group) -> Result<Vec<Instruction>, Error> {
        let mut builder = Builder::new(self, group);
        for member in &group.members {
            builder.member(member).map_err(|why| unsupported(self.frame.f, member.node, why))?;
        }
        builder.stores();
        let first = group.members[0].node;
        let tile = Tile::new(builder.finish()).map_err(|why| unsupported(self.frame.f, first, why))?;
        Ok(vec![tile.into()])
    }
}

/// A load or store before axes are merged: its strides along every axis of the domain.
struct Port {
    addr: backfit_kernels::context::Addr,
    elem: Elem,
    strides: Vec<isize>,
    slot: tile::SlotId,
}

struct Builder<'a> {
    emitter: &'a Emitter<'a>,
    f: &'a Function,
    group: &'a Group,
    slots: Slots,
    ops: Vec<tile::Op>,
    loads: Vec<Port>,
    stores: Vec<Port>,
    /// Slots of values, as read by full or row members.
    known: HashMap<(ValueId, Extent), tile::SlotId>,
    /// Axes of the domain along which something counts; they are not merged with others.
    counted: Vec<usize>,
}

impl<'a> Builder<'a> {
    fn new(emitter: &'a Emitter<'a>, group: &'a Group) -> Self {
        Builder {
            emitter,
            f: emitter.frame.f,
            group,
            slots: Slots::default(),
            ops: Vec::new(),
            loads: Vec::new(),
            stores: Vec::new(),
            known: HashMap::new(),
            counted: Vec::new(),
        }
    }

    fn rows(&self) -> usize {
        self.group.row_axes.unwrap_or(self.group.domain.len())
    }

    /// The axes that a value of this extent has.
    fn axes(&self, extent: Extent) -> &[usize] {
        match extent {
            Extent::Full => &self.group.domain,
            Extent::Row => &self.group.domain[..self.rows()],
        }
    }

    fn member(&mut self, member: &Member) -> Result<(), String> {
        let f = self.f;
        let node = &f.nodes[member.node];
        let result = node.results[0];
        let own = elem(f.ty(result).dtype);
        let reader = if matches!(node.op, Op::Reduce { .. }) { Extent::Full } else { member.extent };
        let x: Vec<tile::SlotId> = node.operands.iter().map(|&v| self.operand(v, reader)).collect();
        let first = node.operands.first().map_or(own, |&v| elem(f.ty(v).dtype));
        let to = self.slots.new_slot(own.lane(), member.extent == Extent::Row);
        let op = match &node.op {
            Op::Iota { axis, ty } => self.iota(*axis, ty, own, to),
            Op::Unary(op) => tile::Op::Unary { op: unary(*op), elem: first, from: x[0], to },
            Op::Binary(op) => tile::Op::Binary { op: binary(*op), elem: own, a: x[0], b: x[1], to },
            Op::Compare(op) => tile::Op::Compare { op: comparison(*op), elem: first, a: x[0], b: x[1], to },
            Op::Select => tile::Op::Select { mask: x[0], on_true: x[1], on_false: x[2], to },
            Op::Clamp => tile::Op::Clamp { elem: own, low: x[0], value: x[1], high: x[2], to },
            Op::Cast(_) => tile::Op::Cast { source: first, target: own, from: x[0], to },
            Op::Bitcast(_) => tile::Op::Bitcast { source: first, target: own, from: x[0], to },
            Op::ReducePrecision { exponent, mantissa } => {
                let (widest, longest) = format_bits(own);
                let (exponent, mantissa) = ((*exponent).min(widest), (*mantissa).min(longest));
                tile::Op::ReducePrecision { exponent, mantissa, elem: own, from: x[0], to }
            }
            Op::Reduce { monoid, accumulator, .. } => {
                super::reduction::check_accumulator(own, *accumulator)?;
                tile::Op::RowReduce { op: super::reduction::reduction(*monoid), elem: own, from: x[0], to }
            }
            other => return Err(format!("'{}' cannot be part of a fused group", other.name())),
        };
        self.ops.push(op);
        self.known.insert((result, member.extent), to);
        Ok(())
    }

    fn iota(&mut self, axis: usize, ty: &backfit_ir::Type, own: Elem, to: tile::SlotId) -> tile::Op {
        if ty.shape[axis] == 1 {
            return tile::Op::Constant { bits: 0, to };
        }
        let axis = ty.shape[..axis].iter().filter(|&&d| d != 1).count();
        self.counted.push(axis);
        // The axis is that of the domain for now; it is renumbered when axes are merged.
        tile::Op::Iota { axis, elem: own, to }
    }

    /// The slot in which a member of some extent finds an operand.
    fn operand(&mut self, value: ValueId, reader: Extent) -> tile::SlotId {
        let f = self.f;
        let row = reader == Extent::Row;
        if let Some(literal) = splat(f, value) {
            return self.constant(&literal, row);
        }
        let source = source(f, value);
        if let Some(member) = self.group.members.iter().find(|m| f.nodes[m.node].results[0] == source.value) {
            let held = self.known[&(source.value, member.extent)];
            if member.extent == reader {
                return held;
            }
            return self.expanded(source.value, held);
        }
        self.load(value, &source, reader)
    }

    fn expanded(&mut self, value: ValueId, from: tile::SlotId) -> tile::SlotId {
        if let Some(&known) = self.known.get(&(value, Extent::Full)) {
            return known;
        }
        let to = self.slots.new_slot(self.slots.lane(from), false);
        self.ops.push(tile::Op::Expand { from, to });
        self.known.insert((value, Extent::Full), to);
        to
    }

    fn constant(&mut self, literal: &Literal, row: bool) -> tile::SlotId {
        let elem = elem(literal.ty().dtype);
        let bits = lane_bits(elem, literal);
        self.slots.constant(elem.lane(), bits, row, &mut self.ops)
    }

    fn load(&mut self, value: ValueId, source: &crate::fuse::Source, reader: Extent) -> tile::SlotId {
        let frame = self.emitter.frame;
        let (buffer, view) = if columns_merge(self.group, reader, &source.view) {
            (frame.buffer_of[&source.value], source.view.clone())
        } else {
            (frame.dense[&value], View::dense(&self.f.ty(value).shape))
        };
        let elem = elem(self.f.ty(value).dtype);
        let addr = at(self.emitter.addr(buffer), view.offset * elem.size());
        let mut strides = view.squeezed().strides;
        strides.resize(self.group.domain.len(), 0);
        let known = self.loads.iter().find(|p| {
            let same_extent = self.slots.is_row(p.slot) == (reader == Extent::Row);
            p.addr == addr && p.elem == elem && p.strides == strides && same_extent
        });
        if let Some(port) = known {
            return port.slot;
        }
        let slot = self.slots.new_slot(elem.lane(), reader == Extent::Row);
        self.loads.push(Port { addr, elem, strides, slot });
        slot
    }

    /// Stores every member's result that has a buffer.
    fn stores(&mut self) {
        for member in &self.group.members {
            let value = self.f.nodes[member.node].results[0];
            let Some(&buffer) = self.emitter.frame.buffer_of.get(&value) else { continue };
            let mut strides = View::dense(&self.axes(member.extent).to_vec().into()).strides;
            strides.resize(self.group.domain.len(), 0);
            let elem = elem(self.f.ty(value).dtype);
            let slot = self.known[&(value, member.extent)];
            self.stores.push(Port { addr: self.emitter.addr(buffer), elem, strides, slot });
        }
    }

    fn finish(mut self) -> tile::Group {
        let merged = self.merged_axes();
        let cols_from = match self.group.row_axes {
            Some(rows) => merged.iter().position(|axes| axes.start >= rows).unwrap_or(merged.len()),
            None => merged.len().saturating_sub(1),
        };
        let size = |axes: &std::ops::Range<usize>| self.group.domain[axes.clone()].iter().product::<usize>();
        let outer: Vec<usize> = merged[..cols_from].iter().map(size).collect();
        let cols = merged.get(cols_from).map_or(1, size);
        let stride = |port: &Port, axes: &std::ops::Range<usize>| {
            let view = View { dims: self.group.domain.clone(), strides: port.strides.clone(), offset: 0 };
            line(&view, &axes.clone().collect::<Vec<_>>()).map_or(0, |(_, s)| s)
        };
        let outer_strides = |port: &Port| merged[..cols_from].iter().map(|axes| stride(port, axes)).collect::<Vec<_>>();
        let col_stride = |port: &Port| merged.get(cols_from).map_or(0, |axes| stride(port, axes));
        let loads = self.loads.iter().map(|p| tile::Load {
            addr: p.addr,
            elem: p.elem,
            outer_strides: outer_strides(p),
            col_stride: col_stride(p),
            slot: p.slot,
        });
        let stores = self.stores.iter().map(|p| tile::Store {
            addr: p.addr,
            elem: p.elem,
            outer_strides: outer_strides(p),
            col_stride: col_stride(p),
            slot: p.slot,
        });
        let (loads, stores) = (loads.collect(), stores.collect());
        for op in &mut self.ops {
            if let tile::Op::Iota { axis, .. } = op {
                let position = merged.iter().position(|axes| axes.contains(axis)).unwrap_or(cols_from);
                *axis = position.min(cols_from);
            }
        }
        let mut group = tile::Group { outer, cols, slots: self.slots.slots, loads, ops: self.ops, stores };
        reuse_slots(&mut group);
        group
    }

    /// Neighbouring axes that every load and store walks as one. Rows and columns stay apart where rows are reduced.
    fn merged_axes(&self) -> Vec<std::ops::Range<usize>> {
        let domain = &self.group.domain;
        let mut merged: Vec<std::ops::Range<usize>> = Vec::new();
        for (axis, &extent) in domain.iter().enumerate() {
            let joins = merged.last().is_some_and(|last| {
                let before = last.end - 1;
                let split = self.group.row_axes == Some(axis);
                let counted = self.counted.iter().any(|&c| c == axis || last.contains(&c));
                let walks = |p: &Port| p.strides[before] == p.strides[axis] * extent as isize;
                !split && !counted && self.loads.iter().chain(&self.stores).all(walks)
            });
            match merged.last_mut() {
                Some(last) if joins => last.end = axis + 1,
                _ => merged.push(axis..axis + 1),
            }
        }
        merged
    }
}

/// Registers of the tile.
#[derive(Default)]
struct Slots {
    slots: Vec<tile::Slot>,
    constants: HashMap<(Lane, u64, bool), tile::SlotId>,
}

impl Slots {
    fn new_slot(&mut self, lane: Lane, row: bool) -> tile::SlotId {
        self.slots.push(tile::Slot { lane, row });
        (self.slots.len() - 1) as tile::SlotId
    }

    fn lane(&self, slot: tile::SlotId) -> Lane {
        self.slots[slot as usize].lane
    }

    fn is_row(&self, slot: tile::SlotId) -> bool {
        self.slots[slot as usize].row
    }

    fn constant(&mut self, lane: Lane, bits: u64, row: bool, ops: &mut Vec<tile::Op>) -> tile::SlotId {
        if let Some(&known) = self.constants.get(&(lane, bits, row)) {
            return known;
        }
        let to = self.new_slot(lane, row);
        ops.push(tile::Op::Constant { bits, to });
        self.constants.insert((lane, bits, row), to);
        to
    }
}

/// Lets operations write into slots whose values nothing reads any more, so that a tile stays in the first-level cache.
/// Slots of loads, constants and stored values keep to themselves.
fn reuse_slots(group: &mut tile::Group) {
    let mut last_read = vec![0; group.slots.len()];
    for (at, op) in group.ops.iter().enumerate() {
        op.each_read(&mut |slot| last_read[slot as usize] = at);
    }
    let mut kept = vec![false; group.slots.len()];
    group.loads.iter().for_each(|l| kept[l.slot as usize] = true);
    group.stores.iter().for_each(|s| kept[s.slot as usize] = true);
    for op in &group.ops {
        if matches!(op, tile::Op::Constant { .. } | tile::Op::Iota { .. }) {
            kept[op.to() as usize] = true;
        }
    }
    let mut renamed: Vec<tile::SlotId> = (0..group.slots.len() as tile::SlotId).collect();
    let mut free: Vec<tile::SlotId> = Vec::new();
    for at in 0..group.ops.len() {
        let mut read = Vec::new();
        group.ops[at].each_read(&mut |slot| read.push(slot));
        let to = group.ops[at].to();
        if !kept[to as usize] {
            let fits = |&s: &tile::SlotId| group.slots[s as usize] == group.slots[to as usize];
            if let Some(position) = free.iter().position(fits) {
                renamed[to as usize] = free.swap_remove(position);
            }
        }
        read.sort_unstable();
        read.dedup();
        free.extend(
            read.into_iter().filter(|&s| !kept[s as usize] && last_read[s as usize] == at).map(|s| renamed[s as usize]),
        );
        rename(&mut group.ops[at], &|slot| renamed[slot as usize]);
    }
    drop_unused_slots(group);
}

/// Replaces every slot that an operation reads or writes.
fn rename(op: &mut tile::Op, new: &dyn Fn(tile::SlotId) -> tile::SlotId) {
    let slots: Vec<&mut tile::SlotId> = match op {
        tile::Op::Constant { to, .. } | tile::Op::Iota { to, .. } => vec![to],
        tile::Op::Unary { from, to, .. }
        | tile::Op::Cast { from, to, .. }
        | tile::Op::ReducePrecision { from, to, .. }
        | tile::Op::Bitcast { from, to, .. }
        | tile::Op::Expand { from, to }
        | tile::Op::RowReduce { from, to, .. } => vec![from, to],
        tile::Op::Binary { a, b, to, .. } | tile::Op::Compare { a, b, to, .. } => vec![a, b, to],
        tile::Op::Select { mask, on_true, on_false, to } => vec![mask, on_true, on_false, to],
        tile::Op::Clamp { low, value, high, to, .. } => vec![low, value, high, to],
    };
    slots.into_iter().for_each(|slot| *slot = new(*slot));
}

fn drop_unused_slots(group: &mut tile::Group) {
    let mut used = vec![false; group.slots.len()];
    group.loads.iter().for_each(|l| used[l.slot as usize] = true);
    group.ops.iter().for_each(|op| used[op.to() as usize] = true);
    let mut number = Vec::new();
    let mut next: tile::SlotId = 0;
    for &used in &used {
        number.push(next);
        next += tile::SlotId::from(used);
    }
    let number = |slot: tile::SlotId| number[slot as usize];
    group.loads.iter_mut().for_each(|l| l.slot = number(l.slot));
    group.stores.iter_mut().for_each(|s| s.slot = number(s.slot));
    group.ops.iter_mut().for_each(|op| rename(op, &number));
    let mut used = used.into_iter();
    group.slots.retain(|_| used.next().unwrap_or(false));
}

/// Exponent and mantissa bits of a float type.
fn format_bits(elem: Elem) -> (u32, u32) {
    match elem {
        Elem::F64 => (11, 52),
        Elem::F16 => (5, 10),
        Elem::BF16 => (8, 7),
        _ => (8, 23),
    }
}

/// The bits of a one-element literal in the lane of its type.
fn lane_bits(elem: Elem, literal: &Literal) -> u64 {
    match elem.lane() {
        Lane::F64 => u64::from_le_bytes(literal.bytes().try_into().unwrap_or([0; 8])),
        Lane::F32 if elem == Elem::F32 => u64::from(u32::from_le_bytes(literal.bytes().try_into().unwrap_or([0; 4]))),
        Lane::F32 => u64::from((literal.to_f64()[0] as f32).to_bits()),
        Lane::I32 => u64::from(literal.to_i64()[0] as u32),
        Lane::I64 => literal.to_i64()[0] as u64,
    }
}

fn unary(op: Unary) -> tile::Unary {
    match op {
        Unary::Neg => tile::Unary::Neg,
        Unary::Abs => tile::Unary::Abs,
        Unary::Sign => tile::Unary::Sign,
        Unary::Exp => tile::Unary::Exp,
        Unary::Expm1 => tile::Unary::Expm1,
        Unary::Log => tile::Unary::Log,
        Unary::Log1p => tile::Unary::Log1p,
        Unary::Sqrt => tile::Unary::Sqrt,
        Unary::Rsqrt => tile::Unary::Rsqrt,
        Unary::Reciprocal => tile::Unary::Reciprocal,
        Unary::Sin => tile::Unary::Sin,
        Unary::Cos => tile::Unary::Cos,
        Unary::Tan => tile::Unary::Tan,
        Unary::Tanh => tile::Unary::Tanh,
        Unary::Erf => tile::Unary::Erf,
        Unary::Floor => tile::Unary::Floor,
        Unary::Ceil => tile::Unary::Ceil,
        Unary::RoundEven => tile::Unary::RoundEven,
        Unary::IsFinite => tile::Unary::IsFinite,
        Unary::Not => tile::Unary::Not,
    }
}

fn binary(op: Binary) -> tile::Binary {
    match op {
        Binary::Add => tile::Binary::Add,
        Binary::Sub => tile::Binary::Sub,
        Binary::Mul => tile::Binary::Mul,
        Binary::Div => tile::Binary::Div,
        Binary::Rem => tile::Binary::Rem,
        Binary::Pow => tile::Binary::Pow,
        Binary::Atan2 => tile::Binary::Atan2,
        Binary::Maximum => tile::Binary::Maximum,
        Binary::Minimum => tile::Binary::Minimum,
        Binary::And => tile::Binary::And,
        Binary::Or => tile::Binary::Or,
        Binary::Xor => tile::Binary::Xor,
        Binary::ShiftLeft => tile::Binary::ShiftLeft,
        Binary::ShiftRight => tile::Binary::ShiftRight,
    }
}

fn comparison(op: Comparison) -> tile::Comparison {
    match op {
        Comparison::Eq => tile::Comparison::Eq,
        Comparison::Ne => tile::Comparison::Ne,
        Comparison::Lt => tile::Comparison::Lt,
        Comparison::Le => tile::Comparison::Le,
        Comparison::Gt => tile::Comparison::Gt,
        Comparison::Ge => tile::Comparison::Ge,
    }
}
