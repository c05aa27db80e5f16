//! The header of a safetensors file: which tensor lies where.

use crate::reading::read_exactly;
use backfit_ir::{DType, Literal, MAX_RANK, Problem, Result, Type};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

/// The longest header that the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// The key of the metadata among the names of tensors.
const METADATA: &str = "__metadata__";

/// Names and types of tensors in the order of their bytes, which lie without gaps, and metadata.
pub(super) struct Header {
    tensors: Vec<(String, Type)>,
    metadata: BTreeMap<String, String>,
}

impl Header {
    /// A header of tensors: the widest dtypes first, so that all are aligned, then by name.
    pub(super) fn new(metadata: BTreeMap<String, String>, tensors: &BTreeMap<String, Literal>) -> Result<Self> {
        let mut entries = Vec::new();
        for (name, values) in tensors {
            let ty = values.ty().clone();
            if name == METADATA {
                return Err(Problem::new(format!("a tensor cannot be named '{METADATA}'")).into());
            }
            let Some(dtype) = to_file(ty.dtype) else {
                let what = format!("the tensor '{name}: {ty}' has a packed dtype");
                return Err(Problem::new(what).help("packed tensors are constants of a model").into());
            };
            entries.push((Reverse(dtype), name.clone(), ty));
        }
        entries.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        Ok(Header { tensors: entries.into_iter().map(|(_, name, ty)| (name, ty)).collect(), metadata })
    }

    /// Names and types in the order of their bytes.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.tensors.iter().map(|(name, ty)| (name.as_str(), ty))
    }

    pub(super) fn into_metadata(self) -> BTreeMap<String, String> {
        self.metadata
    }

    /// The bytes of the header. Equal checkpoints have equal bytes: everything is in a fixed order.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut entries = Map::new();
        entries.insert(METADATA.into(), serde_json::to_value(&self.metadata)?);
        let mut offset = 0;
        for (name, ty) in &self.tensors {
            let end = offset + ty.bytes();
            let dtype = to_file(ty.dtype).ok_or(io::ErrorKind::InvalidInput)?;
            let info = TensorInfo { dtype, shape: ty.shape.to_vec(), data_offsets: (offset, end) };
            entries.insert(name.clone(), serde_json::to_value(info)?);
            offset = end;
        }
        let mut json = serde_json::to_vec(&Value::Object(entries))?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json);
        Ok(bytes)
    }

    /// Reads the header of a file of `size` bytes and checks that it describes all of them.
    pub(super) fn read(reader: &mut dyn Read, size: u64, file: &Path) -> Result<Self> {
        let damaged = |what: String| {
            Problem::new(what).in_file(file).help("the file is incomplete, damaged or no safetensors file")
        };
        let length = read_exactly(reader, 8, "header length", file)?;
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        if length > MAX_HEADER || length > size.saturating_sub(8) {
            let what = format!("the header claims {length} bytes in a file of {size}");
            return Err(damaged(what).into());
        }
        let json = read_exactly(reader, length as usize, "header", file)?;
        let parsed: Metadata = serde_json::from_slice(&json)
            .map_err(|e| damaged("the header is not readable".into()).because(e.to_string()))?;
        let (expected, found) = (parsed.data_len() as u64, size - 8 - length);
        if expected != found {
            return Err(damaged(format!("expected {expected} bytes of tensors, found {found}")).into());
        }
        let mut tensors = Vec::new();
        for name in parsed.offset_keys() {
            let Some(info) = parsed.info(&name) else { continue };
            let Some(dtype) = from_file(info.dtype) else {
                let what = format!("the tensor '{name}' has the dtype {}", info.dtype);
                return Err(Problem::new(what).in_file(file).help("convert it to f32 or f16").into());
            };
            let ty = Type::new(dtype, info.shape.clone());
            if ty.shape.rank() > MAX_RANK || ty.shape.checked_elements().is_none() {
                let what =
                    format!("the tensor '{name}' has the shape {}, at most {MAX_RANK} axes are possible", ty.shape);
                return Err(Problem::new(what).in_file(file).into());
            }
            tensors.push((name, ty));
        }
        let metadata = parsed.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Header { tensors, metadata })
    }
}

const DTYPES: [(DType, Dtype); 13] = [
    (DType::F64, Dtype::F64),
    (DType::F32, Dtype::F32),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::I64, Dtype::I64),
    (DType::I32, Dtype::I32),
    (DType::I16, Dtype::I16),
    (DType::I8, Dtype::I8),
    (DType::U64, Dtype::U64),
    (DType::U32, Dtype::U32),
    (DType::U16, Dtype::U16),
    (DType::U8, Dtype::U8),
    (DType::Bool, Dtype::BOOL),
];

fn to_file(dtype: DType) -> Option<Dtype> {
    DTYPES.iter().find(|(ours, _)| *ours == dtype).map(|(_, theirs)| *theirs)
}

fn from_file(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(_, theirs)| *theirs == dtype).map(|(ours, _)| *ours)
}
