//! Several results of a function as one, for targets whose functions have a single output.
//!
//! What a forward function hands to its backward function besides its result, its taps, are such results. All results
//! of a dtype are flattened and concatenated along the one axis; who calls the function slices them out again.

use backfit_ir::op::Op;
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{DType, FuncId, Function, FunctionResult, Module, Node, Type, ValueId};

/// A piece of a packed result.
struct Piece {
    /// Which of the packed results it is in.
    pack: usize,
    /// Where it starts there, in elements.
    offset: usize,
    ty: Type,
}

/// The results of a function, packed.
struct Packing {
    /// One for each dtype, in the order of their first appearance.
    packs: Vec<Type>,
    /// One for each original result.
    pieces: Vec<Piece>,
}

/// Packs the results of every called function that has several, and tells what it did to each. Functions that are
/// entered or looped over keep theirs, and so do those that update their parameters.
pub fn run(module: &Module, roots: &[FuncId]) -> (Module, Vec<String>) {
    let kept = kept(module, roots);
    let packings: Vec<Option<Packing>> =
        module.functions.iter().zip(kept).map(|(f, kept)| if kept { None } else { Packing::of(f) }).collect();
    let functions = module.functions.iter().zip(&packings).map(|(f, packing)| {
        let f = unpacked_calls(f, &packings);
        packing.as_ref().map_or(f.clone(), |packing| packed(&f, packing))
    });
    let notes = module.functions.iter().zip(&packings).filter_map(|(f, packing)| packing.as_ref().map(|p| p.note(f)));
    (Module { functions: functions.collect() }, notes.collect())
}

/// For every function whether its results stay.
fn kept(module: &Module, roots: &[FuncId]) -> Vec<bool> {
    let keeps =
        |f: &Function| f.composite.is_some() || f.nodes.is_empty() || f.results.iter().any(|r| r.alias.is_some());
    let mut kept: Vec<bool> = module.functions.iter().map(keeps).collect();
    roots.iter().for_each(|root| kept[root.index()] = true);
    for node in module.functions.iter().flat_map(|f| &f.nodes) {
        if let Op::Scan(scan) = &node.op {
            kept[scan.body.index()] = true;
        }
    }
    kept
}

impl Packing {
    /// None where it would change nothing.
    fn of(f: &Function) -> Option<Self> {
        let mut packing = Packing { packs: Vec::new(), pieces: Vec::new() };
        for result in &f.results {
            let ty = f.ty(result.value).clone();
            let pack = packing.pack(ty.dtype);
            let offset = packing.packs[pack].shape[0];
            packing.packs[pack] = ty.with_shape([offset + ty.shape.elements()]);
            packing.pieces.push(Piece { pack, offset, ty });
        }
        (packing.packs.len() < packing.pieces.len()).then_some(packing)
    }

    fn pack(&mut self, dtype: DType) -> usize {
        self.packs.iter().position(|pack| pack.dtype == dtype).unwrap_or_else(|| {
            self.packs.push(Type::new(dtype, [0]));
            self.packs.len() - 1
        })
    }

    fn note(&self, f: &Function) -> String {
        let pieces = self.pieces.iter().zip(&f.results);
        let pieces: Vec<String> = pieces.map(|(p, r)| format!("{} at {}", r.name, p.offset)).collect();
        format!("'{}' packs {} results into {}: {}", f.name, pieces.len(), self.packs.len(), pieces.join(", "))
    }
}

/// A function whose results are its packs.
fn packed(f: &Function, packing: &Packing) -> Function {
    let mut out = f.clone();
    out.results.clear();
    let last = f.nodes.last().expect("functions without nodes are kept");
    let mut add = |op: Op, operands: Vec<ValueId>, ty: Type| {
        out.add_node(op, operands, vec![ty], last.scope.clone(), last.loc.clone())[0]
    };
    let mut results = Vec::new();
    for (index, pack) in packing.packs.iter().enumerate() {
        let mut flat = Vec::new();
        for (piece, result) in packing.pieces.iter().zip(&f.results).filter(|(piece, _)| piece.pack == index) {
            let ty = piece.ty.with_shape([piece.ty.shape.elements()]);
            flat.push(add(Op::Reshape(ty.shape.clone()), vec![result.value], ty));
        }
        let value = add(Op::Concatenate { axis: 0 }, flat, pack.clone());
        results.push(FunctionResult { name: format!("packed {}", pack.dtype), value, alias: None });
    }
    out.results = results;
    out
}

/// A function that slices the results of packed callees.
fn unpacked_calls(f: &Function, packings: &[Option<Packing>]) -> Function {
    let mut rewriter = Rewriter::new(f);
    for node in &f.nodes {
        let packing = match node.op {
            Op::Call(callee) => packings[callee.index()].as_ref(),
            _ => None,
        };
        match packing {
            Some(packing) => unpack(&mut rewriter, node, packing),
            None => _ = rewriter.copy_node(node),
        }
    }
    rewriter.finish()
}

fn unpack(rewriter: &mut Rewriter, node: &Node, packing: &Packing) {
    let operands = rewriter.values(&node.operands);
    let packs = rewriter.add_node(node, node.op.clone(), operands, packing.packs.clone());
    for (piece, &old) in packing.pieces.iter().zip(&node.results) {
        let flat = piece.ty.with_shape([piece.ty.shape.elements()]);
        let (starts, limits) = (vec![piece.offset], vec![piece.offset + flat.shape[0]]);
        let slice = Op::Slice { starts, limits, strides: vec![1] };
        let sliced = rewriter.add_node(node, slice, vec![packs[piece.pack]], vec![flat]);
        let whole = rewriter.add_node(node, Op::Reshape(piece.ty.shape.clone()), sliced, vec![piece.ty.clone()]);
        rewriter.map_value(old, whole[0]);
    }
}
