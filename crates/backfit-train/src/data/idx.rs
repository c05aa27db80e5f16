//! IDX, the format of MNIST, plain or packed by gzip.
//!
//! A file is: two zero bytes, the element type, the rank; each extent as a big-endian u32; the elements,
//! big-endian, row-major.

use super::dataset::Dataset;
use crate::reading::{checked_bytes, expect_end, io_error, open, read_exactly, unpacked};
use backfit_ir::{DType, Literal, MAX_RANK, Problem, Result, Shape, Type};
use std::io::BufRead;
use std::path::Path;

/// Reads an IDX file.
///
/// # Errors
/// The file cannot be read, is not IDX, or holds more or less than its header declares.
pub fn read(file: &Path) -> Result<Literal> {
    decode(open(file)?, file)
}

/// Reads images `u8[N,H,W]` and labels `u8[N]` as the columns `image: u8[N,1,H,W]` and `label: i32[N]`.
///
/// # Errors
/// As for [`read`]; other types or shapes; different numbers of images and labels.
pub fn read_pair(images: &Path, labels: &Path) -> Result<Dataset> {
    pair((read(images)?, images), (read(labels)?, labels))
}

/// Reads IDX from memory or a stream; `file` is named in errors.
///
/// ```
/// let bytes = [0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9];
/// let values = backfit_train::data::idx::decode(&bytes[..], "three.idx".as_ref())?;
/// assert_eq!(values.ty().to_string(), "u8[3]");
/// assert_eq!(values.bytes(), [7, 8, 9]);
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// As for [`read`].
pub fn decode(content: impl BufRead, file: &Path) -> Result<Literal> {
    let mut reader = unpacked(content).map_err(|e| io_error(file, "cannot read the beginning of the file", &e))?;
    let magic = read_exactly(&mut reader, 4, "IDX header", file)?;
    let (dtype, rank) = match magic[..] {
        [0, 0, code, rank] => (element_type(code, file)?, usize::from(rank)),
        _ => {
            let what = format!("this is no IDX file: it begins with {magic:02x?}");
            return Err(Problem::new(what).in_file(file).because("IDX begins with two zero bytes").into());
        }
    };
    if rank > MAX_RANK {
        let what = format!("the tensor has {rank} axes, at most {MAX_RANK} are possible");
        return Err(Problem::new(what).in_file(file).into());
    }
    let extents = read_exactly(&mut reader, 4 * rank, "extents", file)?;
    let extent = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize;
    let shape = Shape::from(extents.chunks_exact(4).map(extent).collect::<Vec<_>>());
    let width = dtype.bits() / 8;
    let expected = checked_bytes(&shape, width, file)?;
    let what = format!("elements ({dtype}{shape})");
    let mut bytes = read_exactly(&mut reader, expected, &what, file)?;
    expect_end(&mut reader, &what, file)?;
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    Ok(Literal::from_bytes(Type::new(dtype, shape), bytes).expect("exactly the bytes of the type"))
}

fn element_type(code: u8, file: &Path) -> Result<DType> {
    Ok(match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0B => DType::I16,
        0x0C => DType::I32,
        0x0D => DType::F32,
        0x0E => DType::F64,
        _ => {
            let what = format!("the element type 0x{code:02x} at byte 2 is none of IDX");
            return Err(Problem::new(what).in_file(file).help("the file is damaged or no IDX file").into());
        }
    })
}

/// The data set of images and labels, each with the name of its file.
pub(crate) fn pair(images: (Literal, &Path), labels: (Literal, &Path)) -> Result<Dataset> {
    let (images, images_file) = images;
    let (labels, labels_file) = labels;
    let &[n, height, width] = images.ty().shape.dims() else {
        return Err(wrong_type("images", "u8[N,H,W]", images.ty(), images_file));
    };
    if images.ty().dtype != DType::U8 {
        return Err(wrong_type("images", "u8[N,H,W]", images.ty(), images_file));
    }
    if labels.ty().dtype != DType::U8 || labels.ty().shape.rank() != 1 {
        return Err(wrong_type("labels", "u8[N]", labels.ty(), labels_file));
    }
    if labels.ty().shape[0] != n {
        let what = format!("{n} images, but {} labels", labels.ty().shape[0]);
        let problem = Problem::new(what).in_file(labels_file);
        let problem = problem.because(format!("the images are in {}", images_file.display()));
        return Err(problem.help("give the labels that belong to these images").into());
    }
    let ty = Type::new(DType::U8, [n, 1, height, width]);
    let image = Literal::from_bytes(ty, images.bytes()).expect("the same number of elements");
    let set = Dataset::new([("image", image)])?.from_file(images_file);
    set.with_column("label", labels)?.from_file(labels_file).to_i32("label")
}

