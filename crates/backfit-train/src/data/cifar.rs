//! The binary archive of CIFAR-10: `cifar-10-binary.tar.gz`.
//!
//! A record is one byte of label and 3 × 32 × 32 bytes of image, plane by plane; `data_batch_1.bin` to
//! `data_batch_5.bin` are for training and `test_batch.bin` is held back.

use super::dataset::{Dataset, Split};
use crate::reading::{io_error, open, read_exactly, unpacked};
use backfit_ir::{DType, Literal, Problem, Result, Type};
use std::io::BufRead;
use std::path::Path;

/// The names of the classes, in the order of the labels.
pub const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

const IMAGE: usize = 3 * 32 * 32;
const RECORD: usize = 1 + IMAGE;
const MAX_FILE: u64 = 1 << 28;

/// Reads the archive: `image: u8[N,3,32,32]`, `label: i32[N]`.
///
/// # Errors
/// The file cannot be read, a part is missing, a part is not whole records, or a label is not 0..10.
pub fn read(file: &Path) -> Result<Split> {
    decode(open(file)?, file)
}

/// Reads the archive from memory or a stream; `file` is named in errors.
///
/// # Errors
/// As for [`read`].
pub fn decode(content: impl BufRead, file: &Path) -> Result<Split> {
    let damaged = |e: &std::io::Error| io_error(file, "cannot read the archive", e);
    let mut archive = tar::Archive::new(unpacked(content).map_err(|e| damaged(&e))?);
    let mut parts: [Option<Vec<u8>>; 6] = Default::default();
    for entry in archive.entries().map_err(|e| damaged(&e))? {
        let mut entry = entry.map_err(|e| damaged(&e))?;
        let path = entry.path().map_err(|e| damaged(&e))?.into_owned();
        let Some(part) = part_number(&path.file_name().unwrap_or_default().to_string_lossy()) else {
            continue;
        };
        let (size, name) = (entry.size(), file.join(&path));
        if size > MAX_FILE || !size.is_multiple_of(RECORD as u64) {
            let what = format!("{size} bytes are not whole records of {RECORD}");
            return Err(Problem::new(what).in_file(name).into());
        }
        parts[part] = Some(read_exactly(&mut entry, size as usize, "records", &name)?);
    }
    if let Some(missing) = parts.iter().position(Option::is_none) {
        let name = if missing == 5 { "test_batch".into() } else { format!("data_batch_{}", missing + 1) };
        return Err(Problem::new(format!("the archive has no {name}.bin")).in_file(file).into());
    }
    let [train @ .., test] = parts.map(Option::unwrap_or_default);
    Ok(Split { train: dataset(&train.concat(), file)?, test: dataset(&test, file)? })
}

fn part_number(name: &str) -> Option<usize> {
    match name.strip_suffix(".bin")? {
        "test_batch" => Some(5),
        batch => {
            let number: usize = batch.strip_prefix("data_batch_")?.parse().ok()?;
            (1..=5).contains(&number).then(|| number - 1)
        }
    }
}

fn dataset(records: &[u8], file: &Path) -> Result<Dataset> {
    let n = records.len() / RECORD;
    let labels: Vec<i32> = records.iter().step_by(RECORD).map(|&label| i32::from(label)).collect();
    let mut pixels = Vec::with_capacity(n * IMAGE);
    records.chunks_exact(RECORD).for_each(|record| pixels.extend_from_slice(&record[1..]));
    let image = Literal::from_bytes(Type::new(DType::U8, [n, 3, 32, 32]), pixels).expect("whole records");
    let set = Dataset::new([("image", image), ("label", Literal::from_i32([n], &labels))])?;
    let set = set.from_file(file).with_class_names(CLASSES);
    set.check_labels("label", CLASSES.len())?;
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::damage;

    fn archive(labels: &[u8; 6], extra: usize) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (i, &label) in labels.iter().enumerate() {
            let name = if i == 5 { "test_batch.bin".into() } else { format!("data_batch_{}.bin", i + 1) };
            let mut record = vec![label];
            record.extend((0..IMAGE + extra).map(|k| (k % 251) as u8));
            let mut header = tar::Header::new_gnu();
            header.set_size(record.len() as u64);
            builder.append_data(&mut header, format!("cifar-10-batches-bin/{name}"), &record[..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn try_decode(bytes: &[u8]) -> Result<Split> {
        decode(bytes, Path::new("cifar.tar"))
    }

    #[test]
    fn records_become_images_and_labels() {
        let split = try_decode(&archive(&[0, 1, 2, 3, 4, 9], 0)).unwrap();
        assert_eq!(split.train.column("label").unwrap().to_i64(), [0, 1, 2, 3, 4]);
        assert_eq!(split.test.column("image").unwrap().ty().to_string(), "u8[1,3,32,32]");
        assert_eq!(split.test.column("image").unwrap().bytes()[..3], [0, 1, 2]);
        assert_eq!(split.test.class_names().unwrap()[9], "truck");
    }

    #[test]
    fn wrong_labels_broken_records_and_missing_parts_are_refused() {
        let e = try_decode(&archive(&[0, 1, 10, 3, 4, 5], 0)).unwrap_err().to_string();
        assert!(e.contains("sample 2 has label 10") && e.contains("cifar.tar"), "{e}");
        let e = try_decode(&archive(&[0; 6], 1)).unwrap_err().to_string();
        assert!(e.contains("3074 bytes") && e.contains("data_batch_1.bin"), "{e}");
        let e = try_decode(&tar::Builder::new(Vec::new()).into_inner().unwrap()).unwrap_err().to_string();
        assert!(e.contains("no data_batch_1.bin"), "{e}");
    }

    #[test]
    fn damage_never_panics() {
        let good = archive(&[0; 6], 0);
        for end in (0..good.len()).step_by(97) {
            try_decode(&good[..end]).ok();
        }
        damage::never_panics(&good[..512], |b| {
            try_decode(b).ok();
            true
        });
    }
}
