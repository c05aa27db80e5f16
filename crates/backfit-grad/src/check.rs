//! Checking derivatives against central differences, for users' graphs and for the audit.

use crate::reverse::{Request, vjp};
use backfit_ir::interp::{Array, Data, Options, run};
use backfit_ir::{Error, FuncId, Graph, Literal, Module, Problem, Tensor};
use std::fmt;

/// The worst disagreement for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    /// The parameter.
    pub parameter: String,
    /// The element, in row-major order.
    pub element: usize,
    /// What reverse mode says.
    pub derivative: f64,
    /// What central differences say.
    pub difference: f64,
    /// |derivative − difference| / (1 + largest magnitude of either over the parameter).
    pub error: f64,
}

/// How derivatives compare with central differences, one entry per float parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReport {
    /// The worst element of every parameter.
    pub parameters: Vec<Disagreement>,
}

impl CheckReport {
    /// The largest error.
    pub fn worst(&self) -> f64 {
        self.parameters.iter().map(|p| p.error).fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a })
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for p in &self.parameters {
            writeln!(
                f,
                "{}[{}]: derivative {:e}, difference {:e}, error {:.1e}",
                p.parameter, p.element, p.derivative, p.difference, p.error
            )?;
        }
        Ok(())
    }
}

/// Compares the gradients of a scalar with central differences in f64, for every float parameter of its graph.
///
/// `values` gives parameters by name; all others get fixed pseudo-random numbers in (−1, 1), integers zero.
/// At most 64 elements of each parameter are tried. An error near 1e-8 is what f64 allows.
///
/// ```
/// use backfit_grad::grad_check;
/// use backfit_ir::{DType, Graph};
/// let g = Graph::new();
/// let x = g.input("x", DType::F32, [4]);
/// let report = grad_check(&x.tanh().sum_all(), &[]).unwrap();
/// assert!(report.worst() < 1e-7, "{report}");
/// ```
///
/// # Errors
/// Problems of the graph, a missing derivative, a value of another type than its parameter.
#[track_caller]
pub fn grad_check(scalar: &Tensor, values: &[(&str, Literal)]) -> Result<CheckReport, Error> {
    let graph = scalar.graph();
    let params: Vec<_> = graph.inspect(|f| f.params.iter().map(|p| (p.name.clone(), f.ty(p.value).clone())).collect());
    let mut arguments = Vec::new();
    for (index, (name, ty)) in params.iter().enumerate() {
        let given = values.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        match given {
            Some(value) if value.ty() != ty => {
                return Err(Problem::new(format!("'{name}' is {ty}, the given value {}", value.ty())).into());
            }
            Some(value) => arguments.push(Array::from_literal(value)),
            None if ty.dtype.is_float() => {
                let n = ty.shape.elements();
                arguments.push(Array::floats(
                    ty.clone(),
                    backfit_ir::ops::definition::values::uniform(n, -1.0, 1.0, index as u64 + 1),
                ));
            }
            None => arguments.push(Array::from_literal(&Literal::zeros(ty.clone()))),
        }
    }
    let one = scalar.like(1.0);
    check_outputs(&[(scalar.clone(), one)], &arguments)
}

