//! Training steps: what they are made of, what they refuse, the guard, clipping.

mod train_step {
    mod assembly;
    mod steps;

    use backfit_ir::{DType, Graph, Init, Literal, Role, Tensor, Type};

    /// A weight in f64 with these values.
    pub fn weight(g: &Graph, name: &str, dims: &[usize], values: &[f64]) -> Tensor {
        let ty = Type::new(DType::F64, dims);
        g.weight(name, ty.clone(), Init::Literal(Literal::from_f64(ty, values)))
    }

    /// An f64 input.
    pub fn input(g: &Graph, name: &str, dims: &[usize]) -> Tensor {
        g.parameter(name, Type::new(DType::F64, dims), Role::Input, None)
    }

    /// A vector in f64.
    pub fn vector(values: &[f64]) -> Literal {
        Literal::from_f64(Type::new(DType::F64, [values.len()]), values)
    }
}
