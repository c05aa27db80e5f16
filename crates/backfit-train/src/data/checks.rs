//! What is worth knowing about data before a run starts.

use super::dataset::Dataset;
use backfit_ir::{DType, Literal, Problem, Result};

/// How many problems are told before the rest is only counted.
const TOLD: usize = 5;

/// Checks.
impl Dataset {
    /// Refuses labels outside `0..classes`.
    ///
    /// # Errors
    /// No such column, a float column, or labels out of range: the error names the file, the first
    /// samples concerned and their labels.
    pub fn check_labels(&self, column: &str, classes: usize) -> Result<()> {
        let labels = self.column(column)?;
        if labels.ty().dtype.is_float() {
            let what = format!("column '{column}' is {}, but labels are integers", labels.ty());
            return Err(self.problem(column, what).into());
        }
        let values = labels.to_i64();
        let wrong = |&(_, &label): &(usize, &i64)| label < 0 || label as u64 >= classes as u64;
        let wrong: Vec<_> = values.iter().enumerate().filter(wrong).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let per_sample = values.len() / self.len().max(1);
        let told: Vec<String> = wrong
            .iter()
            .take(TOLD)
            .map(|(i, label)| format!("sample {} has label {label}", i / per_sample.max(1)))
            .collect();
        let more = wrong.len() - told.len();
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let what = format!("labels out of range in column '{column}': {}{more}", told.join(", "));
        let problem = self.problem(column, what);
        let problem = problem.because(format!("with {classes} classes, labels are 0..{classes}"));
        Err(problem.help("correct the data, or raise the number of classes of the model").into())
    }

    /// Refuses NaN and infinity in float columns.
    ///
    /// # Errors
    /// Names, for each such column, the file, the first sample concerned and the place in it.
    pub fn check_finite(&self) -> Result<()> {
        let mut problems = Vec::new();
        for (name, values) in self.columns() {
            let Some(i) = first_not_finite(values) else { continue };
            let per_sample = values.ty().shape[1..].iter().product::<usize>().max(1);
            let (sample, element) = (i / per_sample, i % per_sample);
            let what = format!("column '{name}' is not finite in sample {sample}, element {element}");
            let help = "remove the sample, or replace the value before training";
            problems.push(self.problem(name, what).help(help));
        }
        backfit_ir::Error::from_problems(problems).map_or(Ok(()), Err)
    }

    /// Refuses an empty set, a batch of zero samples, and a batch larger than the set.
    ///
    /// # Errors
    /// Says which, with the numbers.
    pub fn check_batch(&self, size: usize) -> Result<()> {
        let samples = self.len();
        let (what, help) = if samples == 0 {
            ("the data set is empty".to_string(), "check the path and the filter of the data".to_string())
        } else if size == 0 {
            ("a batch of 0 samples".to_string(), "give a batch size of at least 1".to_string())
        } else if size > samples {
            let what = format!("a batch of {size} samples, but there are only {samples}");
            (what, format!("give a batch size of at most {samples}"))
        } else {
            return Ok(());
        };
        let first = self.columns().next().map_or("", |(name, _)| name);
        Err(self.problem(first, what).help(help).into())
    }

    /// A problem in a column, placed in its file where that is known.
    fn problem(&self, column: &str, what: String) -> Problem {
        match self.file(column) {
            Some(file) => Problem::new(what).in_file(file),
            None => Problem::new(what),
        }
    }
}

/// The first element that is NaN or infinite: its exponent, which the top 16 bits hold in every
/// float dtype, is all ones.
fn first_not_finite(values: &Literal) -> Option<usize> {
    let dtype = values.ty().dtype;
    let exponent: u16 = match dtype {
        DType::F64 => 0x7FF0,
        DType::F32 | DType::BF16 => 0x7F80,
        DType::F16 => 0x7C00,
        _ => return None,
    };
    let width = dtype.bits() / 8;
    values.bytes().chunks_exact(width).position(|element| {
        let top = u16::from_le_bytes([element[width - 2], element[width - 1]]);
        top & exponent == exponent
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::Type;

    fn labels(values: &[i32]) -> Dataset {
        let set = Dataset::new([("label", Literal::from_i32([values.len()], values))]).unwrap();
        set.from_file("flowers.csv")
    }

    #[test]
    fn labels_out_of_range_are_named_with_sample_value_and_file() {
        assert!(labels(&[0, 2, 1]).check_labels("label", 3).is_ok());
        let e = labels(&[0, 3, -1]).check_labels("label", 3).unwrap_err().to_string();
        for part in ["flowers.csv", "sample 1 has label 3", "sample 2 has label -1", "0..3"] {
            assert!(e.contains(part), "{part} missing in: {e}");
        }
    }

    #[test]
    fn many_wrong_labels_are_counted() {
        let e = labels(&[9; 100]).check_labels("label", 3).unwrap_err().to_string();
        assert!(e.contains("and 95 more"), "{e}");
    }

    #[test]
    fn a_value_that_is_not_finite_is_found_in_every_float_dtype() {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let ty = Type::new(dtype, [2, 3]);
                let good = Literal::from_f64(ty.clone(), &[0., -1., 2., 3e4, 1e-8, 5.]);
                assert!(Dataset::new([("x", good)]).unwrap().check_finite().is_ok());
                let values = Literal::from_f64(ty, &[0., 1., 2., 3., bad, 5.]);
                let set = Dataset::new([("x", values)]).unwrap().from_file("a.npz");
                let e = set.check_finite().unwrap_err().to_string();
                assert!(e.contains("'x'") && e.contains("sample 1, element 1") && e.contains("a.npz"), "{e}");
            }
        }
    }

    #[test]
    fn integer_columns_are_always_finite() {
        assert!(labels(&[-1, i32::MAX]).check_finite().is_ok());
    }

    #[test]
    fn batches_that_cannot_be_are_refused_with_the_numbers() {
        let set = labels(&[0; 30]);
        assert!(set.check_batch(30).is_ok());
        let e = set.check_batch(32).unwrap_err().to_string();
        assert!(e.contains("32") && e.contains("at most 30"), "{e}");
        assert!(set.check_batch(0).is_err());
        assert!(set.take(0).check_batch(1).unwrap_err().to_string().contains("empty"));
    }
}
