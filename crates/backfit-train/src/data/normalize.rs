//! Mean and deviation, taken from the training part and applied to every part.

use super::dataset::Dataset;
use backfit_ir::{DType, Literal, Problem, Result, Shape};

/// Shifts and scales a column to mean 0 and deviation 1 per feature or channel: per index of axis 1,
/// or as a whole where a sample is a scalar.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::{Dataset, Normalizer};
///
/// let train = Dataset::new([("x", Literal::from_f32([2, 2], &[1., 10., 3., 10.]))])?;
/// let by_train = Normalizer::fit(&train, "x")?;
/// assert_eq!(by_train.mean(), [2., 10.]);
/// assert_eq!(by_train.apply(&train)?.column("x")?.to_f32(), [-1., 0., 1., 0.]);
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Normalizer {
    column: String,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Normalizer {
    /// Takes the statistics of a column, in f64. The deviation is that of the population (divided by n);
    /// a feature that never changes gets 1, so that it becomes 0.
    ///
    /// # Errors
    /// No such column, no samples, a dtype other than f32 or u8, or statistics that are not finite.
    pub fn fit(train: &Dataset, column: &str) -> Result<Self> {
        let values = Values::of(train, column)?;
        if train.is_empty() {
            return Err(Problem::new("the mean of no samples").into());
        }
        let (features, inner) = features(values.shape);
        let count = (values.len() / features.max(1)) as f64;
        let mut mean = vec![0.0; features];
        for i in 0..values.len() {
            mean[i / inner % features] += values.get(i);
        }
        mean.iter_mut().for_each(|m| *m /= count);
        let mut variance = vec![0.0; features];
        for i in 0..values.len() {
            let feature = i / inner % features;
            variance[feature] += (values.get(i) - mean[feature]).powi(2);
        }
        let deviation: Vec<f64> = variance.iter().map(|v| (v / count).sqrt()).collect();
        if let Some(i) = deviation.iter().position(|d| !d.is_finite()) {
            let what = format!("feature {i} of column '{column}' has no finite deviation");
            return Err(Problem::new(what).help("check_finite names the value").into());
        }
        let deviation = deviation.into_iter().map(|d| if d > 0.0 { d } else { 1.0 }).collect();
        Ok(Normalizer { column: column.to_string(), mean, deviation })
    }

    /// The same statistics again, as [`Normalizer::mean`] and [`Normalizer::deviation`] have told them.
    ///
    /// # Errors
    /// Not as many means as deviations, a number that is not finite, or a deviation that is not positive.
    pub fn from_statistics(column: &str, mean: &[f64], deviation: &[f64]) -> Result<Self> {
        let sound = mean.iter().all(|m| m.is_finite()) && deviation.iter().all(|d| d.is_finite() && *d > 0.0);
        if mean.len() != deviation.len() || !sound {
            let what = format!("{mean:?} and {deviation:?} are not means and deviations of column '{column}'");
            return Err(Problem::new(what).into());
        }
        Ok(Normalizer { column: column.to_string(), mean: mean.to_vec(), deviation: deviation.to_vec() })
    }

    /// The mean of every feature or channel.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The deviation of every feature or channel; 1 where it does not change.
    pub fn deviation(&self) -> &[f64] {
        &self.deviation
    }

    /// The set with its column normalised, as f32.
    ///
    /// # Errors
    /// No such column, a dtype other than f32 or u8, or another number of features.
    pub fn apply(&self, set: &Dataset) -> Result<Dataset> {
        let values = Values::of(set, &self.column)?;
        let (features, inner) = features(values.shape);
        if features != self.mean.len() {
            let what = format!(
                "column '{}' has {features} features, but the statistics are of {}",
                self.column,
                self.mean.len()
            );
            return Err(Problem::new(what).into());
        }
        let normalised: Vec<f32> = (0..values.len())
            .map(|i| {
                let feature = i / inner % features;
                ((values.get(i) - self.mean[feature]) / self.deviation[feature]) as f32
            })
            .collect();
        let shape = values.shape.clone();
        set.clone().with_column(&self.column, Literal::from_f32(shape, &normalised))
    }
}

/// The number of features and the elements of one of them in one sample.
fn features(shape: &Shape) -> (usize, usize) {
    let features = shape.get(1).copied().unwrap_or(1);
    (features, shape.get(2..).unwrap_or_default().iter().product())
}

/// The elements of an f32 or u8 column, without a converted copy.
struct Values<'a> {
    bytes: &'a [u8],
    wide: bool,
    shape: &'a Shape,
}

