//! Operators' samples as graphs.

use backfit_ir::ops::definition::Build;
use backfit_ir::ops::{OpDef, REGISTRY, Sample};
use backfit_ir::{Class, DType, Error, Graph, Literal, Module, Tensor};

/// A sample in one dtype.
pub struct Case {
    /// The operator.
    pub def: &'static OpDef,
    /// Operator, label and dtype.
    pub name: String,
    /// The inputs.
    pub inputs: Vec<Literal>,
    /// Whether derivatives may be compared with differences here.
    pub smooth: bool,
    build: std::sync::Arc<Build>,
}

/// Every sample of every operator, in every dtype that it names.
pub fn cases() -> Vec<Case> {
    REGISTRY.iter().flat_map(|def| (def.samples)().into_iter().flat_map(|sample| of_sample(def, sample))).collect()
}

fn of_sample(def: &'static OpDef, sample: Sample) -> Vec<Case> {
    let build = std::sync::Arc::new(sample.build);
    let convertible = |l: &Literal, to: DType| match l.ty().dtype {
        DType::F64 => to.class() == Class::Float,
        DType::I64 => to.class() != Class::Float,
        _ => false,
    };
    let mut cases = Vec::new();
    for &dtype in sample.dtypes {
        let inputs = sample.inputs.iter().map(|l| {
            let ty = l.ty().with_dtype(dtype);
            match (convertible(l, dtype), l.ty().dtype) {
                (true, DType::F64) => Literal::from_f64(ty, &l.to_f64()),
                (true, _) => Literal::from_i64(ty, &l.to_i64()),
                _ => l.clone(),
            }
        });
        cases.push(Case {
            def,
            name: format!("{}: {} ({dtype})", def.name, sample.label),
            inputs: inputs.collect(),
            smooth: sample.smooth,
            build: build.clone(),
        });
    }
    cases
}

impl Case {
    /// A graph with the inputs as parameters, and the operator's results.
    pub fn graph(&self) -> (Graph, Vec<Tensor>) {
        let g = Graph::new();
        let params: Vec<Tensor> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(i, l)| g.parameter(&format!("x{i}"), l.ty().clone(), backfit_ir::Role::Input, None))
            .collect();
        let results = (self.build)(&g, &params);
        (g, results)
    }

    /// The graph as a module that returns all results.
    ///
    /// # Errors
    /// Problems of the graph.
    pub fn module(&self) -> Result<Module, Error> {
        let (g, results) = self.graph();
        for (i, result) in results.iter().enumerate() {
            g.result(&format!("y{i}"), result);
        }
        g.finish()
    }
}
