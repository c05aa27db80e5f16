//! Reverse mode: second order, functions, loops, what is asked for, errors.

mod gradients {
    mod errors;
    mod functions;
    mod requests;
    mod scans;
    mod second_order;

    use backfit_ir::interp::{Array, Options, run};
    use backfit_ir::ops::definition::values;
    use backfit_ir::rewrite::inline_calls;
    use backfit_ir::{DType, FuncId, Graph, Literal, Module, Role, Tensor, Type};

    /// An f64 input.
    pub fn input(g: &Graph, name: &str, dims: &[usize]) -> Tensor {
        g.parameter(name, Type::new(DType::F64, dims), Role::Input, None)
    }

    /// Numbers that differ from each other, as a constant like this tensor.
    pub fn weights(like: &Tensor, seed: u64) -> Tensor {
        let values = values::uniform(like.shape().elements(), 0.5, 1.5, seed);
        like.graph().constant(Literal::from_f64(like.ty().clone(), &values))
    }

    /// Σ x · w with such numbers: a scalar of which every element has another derivative.
    pub fn weighted(x: &Tensor, seed: u64) -> Tensor {
        (x * weights(x, seed)).sum_all()
    }

    /// The module of a graph with these results.
    pub fn module(g: &Graph, results: &[&Tensor]) -> Module {
        let mut module = g.finish().unwrap_or_else(|e| panic!("{e}"));
        let main = module.functions.last_mut().expect("the main function");
        for (i, result) in results.iter().enumerate() {
            main.add_result(format!("result {i}"), result.value().expect("no poison"), None);
        }
        module
    }

    /// Values for all inputs, always the same.
    pub fn arguments(g: &Graph) -> Vec<Literal> {
        let types: Vec<Type> = g.inspect(|f| f.params.iter().map(|p| f.ty(p.value).clone()).collect());
        let value = |(i, ty): (usize, &Type)| {
            Literal::from_f64(ty.clone(), &values::uniform(ty.shape.elements(), -1.0, 1.0, i as u64 + 1))
        };
        types.iter().enumerate().map(value).collect()
    }

    /// What these tensors are for those values.
    pub fn evaluate(g: &Graph, results: &[&Tensor]) -> Vec<Vec<f64>> {
        let module = module(g, results);
        let arguments: Vec<Array> = arguments(g).iter().map(Array::from_literal).collect();
        let options = Options { double: true, ..Options::default() };
        let found = run(&module, FuncId(module.functions.len() as u32 - 1), &arguments, options);
        found.unwrap_or_else(|e| panic!("{e}")).iter().map(|a| a.as_floats().to_vec()).collect()
    }

    pub fn assert_near(found: &[Vec<f64>], expected: &[Vec<f64>]) {
        assert_eq!(found.len(), expected.len());
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(found.len(), expected.len());
            let near = found.iter().zip(expected).all(|(f, e)| (f - e).abs() <= 1e-12 * e.abs().max(1.0));
            assert!(near, "{i}: {found:?}, not {expected:?}");
        }
    }

    /// How many nodes of the main function and what it calls are this operator.
    pub fn count(module: &Module, operator: &str) -> usize {
        let flat = inline_calls(module, FuncId(module.functions.len() as u32 - 1), |_| true);
        flat.nodes.iter().filter(|n| n.op.name() == operator).count()
    }
}