impl<'a> Values<'a> {
    fn of(set: &'a Dataset, column: &str) -> Result<Self> {
        let values = set.column(column)?;
        let wide = match values.ty().dtype {
            DType::F32 => true,
            DType::U8 => false,
            _ => {
                let what = format!("column '{column}' is {}, not f32 or u8", values.ty());
                return Err(Problem::new(what).help("convert it with to_f32 first").into());
            }
        };
        Ok(Values { bytes: values.bytes(), wide, shape: &values.ty().shape })
    }

    fn len(&self) -> usize {
        self.bytes.len() / if self.wide { 4 } else { 1 }
    }

    fn get(&self, i: usize) -> f64 {
        if self.wide {
            let b = &self.bytes[i * 4..i * 4 + 4];
            f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        } else {
            f64::from(self.bytes[i])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backfit_ir::Type;

    #[test]
    fn images_are_normalised_per_channel() {
        let bytes: Vec<u8> = vec![0, 2, 10, 10, 4, 2, 10, 10];
        let image = Literal::from_bytes(Type::new(DType::U8, [2, 2, 1, 2]), bytes).unwrap();
        let set = Dataset::new([("image", image)]).unwrap();
        let n = Normalizer::fit(&set, "image").unwrap();
        assert_eq!(n.mean(), [2.0, 10.0]);
        assert_eq!(n.deviation(), [2f64.sqrt(), 1.0]);
        let out = n.apply(&set).unwrap().column("image").unwrap().to_f32();
        assert_eq!(out[..4], [-(2f32.sqrt()), 0.0, 0.0, 0.0]);
    }

    #[test]
    fn scalars_are_one_feature() {
        let set = Dataset::new([("y", Literal::from_f32([2], &[1.0, 3.0]))]).unwrap();
        assert_eq!(Normalizer::fit(&set, "y").unwrap().mean(), [2.0]);
    }

    #[test]
    fn what_has_no_statistics_is_refused() {
        let set = |x| Dataset::new([("x", x)]).unwrap();
        assert!(Normalizer::fit(&set(Literal::from_f32([1], &[f32::NAN])), "x").is_err());
        assert!(Normalizer::fit(&set(Literal::from_f32([0, 3], &[])), "x").is_err());
        assert!(Normalizer::fit(&set(Literal::from_i32([1], &[1])), "x").is_err());
        let of_two = Normalizer::fit(&set(Literal::from_f32([1, 2], &[1., 2.])), "x").unwrap();
        assert!(of_two.apply(&set(Literal::from_f32([1, 3], &[1., 2., 3.]))).is_err());
        // No features at all are no reason to panic.
        let none = set(Literal::from_f32([2, 0], &[]));
        assert!(Normalizer::fit(&none, "x").unwrap().apply(&none).is_ok());
    }

    #[test]
    fn statistics_that_were_told_give_the_same_normalizer() {
        let train = Dataset::new([("x", Literal::from_f32([2, 2], &[1.0, 10.0, 3.0, 10.0]))]).unwrap();
        let by_train = Normalizer::fit(&train, "x").unwrap();
        assert_eq!(Normalizer::from_statistics("x", by_train.mean(), by_train.deviation()).unwrap(), by_train);
        for (mean, deviation) in [(&[0.0][..], &[][..]), (&[0.0], &[0.0]), (&[f64::NAN], &[1.0])] {
            assert!(Normalizer::from_statistics("x", mean, deviation).is_err());
        }
    }
}
