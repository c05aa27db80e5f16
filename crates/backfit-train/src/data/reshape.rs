//! Samples in another shape.

use super::dataset::Dataset;
use backfit_ir::{Literal, Problem, Result, Shape};

impl Dataset {
    /// The column with samples of another shape and the same elements, in row-major order.
    ///
    /// ```
    /// let digits = backfit_train::data::bundled::digits()?.reshape("image", &[784])?;
    /// assert_eq!(digits.column("image")?.ty().to_string(), "u8[10000,784]");
    /// # Ok::<(), backfit_ir::Error>(())
    /// ```
    ///
    /// # Errors
    /// No such column, or another number of elements.
    pub fn reshape(&self, column: &str, sample: &[usize]) -> Result<Self> {
        let values = self.column(column)?;
        let shape = Shape::from([&[self.len()], sample].concat());
        let ty = values.ty().with_shape(shape);
        match Literal::from_bytes(ty.clone(), values.bytes()) {
            Some(reshaped) => self.clone().with_column(column, reshaped),
            None => Err(Problem::new(format!("column '{column}' is {}, which is not as large as {ty}", values.ty()))
                .help("the new shape must have as many elements per sample")
                .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_elements_is_refused_with_both_types() {
        let set = Dataset::new([("x", Literal::from_f32([2, 3], &[0.0; 6]))]).unwrap();
        assert_eq!(set.reshape("x", &[1, 3]).unwrap().column("x").unwrap().ty().to_string(), "f32[2,1,3]");
        let e = set.reshape("x", &[4]).unwrap_err().to_string();
        assert!(e.contains("f32[2,3]") && e.contains("f32[2,4]"), "{e}");
        assert!(set.reshape("x", &[usize::MAX, 8]).is_err());
    }
}
