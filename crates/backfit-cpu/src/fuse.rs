//! Fusion: which nodes become one pass over memory.
//!
//! A *unit* is a fused group of elementwise nodes and row reductions over one domain, or one node that has a kernel of
//! its own. Nodes that only rearrange elements belong to no unit: they are views. Groups never change a bit: each node
//! is computed once, by the same arithmetic, wherever it ends up.

use crate::view::{View, is_movement};
use backfit_ir::{Def, Function, Op, ValueId};
use backfit_kernels::tile::MAX_REDUCED_COLS;

/// How a value of a group relates to its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// One element per element of the domain.
    Full,
    /// One element per row.
    Row,
}

/// A node within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Index of the node.
    pub node: usize,
    /// What its result relates to.
    pub extent: Extent,
}

/// A fused group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The domain without unit axes.
    pub domain: Vec<usize>,
    /// How many leading axes of the domain count rows; set once a reduction has joined.
    pub row_axes: Option<usize>,
    /// Its nodes, in order.
    pub members: Vec<Member>,
}

/// What runs as one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// A fused group.
    Group(Group),
    /// A node with a kernel of its own.
    Kernel(usize),
}

/// A value as a view of the value that it is made from by movement alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What holds the elements.
    pub value: ValueId,
    /// Where in it.
    pub view: View,
}

/// What a value is a view of. Movement that strides cannot tell stops the walk: that node moves data.
pub fn source(f: &Function, value: ValueId) -> Source {
    match f.node_of(value) {
        Some(node) if node.op == Op::Barrier => {
            let at = node.results.iter().position(|&r| r == value).unwrap_or(0);
            source(f, node.operands[at])
        }
        Some(node) if is_movement(&node.op) => {
            let inner = source(f, node.operands[0]);
            match inner.view.through(&node.op, f.ty(value)) {
                Some(view) => Source { value: inner.value, view },
                None => Source { value, view: View::dense(&f.ty(value).shape) },
            }
        }
        _ => Source { value, view: View::dense(&f.ty(value).shape) },
    }
}

/// Whether a node may be part of a group.
pub fn is_fusable(f: &Function, node: usize) -> bool {
    let node = &f.nodes[node];
    let elements = f.ty(node.results.first().copied().unwrap_or(ValueId(0))).shape.elements();
    match &node.op {
        Op::Iota { .. }
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select
        | Op::Clamp
        | Op::Cast(_)
        | Op::ReducePrecision { .. } => {
            elements > 0 && !f.ty(*node.operands.first().unwrap_or(&node.results[0])).dtype.is_packed()
        }
        Op::Bitcast(_) => elements > 0,
        Op::Reduce { axes, .. } => elements > 0 && row_split(f, node.operands[0], axes).is_some(),
        _ => false,
    }
}

/// For a reduction over trailing axes: the domain without unit axes, and how many of its axes remain.
fn row_split(f: &Function, operand: ValueId, axes: &[usize]) -> Option<(Vec<usize>, usize)> {
    let shape = &f.ty(operand).shape;
    let kept: Vec<usize> = (0..shape.rank()).filter(|a| !axes.contains(a) && shape[*a] != 1).collect();
    let reduced: Vec<usize> = axes.iter().copied().filter(|&a| shape[a] != 1).collect();
    let trailing = kept.last().is_none_or(|&k| reduced.first().is_none_or(|&r| k < r));
    let cols: usize = reduced.iter().map(|&a| shape[a]).product();
    let domain = squeeze(shape);
    (trailing && cols > 0 && cols <= MAX_REDUCED_COLS).then_some((domain, kept.len()))
}

fn squeeze(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|&d| d != 1).collect()
}

/// The units of a function, and for every node the unit it belongs to.
pub struct Fusion {
    /// All units, in no particular order; every node of a unit precedes what uses it.
    pub units: Vec<Unit>,
    /// The unit of each node; `None` for views and nodes without one.
    pub unit_of: Vec<Option<usize>>,
}

/// Groups the nodes of a function. With `fuse` off every node is a unit of its own.
pub fn fuse(f: &Function, fuse: bool) -> Fusion {
    let mut builder = Builder { f, fuse, units: Vec::new(), unit_of: vec![None; f.nodes.len()] };
    for node in 0..f.nodes.len() {
        builder.place(node);
    }
    builder.finish()
}

struct Builder<'f> {
    f: &'f Function,
    fuse: bool,
    units: Vec<Option<Unit>>,
    unit_of: Vec<Option<usize>>,
}