fn wrong_type(role: &str, expected: &str, found: &Type, file: &Path) -> backfit_ir::Error {
    Problem::new(format!("{role} are {expected}, but the file holds {found}")).in_file(file).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::damage;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn idx(code: u8, dims: &[u32], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, code, dims.len() as u8];
        dims.iter().for_each(|d| bytes.extend(d.to_be_bytes()));
        bytes.extend(body);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn try_decode(bytes: &[u8]) -> Result<Literal> {
        decode(bytes, Path::new("some.idx"))
    }

    #[test]
    fn plain_and_packed_files_read_alike() {
        let plain = idx(8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
        let read = try_decode(&plain).unwrap();
        assert_eq!(read.ty().to_string(), "u8[2,3]");
        assert_eq!(read, try_decode(&gzip(&plain)).unwrap());
    }

    #[test]
    fn every_element_type_is_turned_to_little_endian() {
        let f32s: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(try_decode(&idx(0x0D, &[2], &f32s)).unwrap().to_f64(), [1.5, -2.0]);
        assert_eq!(try_decode(&idx(0x0E, &[1], &2.5f64.to_be_bytes())).unwrap().to_f64(), [2.5]);
        assert_eq!(try_decode(&idx(0x0C, &[1], &(-7i32).to_be_bytes())).unwrap().to_i64(), [-7]);
        assert_eq!(try_decode(&idx(0x0B, &[1], &(-300i16).to_be_bytes())).unwrap().to_i64(), [-300]);
        assert_eq!(try_decode(&idx(0x09, &[1], &[0xFF])).unwrap().to_i64(), [-1]);
    }

    #[test]
    fn truncation_is_told_in_bytes() {
        let e = try_decode(&idx(8, &[2, 3], &[1, 2, 3])).unwrap_err().to_string();
        assert!(e.contains("expected 6 bytes") && e.contains("found 3") && e.contains("some.idx"), "{e}");
        let e = try_decode(&idx(8, &[1], &[1, 2])).unwrap_err().to_string();
        assert!(e.contains("more data"), "{e}");
    }

    #[test]
    fn huge_extents_neither_allocate_nor_panic() {
        for dims in [vec![u32::MAX; 8], vec![u32::MAX, 2], vec![0, u32::MAX, u32::MAX, u32::MAX]] {
            assert!(try_decode(&idx(0x0E, &dims, &[1, 2, 3])).is_err(), "{dims:?}");
        }
        assert!(try_decode(&idx(8, &[1; 255], &[1])).unwrap_err().to_string().contains("255 axes"));
    }

    #[test]
    fn damage_never_panics() {
        let plain = idx(8, &[4, 5], &[7; 20]);
        damage::never_panics(&plain, |b| try_decode(b).is_ok());
        damage::refuses_truncation(&plain, |b| try_decode(b).is_ok());
        damage::never_panics(&gzip(&plain), |b| try_decode(b).is_ok());
        damage::refuses_truncation(&gzip(&plain), |b| try_decode(b).is_ok());
    }

    #[test]
    fn images_and_labels_must_be_as_many_and_of_the_right_type() {
        let images = |dims: &[u32], body: &[u8]| (try_decode(&idx(8, dims, body)).unwrap(), Path::new("i"));
        let labels = |body: &[u8]| (try_decode(&idx(8, &[body.len() as u32], body)).unwrap(), Path::new("l"));
        let good = pair(images(&[2, 1, 2], &[1, 2, 3, 4]), labels(&[9, 8])).unwrap();
        assert_eq!(good.column("image").unwrap().ty().to_string(), "u8[2,1,1,2]");
        assert_eq!(good.column("label").unwrap(), &Literal::from_i32([2], &[9, 8]));
        assert_eq!(good.file("label"), Some(Path::new("l")));
        let e = pair(images(&[2, 1, 1], &[1, 2]), labels(&[9])).unwrap_err().to_string();
        assert!(e.contains("2 images, but 1 labels"), "{e}");
        assert!(pair(images(&[2], &[1, 2]), labels(&[9, 8])).is_err());
        assert!(pair(images(&[2, 1, 1], &[1, 2]), images(&[2, 1], &[1, 2])).is_err());
    }
}
