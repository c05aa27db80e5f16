//! NumPy arrays: `.npy`, one array, and `.npz`, a zip archive of them.

use super::dataset::Dataset;
use crate::atomic_file;
use crate::reading::{checked_bytes, expect_end, open, read_exactly};
use backfit_ir::{DType, Error, Literal, MAX_RANK, Problem, Result, Shape, Type};
use std::io::{self, Cursor, Read, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// The longest header that is read; NumPy's own are about a hundred bytes.
const MAX_HEADER: usize = 1 << 16;

/// Reads a `.npy` file.
///
/// # Errors
/// The file cannot be read, is not of this format, has a dtype without a counterpart here, or holds
/// more or less than its header declares.
pub fn read_npy(file: &Path) -> Result<Literal> {
    decode_npy(&mut open(file)?, file)
}

/// Reads every array of a `.npz` file as a column of its name; the first axis counts the samples.
///
/// # Errors
/// As for [`read_npy`] and [`Dataset::new`]; the archive is damaged or holds something else than arrays.
pub fn read_npz(file: &Path) -> Result<Dataset> {
    Ok(Dataset::new(decode_npz(open(file)?, file)?)?.from_file(file))
}

/// Writes arrays as a compressed `.npz` archive, whole or not at all. NumPy knows no bf16: such arrays are written as u16, the
/// upper halves of f32.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::npz::{read_npz, write_npz};
/// let file = std::env::temp_dir().join(format!("backfit-doc-{}.npz", std::process::id()));
/// let x = Literal::from_f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
/// write_npz(&file, [("x", &x)])?;
/// assert_eq!(read_npz(&file)?.column("x")?, &x);
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// What the operating system says; an array of a packed dtype.
pub fn write_npz<'a>(file: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Literal)>) -> Result<()> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in arrays {
        let refuse =
            |why: String| Problem::new(format!("the array '{name}' cannot be written")).because(why).in_file(file);
        let head = npy_header(array.ty()).map_err(&refuse)?;
        archive
            .start_file(format!("{name}.npy"), SimpleFileOptions::default())
            .map_err(io::Error::from)
            .and_then(|()| archive.write_all(&head))
            .and_then(|()| archive.write_all(array.bytes()))
            .map_err(|e| refuse(e.to_string()))?;
    }
    let bytes = archive.finish().map_err(|e| Problem::new("cannot write the archive").because(e.to_string()))?;
    atomic_file::replace(file, |out| out.write_all(bytes.get_ref()))
}

