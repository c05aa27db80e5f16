//! Hand-written derivative rules against central differences, one call of the operator at a time.

use super::support::parameters;
use backfit_ir::interp::{Array, Options, run};
use backfit_ir::ops::definition::values;
use backfit_ir::ops::{Derivative, Kind, OpDef, REGISTRY, Sample, Vjp};
use backfit_ir::{Attributes, FuncId, Graph, Literal, Module, Op, Tensor};

const DOUBLE: Options = Options { double: true, flush_subnormals: false };

/// A call of a composite in a graph.
struct Call {
    op: Op,
    callee: FuncId,
    attributes: Attributes,
    operands: Vec<Tensor>,
    results: Vec<Tensor>,
}

/// The last call of a composite in the main function.
fn call(g: &Graph, name: &str) -> Option<Call> {
    let nodes = g.inspect(|f| f.nodes.clone());
    nodes.iter().rev().find_map(|node| {
        let Op::Call(callee) = node.op else { return None };
        let composite = g.module(|m| m.function(callee).composite.clone()).filter(|c| c.name == name)?;
        let tensors = |ids: &[_]| ids.iter().map(|&v| g.tensor(v)).collect();
        let (operands, results) = (tensors(&node.operands), tensors(&node.results));
        Some(Call { op: node.op.clone(), callee, attributes: composite.attributes, operands, results })
    })
}

/// Numbers by which results are weighted.
fn weights(results: &[Tensor]) -> Vec<Option<Literal>> {
    let of = |(i, t): (usize, &Tensor)| {
        let ty = t.ty().clone();
        let numbers = values::uniform(ty.shape.elements(), -1.0, 1.0, 77 + i as u64);
        ty.dtype.is_float().then(|| Literal::from_f64(ty, &numbers))
    };
    results.iter().enumerate().map(of).collect()
}

/// Σ weights · results of a function.
fn weighed(module: &Module, callee: FuncId, arguments: &[Array], weights: &[Option<Literal>]) -> f64 {
    let results = run(module, callee, arguments, DOUBLE).unwrap();
    let pairs = results.iter().zip(weights).filter_map(|(r, w)| Some((r, w.as_ref()?)));
    pairs.map(|(r, w)| r.as_floats().iter().zip(w.to_f64()).map(|(a, b)| a * b).sum::<f64>()).sum()
}

/// The slope along one element of an operand, from four values.
fn slope(arguments: &[Array], operand: usize, element: usize, value: impl Fn(&[Array]) -> f64) -> f64 {
    let x = arguments[operand].as_floats()[element];
    let h = 1e-3 * x.abs().clamp(1e-1, 1.0);
    let at = |shift: f64| {
        let mut moved = arguments.to_vec();
        let mut elements = moved[operand].as_floats().to_vec();
        elements[element] = x + shift;
        moved[operand] = Array::floats(moved[operand].ty.clone(), elements);
        value(&moved)
    };
    (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
}

fn check(def: &OpDef, rule: fn(&Vjp) -> Vec<Option<Tensor>>, sample: &Sample) {
    let label = format!("{}, {}", def.name, sample.label);
    let g = Graph::new();
    let inputs = parameters(&g, &sample.inputs);
    (sample.build)(&g, &inputs);
    let call = call(&g, def.name).unwrap_or_else(|| panic!("{label}: no call"));
    let weights = weights(&call.results);
    let cotangents: Vec<_> = weights.iter().map(|w| w.clone().map(|w| g.constant(w))).collect();
    let wanted: Vec<bool> = call.operands.iter().map(|t| t.dtype().is_float()).collect();
    let found = rule(&Vjp {
        graph: &g,
        op: &call.op,
        attributes: &call.attributes,
        operands: &call.operands,
        results: &call.results,
        cotangents: &cotangents,
        wanted: &wanted,
    });
    assert_eq!(found.len(), call.operands.len(), "{label}");
    for (i, tensor) in call.operands.iter().enumerate() {
        g.result(&format!("x{i}"), tensor);
    }
    let given: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_some()).collect();
    for &i in &given {
        let cotangent = found[i].as_ref().unwrap();
        assert_eq!(cotangent.ty(), call.operands[i].ty(), "{label}, operand {i}");
        g.result(&format!("d{i}"), cotangent);
    }
    let module = g.finish().unwrap_or_else(|e| panic!("{label}: {e}"));
    let arguments: Vec<Array> = sample.inputs.iter().map(Array::from_literal).collect();
    let out = run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, DOUBLE).unwrap();
    let (operands, gradients) = out.split_at(call.operands.len());
    for (&i, gradient) in given.iter().zip(gradients) {
        let value = |x: &[Array]| weighed(&module, call.callee, x, &weights);
        let expected: Vec<f64> = (0..operands[i].len()).map(|e| slope(operands, i, e, value)).collect();
        let scale = expected.iter().fold(1e-3f64, |m, v| m.max(v.abs())).max(value(operands).abs() * 1e-4);
        for (found, expected) in gradient.as_floats().iter().zip(&expected) {
            let near = (found - expected).abs() <= 1e-6 * scale;
            assert!(near, "{label}, operand {i}: {:?}, not {expected:?}", gradient.as_floats());
        }
    }
}

#[test]
fn rules_agree_with_differences() {
    for def in REGISTRY.iter().filter(|d| matches!(d.kind, Kind::Composite(_)) && d.name != "detach") {
        let Derivative::Rule(rule) = def.derivative else { continue };
        for sample in (def.samples)().iter().filter(|s| s.smooth) {
            check(def, rule, sample);
        }
    }
}
