//! Narrow values through calls and loops.
//!
//! A function that casts a parameter, and does nothing else with it, takes the cast instead; one that returns a widened
//! value returns the narrow one. Weights that a loop shares are then cast once outside, and what it stacks is stored narrow.
//! No bit changes: casts move across the call. What a loop carries keeps its dtype.

use backfit_ir::graph::FunctionResult;
use backfit_ir::rewrite::{Rewriter, callee, dead_code};
use backfit_ir::{DType, Def, FuncId, Function, Module, Node, Op, Type, ValueId};

/// What of a function's signature is narrow.
struct Narrowed {
    params: Vec<Option<DType>>,
    results: Vec<Option<DType>>,
}

/// Narrows every function that is called, and its callers' side of it; returns how many parameters and results became narrow.
pub(super) fn run(module: &mut Module, roots: &[FuncId]) -> usize {
    let mut count = 0;
    let mut known: Vec<Option<Narrowed>> = Vec::new();
    for index in 0..module.functions.len() {
        let id = FuncId(index as u32);
        let function = with_narrow_calls(&module.functions[index], &known);
        let callable = !roots.contains(&id) && function.composite.is_none();
        let narrowed = if callable { signature(module, id, &function) } else { None };
        count += narrowed.iter().flat_map(|n| n.params.iter().chain(&n.results)).flatten().count();
        module.functions[index] = match &narrowed {
            Some(narrowed) => rebuilt(&function, narrowed),
            None => function,
        };
        known.push(narrowed);
    }
    count
}

/// What can be narrow; `None` where nothing can.
fn signature(module: &Module, id: FuncId, f: &Function) -> Option<Narrowed> {
    let (mut carried, mut called) = (0, false);
    for node in module.functions.iter().flat_map(|f| &f.nodes).filter(|n| callee(&n.op) == Some(id)) {
        called = true;
        if let Op::Scan(scan) = &node.op {
            carried = carried.max(scan.carries);
        }
    }
    let free = |index: &usize| called && *index >= carried;
    let params = (0..f.params.len()).map(|i| Some(i).filter(free).and_then(|i| cast_only(f, f.params[i].value)));
    let results = (0..f.results.len()).map(|i| Some(i).filter(free).and_then(|i| widened(f, f.results[i].value)));
    let narrowed = Narrowed { params: params.collect(), results: results.map(|r| r.map(|(_, d)| d)).collect() };
    narrowed.params.iter().chain(&narrowed.results).any(Option::is_some).then_some(narrowed)
}

/// The half-precision dtype to which all uses of a value cast it.
fn cast_only(f: &Function, value: ValueId) -> Option<DType> {
    if f.ty(value).dtype != DType::F32 || f.results.iter().any(|r| r.value == value) {
        return None;
    }
    let mut found = None;
    for node in f.nodes.iter().filter(|n| n.operands.contains(&value)) {
        match node.op {
            Op::Cast(to @ (DType::F16 | DType::BF16)) if found.is_none_or(|known| known == to) => found = Some(to),
            _ => return None,
        }
    }
    found
}

/// The half-precision value that a value is the f32 cast of.
fn widened(f: &Function, value: ValueId) -> Option<(ValueId, DType)> {
    let node = f.node_of(value).filter(|n| n.op == Op::Cast(DType::F32))?;
    let dtype = f.ty(node.operands[0]).dtype;
    matches!(dtype, DType::F16 | DType::BF16).then_some((node.operands[0], dtype))
}

/// The function with its narrow signature.
fn rebuilt(f: &Function, narrowed: &Narrowed) -> Function {
    let mut out = Rewriter::bare(f);
    for (param, dtype) in f.params.iter().zip(&narrowed.params) {
        let ty = f.ty(param.value);
        let ty = dtype.map_or(ty.clone(), |dtype| ty.with_dtype(dtype));
        let new = out.function.add_param(param.name.clone(), ty, param.role, param.init.clone(), param.loc.clone());
        out.map_value(param.value, new);
    }
    for node in &f.nodes {
        let of_narrow = |v: &ValueId| match f.values[v.index()].def {
            Def::Param(i) => narrowed.params[i].is_some(),
            Def::Node { .. } => false,
        };
        if node.operands.iter().any(of_narrow) {
            out.forward(node.results[0], node.operands[0]);
        } else {
            out.copy_node(node);
        }
    }
    for (result, dtype) in f.results.iter().zip(&narrowed.results) {
        let value = dtype.and_then(|_| widened(f, result.value)).map_or(result.value, |(inner, _)| inner);
        let value = out.value(value);
        out.function.results.push(FunctionResult { value, ..result.clone() });
    }
    dead_code(&out.function)
}

/// The function with casts around calls whose callee became narrow, and without casts that undo each other.
fn with_narrow_calls(f: &Function, known: &[Option<Narrowed>]) -> Function {
    let mut out = Rewriter::new(f);
    for node in &f.nodes {
        match callee(&node.op).and_then(|id| known[id.index()].as_ref()) {
            Some(narrowed) => call(&mut out, node, narrowed),
            None => match undone(&out, node) {
                Some(value) => out.map_value(node.results[0], value),
                None => drop(out.copy_node(node)),
            },
        }
    }
    dead_code(&out.finish())
}

/// Where a node narrows what was only just widened from the same dtype: that value.
fn undone(out: &Rewriter, node: &Node) -> Option<ValueId> {
    let Op::Cast(to) = node.op else { return None };
    let (inner, dtype) = widened(&out.function, out.value(node.operands[0]))?;
    (dtype == to).then_some(inner)
}

fn call(out: &mut Rewriter, node: &Node, narrowed: &Narrowed) {
    let mut operands = out.values(&node.operands);
    for (operand, dtype) in operands.iter_mut().zip(&narrowed.params) {
        *operand = dtype.map_or(*operand, |dtype| cast(out, node, *operand, dtype));
    }
    let old = out.old().types(&node.results);
    let types = old.iter().zip(&narrowed.results).map(|(ty, d)| d.map_or(ty.clone(), |d| ty.with_dtype(d)));
    let types: Vec<Type> = types.collect();
    let results = out.add_node(node, node.op.clone(), operands, types);
    for ((&old, new), dtype) in node.results.iter().zip(results).zip(&narrowed.results) {
        let value = if dtype.is_some() { cast(out, node, new, DType::F32) } else { new };
        out.map_value(old, value);
    }
}

/// A value in another dtype; what was widened from it needs no cast.
fn cast(out: &mut Rewriter, node: &Node, value: ValueId, dtype: DType) -> ValueId {
    if let Some((inner, _)) = widened(&out.function, value).filter(|(_, narrow)| *narrow == dtype) {
        return inner;
    }
    let ty = out.function.ty(value).with_dtype(dtype);
    out.add_node(node, Op::Cast(dtype), vec![value], vec![ty])[0]
}