/// Compares derivatives of Σ output · cotangent with central differences, for every float parameter.
/// Cotangents must not depend on the parameters.
///
/// # Errors
/// Problems of the graph; a missing derivative.
pub fn check_outputs(outputs: &[(Tensor, Tensor)], arguments: &[Array]) -> Result<CheckReport, Error> {
    let graph = outputs[0].0.graph().clone();
    let params: Vec<(String, Tensor)> = graph
        .inspect(|f| f.params.iter().map(|p| (p.name.clone(), p.value)).collect::<Vec<_>>())
        .into_iter()
        .map(|(n, v)| (n, graph.tensor(v)))
        .collect();
    let floats: Vec<usize> = (0..params.len()).filter(|&i| params[i].1.dtype().is_float()).collect();
    let targets: Vec<&Tensor> = floats.iter().map(|&i| &params[i].1).collect();
    let forward = function(
        &graph,
        outputs.iter().enumerate().flat_map(|(i, (y, c))| [(format!("y{i}"), y), (format!("c{i}"), c)]),
    )?;
    let found = vjp(&Request { outputs, targets: &targets, stop: &[] })?;
    let given: Vec<(String, &Tensor)> =
        floats.iter().zip(&found).filter_map(|(&i, g)| Some((params[i].0.clone(), g.as_ref()?))).collect();
    let gradients = run_last(&function(&graph, given.iter().map(|(n, t)| (n.clone(), *t)))?, arguments)?;
    let mut report = CheckReport { parameters: Vec::new() };
    for &index in &floats {
        let name = &params[index].0;
        let gradient = given.iter().position(|(n, _)| n == name).map(|at| gradients[at].as_floats().to_vec());
        let gradient = gradient.unwrap_or_else(|| vec![0.0; arguments[index].len()]);
        if !gradient.is_empty() {
            report.parameters.push(compare(&forward, arguments, index, name, &gradient)?);
        }
    }
    Ok(report)
}

/// A module whose last function returns these tensors.
fn function<'a>(graph: &Graph, results: impl Iterator<Item = (String, &'a Tensor)>) -> Result<Module, Error> {
    let mut module = graph.finish()?;
    if let Some(main) = module.functions.last_mut() {
        main.results.clear();
        for (name, tensor) in results {
            if let Some(value) = tensor.value() {
                main.add_result(name, value, None);
            }
        }
    }
    Ok(module)
}

fn run_last(module: &Module, arguments: &[Array]) -> Result<Vec<Array>, Error> {
    let last = FuncId(module.functions.len() as u32 - 1);
    run(module, last, arguments, Options { double: true, flush_subnormals: false })
}

/// Σ y · c over the pairs of results.
fn objective(module: &Module, arguments: &[Array]) -> Result<f64, Error> {
    let results = run_last(module, arguments)?;
    let dot = |pair: &[Array]| pair[0].as_floats().iter().zip(pair[1].as_floats()).map(|(y, c)| y * c).sum::<f64>();
    Ok(results.chunks(2).map(dot).sum())
}

fn compare(
    forward: &Module,
    arguments: &[Array],
    index: usize,
    name: &str,
    gradient: &[f64],
) -> Result<Disagreement, Error> {
    let count = gradient.len();
    let elements: Vec<usize> =
        if count <= 64 { (0..count).collect() } else { (0..64).map(|i| i * count / 64).collect() };
    let mut moved = arguments.to_vec();
    let mut pairs = Vec::new();
    for &element in &elements {
        let x = arguments[index].as_floats()[element];
        let step = (1e-3 * x.abs()).clamp(1e-5, 1e-3);
        let mut at = |x: f64| {
            if let Data::Float(values) = &mut moved[index].data {
                values[element] = x;
            }
            objective(forward, &moved)
        };
        let (near, far) = (at(x + step)? - at(x - step)?, at(x + 2.0 * step)? - at(x - 2.0 * step)?);
        at(x)?;
        // The five-point stencil: its error is of fourth order.
        pairs.push((element, gradient[element], (8.0 * near - far) / (12.0 * step)));
    }
    let scale = 1.0 + pairs.iter().map(|(_, d, n)| d.abs().max(n.abs())).fold(0.0, f64::max);
    let error = |d: f64, n: f64| (d - n).abs() / scale;
    let worst = |a: &(usize, f64, f64), b: &(usize, f64, f64)| error(a.1, a.2).total_cmp(&error(b.1, b.2));
    let (element, derivative, difference) = pairs.into_iter().max_by(worst).expect("a parameter with elements");
    Ok(Disagreement {
        parameter: name.to_owned(),
        element,
        derivative,
        difference,
        error: error(derivative, difference),
    })
}
