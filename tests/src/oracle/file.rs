//! Reading the files of `tests/oracle`, and its single operators.

use backfit_ir::{DType, Literal, Type};
use safetensors::SafeTensors;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One case: an operator, its attributes, inputs and the right outputs.
pub struct Case {
    /// Operator and variant.
    pub name: String,
    /// The operator in the oracle's words.
    pub op: String,
    /// Inputs in order.
    pub inputs: Vec<Literal>,
    /// Outputs in order.
    pub outputs: Vec<Literal>,
    /// Cotangents of outputs; `None` for zero.
    pub cotangents: Vec<Option<Literal>>,
    /// Vector-Jacobian products of inputs; `None` where JAX does not differentiate.
    pub products: Vec<Option<Literal>>,
    attributes: Value,
}

impl Case {
    /// An attribute.
    pub fn get(&self, name: &str) -> &Value {
        self.attributes.get(name).unwrap_or_else(|| panic!("{} has no attribute '{name}'", self.name))
    }

    /// A number.
    pub fn float(&self, name: &str) -> f64 {
        self.get(name).as_f64().expect("a number")
    }

    /// An integer.
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).as_i64().expect("an integer")
    }

    /// A truth value.
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).as_bool().expect("true or false")
    }

    /// A word.
    pub fn str(&self, name: &str) -> &str {
        self.get(name).as_str().expect("a word")
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Vec<i64> {
        ints(self.get(name))
    }

    /// A list of sizes.
    pub fn sizes(&self, name: &str) -> Vec<usize> {
        self.ints(name).into_iter().map(|v| v as usize).collect()
    }

    /// Height and width, or one number for both.
    pub fn pair(&self, name: &str) -> [usize; 2] {
        match self.get(name).as_u64() {
            Some(both) => [both as usize; 2],
            None => self.sizes(name).try_into().expect("two numbers"),
        }
    }

    /// Columns of a list of [low, high].
    pub fn padding(&self) -> [Vec<i64>; 2] {
        let pairs: Vec<Vec<i64>> = self.get("padding").as_array().expect("a list").iter().map(ints).collect();
        [0, 1].map(|side| pairs.iter().map(|p| p[side]).collect())
    }
}

fn ints(list: &Value) -> Vec<i64> {
    list.as_array().expect("a list").iter().map(|v| v.as_i64().expect("an integer")).collect()
}

/// Where the oracle lies.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle")
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let bytes = std::fs::read(folder().join("operators.safetensors")).expect("the tensors of the oracle");
    let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    json("operators.json")["cases"].as_array().expect("a list").iter().map(|row| case(row, &tensors)).collect()
}

/// A JSON file of the oracle.
pub fn json(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(name)).expect("a file of the oracle");
    serde_json::from_str(&text).expect("a JSON file")
}

fn case(row: &Value, tensors: &SafeTensors) -> Case {
    let text = |key: &str| row[key].as_str().expect("a word").to_owned();
    let listed = |list: &str, key: &str| -> Vec<Option<Literal>> {
        let rows = row[list].as_array().expect("a list").iter();
        rows.map(|entry| entry[key].as_str().map(|key| literal(tensors, key))).collect()
    };
    let all = |list: &str| listed(list, "key").into_iter().map(|value| value.expect("a tensor")).collect();
    Case {
        name: text("name"),
        op: text("op"),
        inputs: all("inputs"),
        outputs: all("outputs"),
        cotangents: listed("outputs", "ct"),
        products: listed("inputs", "vjp"),
        attributes: row["attrs"].clone(),
    }
}

/// A tensor of a file.
pub fn literal(tensors: &SafeTensors, key: &str) -> Literal {
    let tensor = tensors.tensor(key).unwrap_or_else(|_| panic!("there is no tensor {key}"));
    let dtype = match tensor.dtype() {
        safetensors::Dtype::F64 => DType::F64,
        safetensors::Dtype::F32 => DType::F32,
        safetensors::Dtype::I32 => DType::I32,
        safetensors::Dtype::BOOL => DType::Bool,
        other => panic!("{key} is {other:?}"),
    };
    Literal::from_bytes(Type::new(dtype, tensor.shape()), tensor.data()).expect("as many bytes as elements")
}
