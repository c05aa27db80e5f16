//! What holds for every sample.

use crate::harness::{evaluate, execute, inputs, samples};
use backfit_ir::interp::Data;
use backfit_ir::ops::definition::Sample;
use backfit_ir::{DType, Graph, Literal};

fn in_dtype(sample: &Sample, dtype: DType) -> Vec<Literal> {
    let convert = |literal: &Literal| match literal.ty().dtype {
        DType::F64 if dtype.is_float() => Literal::from_f64(literal.ty().with_dtype(dtype), &literal.to_f64()),
        DType::I64 if !dtype.is_float() => Literal::from_i64(literal.ty().with_dtype(dtype), &literal.to_i64()),
        _ => literal.clone(),
    };
    sample.inputs.iter().map(convert).collect()
}

#[test]
fn every_sample_evaluates_to_the_inferred_types_in_every_dtype() {
    for (name, sample) in samples() {
        for &dtype in sample.dtypes {
            let literals = in_dtype(&sample, dtype);
            let graph = Graph::new();
            let results = (sample.build)(&graph, &inputs(&graph, &literals));
            for (y, found) in results.iter().zip(execute(&graph, &results, &literals, false)) {
                assert_eq!(*y.ty(), found.ty, "{name}: {}", sample.label);
                let count = match &found.data {
                    Data::Float(v) => v.len(),
                    Data::Int(v) => v.len(),
                };
                assert_eq!(count, y.shape().elements(), "{name}: {}", sample.label);
                assert_eq!(found.ty.dtype.is_float(), matches!(found.data, Data::Float(_)), "{name}");
            }
        }
    }
}

#[test]
fn every_operator_is_the_same_after_its_attributes_are_written_and_parsed() {
    for (name, sample) in samples() {
        let graph = Graph::new();
        (sample.build)(&graph, &inputs(&graph, &sample.inputs));
        for node in graph.inspect(|f| f.nodes.clone()).iter().filter(|n| n.op.name() == name) {
            let rules = node.op.primitive();
            assert_eq!((rules.parse)(&(rules.attributes)(&node.op)).as_ref(), Ok(&node.op));
        }
    }
}

#[test]
fn samples_exercise_their_operator() {
    for (name, sample) in samples() {
        let graph = Graph::new();
        (sample.build)(&graph, &inputs(&graph, &sample.inputs));
        let used = graph.inspect(|f| f.nodes.iter().any(|n| n.op.name() == name));
        assert!(used, "{name}: {} does not use it", sample.label);
    }
}

#[test]
fn every_sample_gives_the_same_twice() {
    for (name, sample) in samples() {
        let bits = || -> Vec<Vec<u8>> {
            let results = evaluate(&sample.inputs, |g, x| (sample.build)(g, x));
            results.iter().map(|y| y.to_literal().bytes().to_vec()).collect()
        };
        assert_eq!(bits(), bits(), "{name}: {}", sample.label);
    }
}
