//! Scans as calls, for targets without loops.

use backfit_ir::ops::scan::Scan;
use backfit_ir::rewrite::Rewriter;
use backfit_ir::{Function, Literal, Node, Op, Type, ValueId};

/// The function with every scan replaced by one call of its body per step, and how many scans there were.
pub fn run(f: &Function) -> (Function, usize) {
    let mut rewriter = Rewriter::new(f);
    let mut unrolled = 0;
    for node in &f.nodes {
        match &node.op {
            Op::Scan(scan) => {
                unrolled += 1;
                steps(&mut rewriter, node, scan);
            }
            _ => {
                rewriter.copy_node(node);
            }
        }
    }
    (rewriter.finish(), unrolled)
}

fn steps(rewriter: &mut Rewriter, node: &Node, scan: &Scan) {
    let f = rewriter.old();
    let operands = rewriter.values(&node.operands);
    let (carries, rest) = operands.split_at(scan.carries);
    let (constants, stacked) = rest.split_at(scan.constants);
    let stacked_types = f.types(&node.operands[scan.carries + scan.constants..]);
    let types = f.types(&node.results);
    let of_step: Vec<Type> = types[scan.carries..].iter().map(|ty| ty.with_shape(&ty.shape[1..])).collect();
    let results: Vec<Type> = types[..scan.carries].iter().chain(&of_step).cloned().collect();
    let mut carries = carries.to_vec();
    let mut outputs: Vec<Vec<ValueId>> = vec![Vec::new(); of_step.len()];
    for step in 0..scan.trip_count {
        let step = if scan.reverse { scan.trip_count - 1 - step } else { step };
        let mut arguments = [&carries[..], constants].concat();
        for (&value, ty) in stacked.iter().zip(&stacked_types) {
            arguments.push(slice(rewriter, node, value, ty, step));
        }
        let found = rewriter.add_node(node, Op::Call(scan.body), arguments, results.clone());
        carries = found[..scan.carries].to_vec();
        for (slices, (&value, ty)) in outputs.iter_mut().zip(found[scan.carries..].iter().zip(&of_step)) {
            let mut dims = vec![1];
            dims.extend_from_slice(&ty.shape);
            let row = ty.with_shape(dims);
            slices.extend(rewriter.add_node(node, Op::Reshape(row.shape.clone()), vec![value], vec![row]));
        }
    }
    let (carried, stacked) = node.results.split_at(scan.carries);
    carried.iter().zip(carries).for_each(|(&old, new)| rewriter.map_value(old, new));
    for (&old, (mut slices, ty)) in stacked.iter().zip(outputs.into_iter().zip(&types[scan.carries..])) {
        if scan.reverse {
            slices.reverse();
        }
        let (op, operands) = match slices.is_empty() {
            true => (Op::Constant(Literal::zeros(ty.clone())), vec![]),
            false => (Op::Concatenate { axis: 0 }, slices),
        };
        let whole = rewriter.add_node(node, op, operands, vec![ty.clone()])[0];
        rewriter.map_value(old, whole);
    }
}

/// Row `step` of a stacked operand.
fn slice(rewriter: &mut Rewriter, node: &Node, value: ValueId, ty: &Type, step: usize) -> ValueId {
    let (mut starts, mut limits) = (vec![0; ty.shape.rank()], ty.shape.to_vec());
    (starts[0], limits[0]) = (step, step + 1);
    let row = ty.with_shape([&[1], &ty.shape[1..]].concat());
    let op = Op::Slice { starts, limits, strides: vec![1; ty.shape.rank()] };
    let sliced = rewriter.add_node(node, op, vec![value], vec![row]);
    let flat = ty.with_shape(&ty.shape[1..]);
    rewriter.add_node(node, Op::Reshape(flat.shape.clone()), sliced, vec![flat])[0]
}
