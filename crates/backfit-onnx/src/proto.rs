//! The messages of `onnx.proto` that an export writes, by hand, with the field numbers of the standard.
//!
//! `prost` encodes them. A writer of its own would be about as long as these declarations, could not read what it wrote
//! (the tests do), and would have to be right about everything else that protocol buffers ask; `protoc` and a build
//! script would be much more than the six messages need. `prost` brings six small crates.
//!
//! Source: `onnx/onnx.proto`, ONNX 1.16 (operator set 21, format 10).

use backfit_ir::DType;
use prost::Message;

/// The version of the file format: that of ONNX 1.16, which brought operator set 21.
pub const IR_VERSION: i64 = 10;
/// The operator set that models are written in.
pub const OPSET: i64 = 21;

/// A whole model.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// Operator sets that are used.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Who wrote it.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// In which version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// In words.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// What it computes.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Named texts.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// An operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Its domain; empty for ONNX itself.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Its version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A named text.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The text.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A graph: of a model, or the body of a loop.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// In an order in which definitions precede uses.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// In words.
    #[prost(string, tag = "10")]
    pub doc_string: String,
    /// What it is fed.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What it returns.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// An operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the values that it reads; empty where an optional one is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the values that it defines.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its own name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// In words.
    #[prost(string, tag = "6")]
    pub doc_string: String,
}

/// A named attribute. `type` says which of the fields holds the value.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A float.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// A text.
    #[prost(bytes = "vec", tag = "4")]
    pub s: Vec<u8>,
    /// A graph.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which field holds the value: one of the constants below.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

impl AttributeProto {
    const FLOAT: i32 = 1;
    const INT: i32 = 2;
    const STRING: i32 = 3;
    const GRAPH: i32 = 5;
    const INTS: i32 = 7;

    fn new(name: &str, kind: i32) -> Self {
        AttributeProto { name: name.to_owned(), r#type: kind, ..AttributeProto::default() }
    }

    /// A float.
    pub fn float(name: &str, value: f64) -> Self {
        AttributeProto { f: value as f32, ..Self::new(name, Self::FLOAT) }
    }

    /// An integer.
    pub fn int(name: &str, value: i64) -> Self {
        AttributeProto { i: value, ..Self::new(name, Self::INT) }
    }

    /// A text.
    pub fn text(name: &str, value: &str) -> Self {
        AttributeProto { s: value.as_bytes().to_vec(), ..Self::new(name, Self::STRING) }
    }

    /// A graph.
    pub fn graph(name: &str, value: GraphProto) -> Self {
        AttributeProto { g: Some(value), ..Self::new(name, Self::GRAPH) }
    }

    /// Integers.
    pub fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        AttributeProto { ints: values.into_iter().collect(), ..Self::new(name, Self::INTS) }
    }
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Extents.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type: a number of [`data_type`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Its name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements, row-major, little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// The name and type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type; here always a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// Element type: a number of [`data_type`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Extents.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// Extents.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// One per axis.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// An extent.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// The number of elements; set even where that is 0.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
}

/// The number of an element type. Packed types have none: their constants are written in bytes.
pub fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 | DType::U4 | DType::U1 => 2,
        DType::I8 | DType::I4 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::BF16 => 16,
    }
}