impl Builder<'_> {
    fn place(&mut self, node: usize) {
        let f = self.f;
        let op = &f.nodes[node].op;
        let is_view = is_movement(op) && source(f, f.nodes[node].results[0]).value != f.nodes[node].results[0];
        let is_constant =
            f.nodes[node].results.len() == 1 && crate::frame::constant(f, f.nodes[node].results[0]).is_some();
        if is_view || is_constant || *op == Op::Barrier {
            return;
        }
        if !is_fusable(f, node) {
            self.add(node, Unit::Kernel(node));
            return;
        }
        let candidates = if self.fuse { self.operand_groups(node) } else { vec![] };
        let mut joined: Option<usize> = None;
        for unit in candidates {
            if let Some(target) = joined {
                self.merge(target, unit, node);
            } else if self.join(unit, node) {
                joined = Some(unit);
            }
        }
        if joined.is_none() {
            let group = self.new_group(node);
            self.add(node, Unit::Group(group));
        }
    }

    fn add(&mut self, node: usize, unit: Unit) {
        self.unit_of[node] = Some(self.units.len());
        self.units.push(Some(unit));
    }

    fn new_group(&self, node: usize) -> Group {
        let f = self.f;
        let own = &f.nodes[node];
        match &own.op {
            Op::Reduce { axes, .. } => {
                let (domain, rows) = row_split(f, own.operands[0], axes).expect("checked by is_fusable");
                Group { domain, row_axes: Some(rows), members: vec![Member { node, extent: Extent::Row }] }
            }
            _ => Group {
                domain: squeeze(&f.ty(own.results[0]).shape),
                row_axes: None,
                members: vec![Member { node, extent: Extent::Full }],
            },
        }
    }

    /// The groups that compute what a node reads, the latest first.
    fn operand_groups(&self, node: usize) -> Vec<usize> {
        let mut groups: Vec<usize> = Vec::new();
        for &operand in &self.f.nodes[node].operands {
            if let Def::Node { node: producer, .. } = self.f.values[source(self.f, operand).value.index()].def
                && let Some(unit) = self.unit_of[producer]
                && matches!(self.units[unit], Some(Unit::Group(_)))
                && !groups.contains(&unit)
            {
                groups.push(unit);
            }
        }
        groups.sort_unstable_by(|a, b| b.cmp(a));
        groups
    }

    fn group(&self, unit: usize) -> &Group {
        match &self.units[unit] {
            Some(Unit::Group(group)) => group,
            _ => unreachable!("only groups are asked for"),
        }
    }

    /// Adds a node to a group, if its shape fits and no operand from elsewhere waits for the group.
    fn join(&mut self, unit: usize, node: usize) -> bool {
        let Some((row_axes, extent)) = self.fit(self.group(unit), node) else { return false };
        let outside: Vec<usize> = self.dependencies_of_node(node).into_iter().filter(|&u| u != unit).collect();
        if outside.iter().any(|&u| self.reaches(u, unit)) {
            return false;
        }
        if let Some(Unit::Group(group)) = &mut self.units[unit] {
            group.row_axes = row_axes;
            group.members.push(Member { node, extent });
        }
        self.unit_of[node] = Some(unit);
        true
    }

    /// How a node would fit a group: the row split after it joined, and its extent.
    fn fit(&self, group: &Group, node: usize) -> Option<(Option<usize>, Extent)> {
        let f = self.f;
        let own = &f.nodes[node];
        if let Op::Reduce { axes, .. } = &own.op {
            let (domain, rows) = row_split(f, own.operands[0], axes)?;
            let fits = domain == group.domain && group.row_axes.is_none_or(|r| r == rows);
            return (fits && self.reads_well(group, Some(rows), node, Extent::Full))
                .then_some((Some(rows), Extent::Row));
        }
        let shape = squeeze(&f.ty(own.results[0]).shape);
        if shape == group.domain && self.reads_well(group, group.row_axes, node, Extent::Full) {
            return Some((group.row_axes, Extent::Full));
        }
        let rows = group.row_axes?;
        (shape == group.domain[..rows] && self.reads_well(group, group.row_axes, node, Extent::Row))
            .then_some((group.row_axes, Extent::Row))
    }

    /// Whether everything that a node reads from within the group is at hand there: element by element, or row by row.
    fn reads_well(&self, group: &Group, row_axes: Option<usize>, node: usize, extent: Extent) -> bool {
        let f = self.f;
        f.nodes[node].operands.iter().all(|&operand| {
            let source = source(f, operand);
            let member = group.members.iter().find(|m| f.nodes[m.node].results[0] == source.value);
            member.is_none_or(|m| within(&group.domain, row_axes, extent, m.extent, &source.view))
        })
    }

    /// Merges another group into one that a node has joined, if shapes fit and neither waits for the other by way of a third.
    fn merge(&mut self, target: usize, other: usize, node: usize) {
        let (a, b) = (self.group(target), self.group(other));
        let rows = a.row_axes.or(b.row_axes);
        let fits = a.domain == b.domain && b.row_axes.is_none_or(|r| Some(r) == rows);
        if !fits || self.reaches_by_third(target, other) || self.reaches_by_third(other, target) {
            return;
        }
        let mut members = [a.members.clone(), b.members.clone()].concat();
        members.sort_by_key(|m| m.node);
        let merged = Group { domain: a.domain.clone(), row_axes: rows, members };
        let reads = merged.members.iter().all(|m| {
            let reduces = matches!(self.f.nodes[m.node].op, Op::Reduce { .. });
            self.reads_well(&merged, rows, m.node, if reduces { Extent::Full } else { m.extent })
        });
        if !reads {
            return;
        }
        let _ = node;
        for member in &merged.members {
            self.unit_of[member.node] = Some(target);
        }
        self.units[target] = Some(Unit::Group(merged));
        self.units[other] = None;
    }

    fn dependencies_of_node(&self, node: usize) -> Vec<usize> {
        let mut units = Vec::new();
        for &operand in &self.f.nodes[node].operands {
            if let Def::Node { node: producer, .. } = self.f.values[source(self.f, operand).value.index()].def {
                units.extend(self.unit_of[producer]);
            }
        }
        units
    }

    fn dependencies(&self, unit: usize) -> Vec<usize> {
        let mut units: Vec<usize> = match &self.units[unit] {
            Some(Unit::Group(group)) => group.members.iter().flat_map(|m| self.dependencies_of_node(m.node)).collect(),
            Some(Unit::Kernel(node)) => self.dependencies_of_node(*node),
            None => vec![],
        };
        units.sort_unstable();
        units.dedup();
        units.retain(|&u| u != unit);
        units
    }

    /// Whether `from` waits for `to`, directly or not.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.units.len()];
        let mut open = vec![from];
        while let Some(unit) = open.pop() {
            if unit == to {
                return true;
            }
            if !std::mem::replace(&mut seen[unit], true) {
                open.extend(self.dependencies(unit));
            }
        }
        false
    }

    fn reaches_by_third(&self, from: usize, to: usize) -> bool {
        self.dependencies(from).into_iter().any(|u| u != to && self.reaches(u, to))
    }

    fn finish(self) -> Fusion {
        let mut renumbered = vec![None; self.units.len()];
        let mut units = Vec::new();
        for (old, unit) in self.units.into_iter().enumerate() {
            if let Some(unit) = unit {
                renumbered[old] = Some(units.len());
                units.push(unit);
            }
        }
        let unit_of = self.unit_of.into_iter().map(|u| u.and_then(|u| renumbered[u])).collect();
        Fusion { units: in_order(self.f, units, unit_of).0, unit_of: vec![] }.renumber(self.f)
    }
}