/// The header of version 1.0, padded so that the array begins at a multiple of 64.
fn npy_header(ty: &Type) -> Result<Vec<u8>, String> {
    let descr = match ty.dtype {
        DType::Bool => "|b1".to_owned(),
        DType::BF16 => "<u2".to_owned(),
        dtype if dtype.is_packed() => return Err(format!("NumPy has no {dtype}")),
        dtype => format!("<{}{}", &dtype.name()[..1], dtype.bits() / 8),
    };
    let extents: String = ty.shape.iter().map(|d| format!("{d}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    Ok(bytes)
}

/// Reads the arrays of a `.npz` archive by name, in the order of the archive; `file` is named in errors.
///
/// # Errors
/// As for [`read_npz`].
pub fn decode_npz(archive: impl Read + Seek, file: &Path) -> Result<Vec<(String, Literal)>> {
    let refuse = |what: String, cause: &dyn std::fmt::Display| -> Error {
        let problem = Problem::new(what).in_file(file).because(cause.to_string());
        problem.help("write the file again with numpy.savez").into()
    };
    let mut archive = ZipArchive::new(archive).map_err(|e| refuse("this is no readable .npz archive".into(), &e))?;
    let mut arrays = Vec::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(|e| refuse(format!("entry {i} cannot be read"), &e))?;
        let name = entry.name().to_string();
        let Some(array) = name.strip_suffix(".npy") else {
            return Err(refuse(format!("entry '{name}' is no array"), &"its name does not end in .npy"));
        };
        let values = decode_npy(&mut entry, file).map_err(|e| e.because(format!("in array '{array}'")))?;
        arrays.push((array.to_string(), values));
    }
    Ok(arrays)
}

/// Reads a `.npy` array from memory or a stream; `file` is named in errors.
///
/// ```
/// let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
/// let mut bytes = [&b"\x93NUMPY\x01\x00"[..], &[header.len() as u8, 0], header.as_bytes()].concat();
/// bytes.extend([1, 0, 2, 0]);
/// let values = backfit_train::data::npz::decode_npy(&mut &bytes[..], "two.npy".as_ref())?;
/// assert_eq!(values.ty().to_string(), "i16[2]");
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// As for [`read_npy`].
pub fn decode_npy(reader: &mut dyn Read, file: &Path) -> Result<Literal> {
    let refuse = |what: String| Problem::new(what).in_file(file);
    let magic = read_exactly(reader, 8, "NumPy header", file)?;
    let length_width = match (&magic[..6], magic[6]) {
        (b"\x93NUMPY", 1) => 2,
        (b"\x93NUMPY", 2 | 3) => 4,
        (b"\x93NUMPY", version) => return Err(refuse(format!("NumPy format version {version}")).into()),
        _ => return Err(refuse(format!("this is no NumPy array: it begins with {magic:02x?}")).into()),
    };
    let length = read_exactly(reader, length_width, "NumPy header length", file)?;
    let length = length.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
    if length > MAX_HEADER {
        return Err(refuse(format!("the header claims {length} bytes, over {MAX_HEADER}")).into());
    }
    let header = read_exactly(reader, length, "NumPy header", file)?;
    let header = Header::parse(&header).map_err(|what| refuse(what).because("of the header"))?;
    let expected = checked_bytes(&header.shape, header.dtype.bits() / 8, file)?;
    let what = format!("elements ({}{})", header.dtype, header.shape);
    let bytes = read_exactly(reader, expected, &what, file)?;
    expect_end(reader, &what, file)?;
    if header.dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
        return Err(refuse("a bool is neither 0 nor 1".into()).help("the file is damaged").into());
    }
    Ok(header.arrange(bytes))
}

/// What the header of an array says.
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    shape: Shape,
}

impl Header {
    /// Parses the Python dictionary of a header.
    fn parse(header: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(header).map_err(|_| "the header is not text".to_string())?;
        let descr = value_of(text, "descr")?;
        let descr = quoted(descr).ok_or_else(|| format!("the dtype {descr} is structured"))?;
        let (big_endian, dtype) = element_type(descr)?;
        let fortran_order = match value_of(text, "fortran_order")? {
            v if v.starts_with("True") => true,
            v if v.starts_with("False") => false,
            v => return Err(format!("fortran_order is {v}")),
        };
        let shape = parse_shape(value_of(text, "shape")?)?;
        Ok(Header { dtype, big_endian, fortran_order, shape })
    }

    /// The elements of the file, little-endian and row-major.
    fn arrange(&self, mut bytes: Vec<u8>) -> Literal {
        let width = self.dtype.bits() / 8;
        if self.big_endian {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        if self.fortran_order && self.shape.rank() > 1 {
            bytes = row_major(&bytes, width, &self.shape);
        }
        let ty = Type::new(self.dtype, self.shape.clone());
        Literal::from_bytes(ty, bytes).expect("exactly the bytes of the type")
    }
}

/// What follows `'key':` in a dictionary.
fn value_of<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let after = |quote: char| text.split_once(&format!("{quote}{key}{quote}"));
    let (_, rest) = after('\'').or_else(|| after('"')).ok_or_else(|| format!("there is no '{key}'"))?;
    let rest = rest.trim_start().strip_prefix(':').ok_or_else(|| format!("'{key}' has no value"))?;
    Ok(rest.trim_start())
}

/// The string at the beginning of a text.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// Byte order and dtype of a description such as `<f4`.
fn element_type(descr: &str) -> Result<(bool, DType), String> {
    let (order, kind) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "|" | "="), kind)) => (order, kind),
        _ => ("<", descr),
    };
    let dtype = match kind {
        "f8" => DType::F64,
        "f4" => DType::F32,
        "f2" => DType::F16,
        "i8" => DType::I64,
        "i4" => DType::I32,
        "i2" => DType::I16,
        "i1" => DType::I8,
        "u8" => DType::U64,
        "u4" => DType::U32,
        "u2" => DType::U16,
        "u1" => DType::U8,
        "b1" => DType::Bool,
        _ => return Err(format!("the dtype '{descr}' has no counterpart; convert it with astype")),
    };
    Ok((order == ">", dtype))
}

