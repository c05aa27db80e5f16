//! The oracle's models: parameters, inputs, and what JAX gives for them.

use super::file::{folder, json, literal};
use super::networks::Network;
use backfit_ir::{DType, Graph, Init, Literal, Role, Tensor};
use safetensors::SafeTensors;
use serde_json::Value;
use std::collections::BTreeMap;

/// A model with its tensors, by the names in the file after the model's own.
pub struct Model {
    /// Its name.
    pub name: String,
    /// Parameters whose gradient is zero but for rounding.
    pub zero_gradient: Vec<String>,
    tensors: BTreeMap<String, Literal>,
}

/// A model as a graph.
pub struct Built {
    /// The graph: inputs `x` and `target`, weights, state.
    pub graph: Graph,
    /// The mean cross-entropy.
    pub loss: Tensor,
    /// Before it.
    pub logits: Tensor,
    /// Weights by name.
    pub weights: BTreeMap<String, Tensor>,
    /// Batch statistics by name.
    pub statistics: Vec<(String, Tensor)>,
}

/// All models.
pub fn models() -> Vec<Model> {
    let bytes = std::fs::read(folder().join("models.safetensors")).expect("the models of the oracle");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    json("models.json")["models"].as_array().expect("a list").iter().map(|row| model(row, &tensors)).collect()
}

fn model(row: &Value, tensors: &SafeTensors) -> Model {
    let name = row["name"].as_str().expect("a word").to_owned();
    let own =
        |key: &str| key.strip_prefix(&name)?.strip_prefix('/').map(|rest| (rest.to_owned(), literal(tensors, key)));
    let zero = row["zero_gradient"].as_array().expect("a list").iter();
    Model {
        zero_gradient: zero.map(|v| v.as_str().expect("a word").to_owned()).collect(),
        tensors: tensors.names().into_iter().filter_map(own).collect(),
        name,
    }
}

/// The same numbers in another float dtype; other tensors stay.
fn converted(value: &Literal, dtype: DType) -> Literal {
    if value.ty().dtype.is_float() {
        Literal::from_f64(value.ty().with_dtype(dtype), &value.to_f64())
    } else {
        value.clone()
    }
}

impl Model {
    /// What JAX gives in this dtype: `loss`, `logits`, `grad/NAME`, `sgd/losses` …
    pub fn expected(&self, dtype: DType, what: &str) -> &Literal {
        let key = format!("{dtype}/{what}");
        self.tensors.get(&key).unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    /// `x` or `target`.
    pub fn input(&self, name: &str, dtype: DType) -> Literal {
        converted(&self.tensors[&format!("input/{name}")], dtype)
    }

    /// The model in a float dtype, the weights initialised to the oracle's.
    pub fn build(&self, dtype: DType) -> Built {
        let graph = Graph::new();
        let input = |name: &str| graph.parameter(name, self.input(name, dtype).ty().clone(), Role::Input, None);
        let (x, target) = (input("x"), input("target"));
        let parameters = self.tensors.iter().filter_map(|(key, v)| Some((key.strip_prefix("param/")?, v)));
        let weight = |(name, value): (&str, &Literal)| {
            let value = converted(value, dtype);
            (name.to_owned(), graph.weight(name, value.ty().clone(), Init::Literal(value)))
        };
        let weights: BTreeMap<String, Tensor> = parameters.map(weight).collect();
        let mut network = Network { g: &graph, weights: &weights, statistics: Vec::new() };
        let logits = network.logits(&self.name, &x);
        let statistics = network.statistics;
        let loss = logits.cross_entropy(&target);
        Built { loss, logits, weights, statistics, graph }
    }

    /// Values for the parameters of the graph, in order.
    pub fn arguments(&self, graph: &Graph, dtype: DType) -> Vec<Literal> {
        let value = |name: &str, tensor: &Tensor, init: &Option<Init>| match init {
            None => self.input(name, dtype),
            Some(Init::Literal(value)) => value.clone(),
            Some(Init::Constant(c)) => Literal::from_f64(tensor.ty().clone(), &vec![*c; tensor.shape().elements()]),
            Some(other) => panic!("{name} starts as {other:?}"),
        };
        let params = graph.inspect(|f| f.params.clone());
        params.iter().map(|p| value(&p.name, &graph.tensor(p.value), &p.init)).collect()
    }
}