impl Fusion {
    fn renumber(mut self, f: &Function) -> Fusion {
        self.unit_of = vec![None; f.nodes.len()];
        for (index, unit) in self.units.iter().enumerate() {
            match unit {
                Unit::Group(group) => group.members.iter().for_each(|m| self.unit_of[m.node] = Some(index)),
                Unit::Kernel(node) => self.unit_of[*node] = Some(index),
            }
        }
        self
    }
}

/// Whether a member's value, seen through `view` by a node of extent `reader`, is at hand: the same element, or the row's.
pub fn within(domain: &[usize], row_axes: Option<usize>, reader: Extent, member: Extent, view: &View) -> bool {
    let view = view.squeezed();
    let rows = row_axes.unwrap_or(domain.len());
    let read: &[usize] = if reader == Extent::Full { domain } else { &domain[..rows] };
    if view.dims != read || view.offset != 0 {
        return false;
    }
    let held: &[usize] = if member == Extent::Full { domain } else { &domain[..rows] };
    let dense = View::dense(&held.to_vec().into()).strides;
    match (reader, member) {
        (Extent::Full, Extent::Full) | (Extent::Row, Extent::Row) => view.same_strides(&dense),
        (Extent::Full, Extent::Row) => {
            let (outer, inner) = view.strides.split_at(rows);
            inner.iter().all(|&s| s == 0) && outer == dense
        }
        (Extent::Row, Extent::Full) => false,
    }
}

/// Units in an order in which each follows what it reads.
fn in_order(f: &Function, units: Vec<Unit>, unit_of: Vec<Option<usize>>) -> (Vec<Unit>, ()) {
    let nodes = |unit: &Unit| match unit {
        Unit::Group(group) => group.members.iter().map(|m| m.node).collect::<Vec<_>>(),
        Unit::Kernel(node) => vec![*node],
    };
    let mut waiting = vec![0usize; units.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (index, unit) in units.iter().enumerate() {
        let mut before: Vec<usize> = Vec::new();
        for node in nodes(unit) {
            for &operand in &f.nodes[node].operands {
                if let Def::Node { node: producer, .. } = f.values[source(f, operand).value.index()].def {
                    before.extend(unit_of[producer].filter(|&u| u != index));
                }
            }
        }
        before.sort_unstable();
        before.dedup();
        waiting[index] = before.len();
        before.into_iter().for_each(|b| after[b].push(index));
    }
    let first = |u: usize| nodes(&units[u])[0];
    let mut ready: std::collections::BTreeSet<(usize, usize)> =
        (0..units.len()).filter(|&u| waiting[u] == 0).map(|u| (first(u), u)).collect();
    let mut order = Vec::with_capacity(units.len());
    while let Some((_, unit)) = ready.pop_first() {
        order.push(unit);
        for &next in &after[unit] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.insert((first(next), next));
            }
        }
    }
    debug_assert_eq!(order.len(), units.len(), "groups wait for each other");
    let mut slots: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    (order.into_iter().filter_map(|u| slots[u].take()).collect(), ())
}