/// A tuple of extents.
fn parse_shape(text: &str) -> Result<Shape, String> {
    let inside = text.strip_prefix('(').and_then(|t| t.split_once(')')).map(|(inside, _)| inside);
    let inside = inside.ok_or_else(|| "the shape is no tuple".to_string())?;
    let extents = inside.split(',').map(str::trim).filter(|t| !t.is_empty());
    let extents = extents.map(|t| t.parse().map_err(|_| format!("the extent '{t}' is no size")));
    let extents: Vec<usize> = extents.collect::<Result<_, _>>()?;
    if extents.len() > MAX_RANK {
        return Err(format!("the array has {} axes, at most {MAX_RANK} are possible", extents.len()));
    }
    Ok(extents.into())
}

/// Column-major elements in row-major order.
fn row_major(bytes: &[u8], width: usize, shape: &Shape) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.rank()];
    for _ in 0..shape.elements() {
        let source = shape.iter().zip(&index).rev().fold(0, |at, (extent, i)| at * extent + i);
        out.extend_from_slice(&bytes[source * width..][..width]);
        for axis in (0..shape.rank()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// Reads a `.npy` or `.npz` file by its ending. One array becomes the column `data`.
///
/// # Errors
/// As for [`read_npy`] and [`read_npz`].
pub fn read(file: &Path) -> Result<Dataset> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(Dataset::new([("data", read_npy(file)?)])?.from_file(file)),
        Some("npz") => read_npz(file),
        _ => Err(Problem::new("the name ends neither in .npy nor in .npz").in_file(file).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::damage;
    use zip::CompressionMethod;

    fn npy(descr: &str, fortran: &str, shape: &str, body: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(body);
        bytes
    }

    fn npz(method: CompressionMethod, arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn try_npy(bytes: &[u8]) -> Result<Literal> {
        decode_npy(&mut &bytes[..], Path::new("a.npy"))
    }

    fn try_npz(bytes: &[u8]) -> Result<Vec<(String, Literal)>> {
        decode_npz(Cursor::new(bytes), Path::new("a.npz"))
    }

    #[test]
    fn what_is_written_is_read() {
        let file = std::env::temp_dir().join(format!("backfit-npz-{}.npz", std::process::id()));
        let array = |dtype: DType| Literal::from_i64(Type::new(dtype, [2, 3]), &[0, 1, 1, 0, 1, 0]);
        let numpy = DType::COMPUTED.into_iter().filter(|dtype| *dtype != DType::BF16);
        let mut arrays: Vec<(String, Literal)> = numpy.map(|dtype| (dtype.to_string(), array(dtype))).collect();
        arrays.push(("scalar".to_owned(), Literal::scalar(DType::F32, 0.5)));
        arrays.push(("nothing".to_owned(), Literal::zeros(Type::new(DType::F64, [0, 4]))));
        write_npz(&file, arrays.iter().map(|(name, array)| (name.as_str(), array))).unwrap();
        assert_eq!(decode_npz(open(&file).unwrap(), &file).unwrap(), arrays);
        let half = Literal::from_f64(Type::new(DType::BF16, [1]), &[1.5]);
        write_npz(&file, [("half", &half)]).unwrap();
        let read = decode_npz(open(&file).unwrap(), &file).unwrap();
        assert_eq!((read[0].1.ty().dtype, read[0].1.bytes()), (DType::U16, half.bytes()));
        let packed = Literal::zeros(Type::new(DType::U4, [2]));
        assert!(write_npz(&file, [("packed", &packed)]).unwrap_err().to_string().contains("NumPy has no u4"));
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn every_dtype_of_numpy_with_a_counterpart_is_read_in_both_byte_orders() {
        let cases = [
            ("f8", DType::F64),
            ("f4", DType::F32),
            ("f2", DType::F16),
            ("i8", DType::I64),
            ("i4", DType::I32),
            ("i2", DType::I16),
            ("i1", DType::I8),
            ("u8", DType::U64),
            ("u4", DType::U32),
            ("u2", DType::U16),
            ("u1", DType::U8),
            ("b1", DType::Bool),
        ];
        for (kind, dtype) in cases {
            let expected = Literal::from_f64(Type::new(dtype, [2]), &[1.0, 0.0]);
            let little = npy(&format!("'<{kind}'"), "False", "(2,)", expected.bytes());
            assert_eq!(try_npy(&little).unwrap(), expected);
            let mut big = expected.bytes().to_vec();
            big.chunks_exact_mut(dtype.bits() / 8).for_each(<[u8]>::reverse);
            assert_eq!(try_npy(&npy(&format!("'>{kind}'"), "False", "(2,)", &big)).unwrap(), expected);
        }
    }

    #[test]
    fn column_major_arrays_are_turned_row_major() {
        let rows = try_npy(&npy("'|u1'", "True", "(2, 3)", &[0, 3, 1, 4, 2, 5])).unwrap();
        assert_eq!(rows.bytes(), [0, 1, 2, 3, 4, 5]);
        let cube = try_npy(&npy("'|u1'", "True", "(2, 2, 2)", &[0, 4, 2, 6, 1, 5, 3, 7])).unwrap();
        assert_eq!(cube.bytes(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn scalars_and_empty_arrays_are_read() {
        assert_eq!(try_npy(&npy("'|u1'", "False", "()", &[9])).unwrap().ty().to_string(), "u8[]");
        assert!(try_npy(&npy("'<f4'", "True", "(0, 3)", &[])).unwrap().bytes().is_empty());
    }

    #[test]
    fn what_has_no_counterpart_is_refused_with_its_name() {
        for descr in ["'<c8'", "'<U4'", "'|O'", "'<M8[ns]'", "''"] {
            let e = try_npy(&npy(descr, "False", "(1,)", &[0; 8])).unwrap_err().to_string();
            assert!(e.contains(descr.trim_matches('\'')) && e.contains("a.npy"), "{e}");
        }
        let e = try_npy(&npy("[('a', '<f4')]", "False", "(1,)", &[0; 4])).unwrap_err().to_string();
        assert!(e.contains("structured"), "{e}");
        assert!(try_npy(&npy("'|b1'", "False", "(1,)", &[2])).is_err());
    }

    #[test]
    fn huge_and_foolish_shapes_neither_allocate_nor_panic() {
        let shapes = [
            "(99999999999999, 99999999999)",
            "(18446744073709551615,)",
            "(1e9,)",
            "(-1,)",
            "(4611686018427387904,)",
            "3",
            "(1,1,1,1,1,1,1,1,1)",
            "(1",
        ];
        for shape in shapes {
            assert!(try_npy(&npy("'<f8'", "False", shape, &[0; 8])).is_err(), "{shape}");
        }
    }

    #[test]
    fn truncation_is_told_in_bytes() {
        let e = try_npy(&npy("'<f4'", "False", "(3,)", &[0; 7])).unwrap_err().to_string();
        assert!(e.contains("expected 12 bytes") && e.contains("found 7"), "{e}");
    }

    #[test]
    fn archives_are_read_stored_and_packed() {
        let x = npy("'<f4'", "False", "(2, 1)", &[0; 8]);
        let label = npy("'|u1'", "False", "(2,)", &[1, 0]);
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let archive = npz(method, &[("x.npy", x.clone()), ("label.npy", label.clone())]);
            let arrays = try_npz(&archive).unwrap();
            assert_eq!(arrays.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["x", "label"]);
            assert_eq!(arrays[1].1.bytes(), [1, 0]);
        }
        let e = try_npz(&npz(CompressionMethod::Stored, &[("x.npy", label[..label.len() - 1].to_vec())]));
        let e = e.unwrap_err().to_string();
        assert!(e.contains("array 'x'") && e.contains("a.npz"), "{e}");
        assert!(try_npz(&npz(CompressionMethod::Stored, &[("readme.txt", vec![])])).is_err());
    }

    #[test]
    fn damage_never_panics() {
        let array = npy("'>i2'", "True", "(2, 3)", &[0; 12]);
        damage::never_panics(&array, |b| try_npy(b).is_ok());
        damage::refuses_truncation(&array, |b| try_npy(b).is_ok());
        let archive = npz(CompressionMethod::Deflated, &[("x.npy", array.clone()), ("y.npy", array)]);
        damage::never_panics(&archive, |b| try_npz(b).is_ok());
        damage::refuses_truncation(&archive, |b| try_npz(b).is_ok());
    }
}
