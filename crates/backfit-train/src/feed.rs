//! From a batch into the inputs of a compiled function.

use crate::compile::Entry;
use crate::data::Batch;
use crate::masking::VALID;
use crate::scalar;
use backfit_compile::target::{Executable, Port};
use backfit_ir::{DType, Error, Problem, Result, Role, Type};

/// Where the inputs and results of one step lie: in those of a function that takes one step, or of one that takes several.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The function.
    pub function: usize,
    /// Which of the steps.
    pub part: usize,
    /// How many there are.
    pub parts: usize,
}

impl Place {
    /// The inputs of a function that takes one batch.
    pub fn of(entry: &Entry) -> Self {
        Place { function: entry.number, part: 0, parts: 1 }
    }

    /// The bytes of an input.
    pub fn input(self, executable: &mut dyn Executable, number: usize) -> &mut [u8] {
        let all = executable.input(self.function, number);
        let one = all.len() / self.parts;
        &mut all[self.part * one..(self.part + 1) * one]
    }

    /// The bytes of a result.
    pub fn output(self, executable: &dyn Executable, number: usize) -> &[u8] {
        let all = executable.output(self.function, number);
        let one = all.len() / self.parts;
        &all[self.part * one..(self.part + 1) * one]
    }
}

/// Feeds every input that a function has from the column of its name. Rows beyond the samples repeat the samples in turn.
///
/// # Errors
/// Every input without a column, or with one of another type; nothing is fed then.
pub(crate) fn feed(executable: &mut dyn Executable, place: Place, entry: &Entry, batch: &Batch) -> Result<()> {
    check(entry, batch)?;
    for (number, port) in entry.inputs.iter().enumerate().filter(|(_, p)| p.role == Role::Input) {
        let input = place.input(executable, number);
        if port.name == VALID {
            write_mask(port.ty.dtype, input, batch.samples());
        } else {
            let (ty, bytes) = batch.column(&port.name)?;
            copy_rows(input, bytes, rows(ty), batch.samples());
        }
    }
    Ok(())
}

fn rows(ty: &Type) -> usize {
    ty.shape.first().copied().unwrap_or(1)
}

fn copy_rows(input: &mut [u8], bytes: &[u8], rows: usize, samples: usize) {
    let real = bytes.len() / rows.max(1) * samples.min(rows);
    if real == 0 {
        return;
    }
    for part in input.chunks_mut(real) {
        part.copy_from_slice(&bytes[..part.len()]);
    }
}

fn write_mask(dtype: DType, input: &mut [u8], samples: usize) {
    for (row, element) in input.chunks_exact_mut(dtype.bytes(1).max(1)).enumerate() {
        scalar::write(dtype, element, f64::from(u8::from(row < samples)));
    }
}

/// Compares the columns of a batch with what a function takes.
///
/// # Errors
/// As for [`feed`].
pub(crate) fn check(entry: &Entry, batch: &Batch) -> Result<()> {
    let fed = || entry.inputs.iter().filter(|p| p.role == Role::Input);
    let problems: Vec<Problem> = fed().filter_map(|port| flaw(port, batch)).collect();
    let Some(error) = Error::from_problems(problems) else { return Ok(()) };
    let wanted: Vec<String> = fed().map(|p| format!("{}: {}", p.name, p.ty)).collect();
    let given: Vec<String> = batch.columns().map(|(name, ty, _)| format!("{name}: {ty}")).collect();
    Err(error
        .because(format!("the model takes {}", wanted.join(", ")))
        .because(format!("the batch has {}", given.join(", "))))
}

fn flaw(port: &Port, batch: &Batch) -> Option<Problem> {
    let Port { name, ty, .. } = port;
    if name == VALID {
        let mask = ty.shape.rank() == 1 && !ty.dtype.is_packed();
        let problem = || Problem::new(format!("the model takes '{VALID}: {ty}'"));
        return (!mask).then(|| problem().help("it is the mask of a batch: one number per row"));
    }
    match batch.columns().find(|(n, _, _)| n == name) {
        None => {
            let problem = Problem::new(format!("the model takes '{name}: {ty}', the batch has no column of this name"));
            Some(problem.help("rename the column, or the input of the model"))
        }
        Some((_, found, _)) if found != ty => {
            let problem = Problem::new(format!("the model takes '{name}: {ty}', the batch has '{name}: {found}'"));
            Some(problem.help(advice(name, ty, found)))
        }
        Some(_) => None,
    }
}

/// How a column comes to have another type.
fn advice(name: &str, wanted: &Type, found: &Type) -> String {
    match (wanted.dtype, found.dtype) {
        (DType::F32, DType::U8) => format!("convert the data first: `to_unit(\"{name}\")` or `to_f32(\"{name}\")`"),
        (DType::F32, other) if other != DType::F32 => format!("convert the data first: `to_f32(\"{name}\")`"),
        (DType::I32, other) if other.is_integer() && other != DType::I32 => {
            format!("convert the data first: `to_i32(\"{name}\")`")
        }
        (a, b) if a != b => format!("declare the input with dtype {b}, or convert the data first"),
        _ if rows(wanted) != rows(found) => format!("make batches of {} rows", rows(wanted)),
        _ => {
            let dims = wanted.shape.get(1..).unwrap_or_default();
            format!("give every sample the shape {dims:?}, as with `reshape(\"{name}\", &{dims:?})`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_rows_repeat_the_samples_in_turn() {
        let mut input = [0; 10];
        copy_rows(&mut input, &[1, 2, 3, 4, 9, 9, 9, 9, 9, 9], 5, 2);
        assert_eq!(input, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
        copy_rows(&mut input, &[7; 10], 5, 0);
        copy_rows(&mut [], &[], 5, 5);
    }

    #[test]
    fn masks_are_written_in_any_dtype() {
        let mut bytes = [9; 3];
        write_mask(DType::Bool, &mut bytes, 2);
        assert_eq!(bytes, [1, 1, 0]);
        let mut floats = [9; 8];
        write_mask(DType::F32, &mut floats, 1);
        assert_eq!(floats, [0, 0, 128, 63, 0, 0, 0, 0]);
    }
}
