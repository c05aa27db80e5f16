//! A graph under construction: names, nodes, constants.

use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, data_type};
use crate::proto::{DimensionProto, TensorShapeProto, TensorTypeProto, TypeProto};
use backfit_ir::{DType, Literal, Shape, Type};
use std::collections::{HashMap, HashSet};

/// A value of the graph.
#[derive(Clone, Debug)]
pub struct Val {
    /// Its name, unique in the model.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

impl Val {
    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.ty.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.ty.shape.elements()
    }
}

/// A graph under construction. Every node says from which scope and line of the user's it stems.
#[derive(Default)]
pub struct Builder {
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    /// Constants by type and bytes: each is written once.
    known: HashMap<(Type, Vec<u8>), Val>,
    /// What was repeated to make a value, for operators that repeat by themselves.
    pub(crate) expanded: HashMap<String, Val>,
    taken: HashSet<String>,
    scope: String,
    origin: String,
}

impl Builder {
    /// A graph that lies within this one, as the body of a loop does: no name is used in both.
    pub fn nested(&self) -> Builder {
        Builder { taken: self.taken.clone(), scope: self.scope.clone(), origin: self.origin.clone(), ..Self::default() }
    }

    /// Ends the graph, without nodes and constants that no output needs.
    pub fn finish(mut self, name: &str, inputs: &[Val], outputs: &[Val]) -> (GraphProto, HashSet<String>) {
        let mut needed: HashSet<String> = outputs.iter().map(|v| v.name.clone()).collect();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        while let Some(node) = self.nodes.pop() {
            if node.output.iter().any(|name| needed.contains(name)) {
                read_names(&node, &mut needed);
                nodes.push(node);
            }
        }
        nodes.reverse();
        self.constants.retain(|constant| needed.contains(&constant.name));
        let graph = GraphProto {
            node: nodes,
            name: name.to_owned(),
            initializer: self.constants,
            doc_string: String::new(),
            input: inputs.iter().map(value_info).collect(),
            output: outputs.iter().map(value_info).collect(),
        };
        (graph, self.taken)
    }

    /// Takes over the names of a graph that lay within this one.
    pub fn reserve(&mut self, names: HashSet<String>) {
        self.taken = names;
    }

    /// Says where the nodes that follow stem from.
    pub fn originate(&mut self, scope: &str, origin: String) {
        scope.clone_into(&mut self.scope);
        self.origin = origin;
    }

    /// A value with this name, or a similar one where it is taken.
    pub fn named(&mut self, name: &str, ty: Type) -> Val {
        let mut free = name.to_owned();
        let mut number = 1;
        while free.is_empty() || !self.taken.insert(free.clone()) {
            free = format!("{name}.{number}");
            number += 1;
        }
        Val { name: free, ty }
    }

    /// Adds a node with several results.
    pub fn nodes(
        &mut self,
        op: &str,
        inputs: &[&Val],
        attributes: Vec<AttributeProto>,
        results: Vec<Type>,
    ) -> Vec<Val> {
        let number = self.nodes.len();
        let base =
            if self.scope.is_empty() { format!("{op}.{number}") } else { format!("{}/{op}.{number}", self.scope) };
        let values: Vec<Val> = results.into_iter().map(|ty| self.named(&base, ty)).collect();
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|v| v.name.clone()).collect(),
            output: values.iter().map(|v| v.name.clone()).collect(),
            name: base,
            op_type: op.to_owned(),
            attribute: attributes,
            doc_string: self.origin.clone(),
        });
        values
    }

    /// Adds a node.
    pub fn node(&mut self, op: &str, inputs: &[&Val], attributes: Vec<AttributeProto>, result: Type) -> Val {
        self.nodes(op, inputs, attributes, vec![result]).remove(0)
    }

    /// Lets a named value that nothing defines yet be another one.
    pub fn define(&mut self, named: &Val, value: &Val) {
        self.nodes.push(NodeProto {
            input: vec![value.name.clone()],
            output: vec![named.name.clone()],
            name: format!("output/{}", named.name),
            op_type: "Identity".to_owned(),
            ..NodeProto::default()
        });
    }

    /// A constant. Packed ones are written in bytes and have the dtype of these from then on.
    pub fn constant(&mut self, literal: &Literal) -> Val {
        let literal = unpacked(literal);
        let key = (literal.ty().clone(), literal.bytes().to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let value = self.named(&format!("constant.{}", self.constants.len()), literal.ty().clone());
        self.constants.push(tensor(&value.name, &literal));
        self.known.insert(key, value.clone());
        value
    }

    /// A list of i64.
    pub fn list(&mut self, values: &[i64]) -> Val {
        self.constant(&Literal::from_i64(Type::new(DType::I64, [values.len()]), values))
    }

    /// A scalar.
    pub fn number(&mut self, dtype: DType, value: f64) -> Val {
        self.constant(&Literal::scalar(dtype, value))
    }

    /// An integer scalar; wraps.
    pub fn whole(&mut self, dtype: DType, value: i64) -> Val {
        self.constant(&Literal::from_i64(Type::new(dtype, []), &[value]))
    }

    /// Zeros, as a constant.
    pub fn zeros(&mut self, ty: &Type) -> Val {
        let zero = self.zero(ty.dtype);
        if ty.shape.elements() == 0 {
            self.constant(&Literal::zeros(ty.clone()))
        } else {
            self.expand(&zero, &ty.shape)
        }
    }

    /// Zero, as a scalar.
    pub fn zero(&mut self, dtype: DType) -> Val {
        self.constant(&Literal::zeros(Type::new(dtype, [])))
    }
}

/// A constant of a dtype that is not packed.
pub fn tensor(name: &str, literal: &Literal) -> TensorProto {
    TensorProto {
        dims: dims(literal.ty().shape.dims()),
        data_type: data_type(literal.ty().dtype),
        name: name.to_owned(),
        raw_data: literal.bytes().to_vec(),
    }
}

/// Extents as ONNX counts them.
pub fn dims(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&d| d as i64).collect()
}

/// All names that a node reads, those that its body reads included.
fn read_names(node: &NodeProto, names: &mut HashSet<String>) {
    names.extend(node.input.iter().cloned());
    let bodies = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref());
    bodies.flat_map(|graph| &graph.node).for_each(|inner| read_names(inner, names));
}

fn unpacked(literal: &Literal) -> Literal {
    let dtype = match literal.ty().dtype {
        DType::I4 => DType::I8,
        DType::U4 | DType::U1 => DType::U8,
        _ => return literal.clone(),
    };
    Literal::from_i64(literal.ty().with_dtype(dtype), &literal.to_i64())
}

fn value_info(value: &Val) -> ValueInfoProto {
    let dim = value.shape().iter().map(|&d| DimensionProto { dim_value: Some(d as i64) }).collect();
    let tensor = TensorTypeProto { elem_type: data_type(value.dtype()), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: value.name.clone(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
}
