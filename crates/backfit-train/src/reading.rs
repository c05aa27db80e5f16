//! What every reader of untrusted files needs: opening, unpacking, and reads that never trust a size.

use backfit_ir::{Error, Problem, Result, Shape};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// What may be reserved on the word of a header before any of the data has been seen.
const RESERVE_UNSEEN: usize = 1 << 20;

/// Opens a file for reading.
pub(crate) fn open(file: &Path) -> Result<BufReader<File>> {
    let opened = File::open(file).map_err(|e| io_error(file, "cannot open the file", &e))?;
    Ok(BufReader::with_capacity(1 << 16, opened))
}

/// An error of the operating system, in terms of what was attempted.
pub(crate) fn io_error(file: &Path, attempt: &str, cause: &io::Error) -> Error {
    Problem::new(attempt).in_file(file).because(cause.to_string()).into()
}

/// The content: unpacked where it begins with gzip's magic bytes, as it is elsewhere.
pub(crate) fn unpacked<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let packed = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if packed { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) })
}

/// Reads exactly `expected` bytes. Memory grows with what is read, not with what was claimed.
pub(crate) fn read_exactly(reader: &mut dyn Read, expected: usize, what: &str, file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(expected.min(RESERVE_UNSEEN));
    let outcome = reader.take(expected as u64).read_to_end(&mut bytes);
    if bytes.len() == expected && outcome.is_ok() {
        return Ok(bytes);
    }
    let found = bytes.len();
    let mut problem = Problem::new(format!("expected {expected} bytes of {what}, found {found}")).in_file(file);
    problem = match outcome {
        Err(e) if e.kind() != ErrorKind::UnexpectedEof => problem.because(e.to_string()),
        _ => problem.because("the file ends early"),
    };
    Err(problem.help("the file is incomplete or damaged; fetch or write it again").into())
}

/// Refuses content after the end that the header declares.
pub(crate) fn expect_end(reader: &mut dyn Read, after: &str, file: &Path) -> Result<()> {
    let mut one = [0];
    match reader.read(&mut one) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Problem::new(format!("there is more data after {after}"))
            .in_file(file)
            .because("the header declares less than the file holds")
            .help("the file is damaged; fetch or write it again")
            .into()),
        Err(e) => Err(io_error(file, &format!("cannot read what follows {after}"), &e)),
    }
}

/// The number of bytes that a shape from a file takes, refused where no machine could hold it.
pub(crate) fn checked_bytes(shape: &Shape, width: usize, file: &Path) -> Result<usize> {
    let bytes = shape.checked_elements().and_then(|n| n.checked_mul(width));
    bytes.filter(|&n| n <= isize::MAX as usize).ok_or_else(|| {
        Problem::new(format!("the shape {shape} is larger than any memory"))
            .in_file(file)
            .help("the file is damaged; fetch or write it again")
            .into()
    })
}

/// Checks for a reader that no damage makes it panic.
#[cfg(test)]
pub(crate) mod damage {
    use crate::data::order::Draws;

    /// Hands `read` every truncation of `good`, 2000 copies with damaged bytes, and pure noise.
    /// `read` says whether it took the bytes for valid.
    pub(crate) fn never_panics(good: &[u8], mut read: impl FnMut(&[u8]) -> bool) {
        assert!(read(good), "the undamaged file must be readable");
        for end in 0..good.len() {
            read(&good[..end]);
        }
        let draws = Draws::new(1, good.len() as u64);
        for round in 0..2000u64 {
            let mut bytes = good.to_vec();
            for k in 0..1 + round % 4 {
                let at = draws.below(round * 8 + k * 2, bytes.len());
                bytes[at] = draws.bits(round * 8 + k * 2 + 1) as u8;
            }
            read(&bytes);
        }
        for n in 0..200 {
            let noise: Vec<u8> = (0..n).map(|i| draws.bits(1 << 40 | i) as u8).collect();
            read(&noise);
        }
    }

    /// Hands `read` every truncation of `good` and expects each to be refused.
    pub(crate) fn refuses_truncation(good: &[u8], mut read: impl FnMut(&[u8]) -> bool) {
        for end in 0..good.len() {
            assert!(!read(&good[..end]), "cut to {end} of {} bytes, still accepted", good.len());
        }
    }
}
