//! The data sets inside this crate. Their origin and licences are in `data/README.md`.

use super::csv::Table;
use super::dataset::{Dataset, Split};
use super::idx;
use super::normalize::Normalizer;
use backfit_ir::{Literal, Result};
use std::f32::consts::PI;
use std::path::Path;

/// How many of the digits are held back: the last of the order they come in.
const DIGITS_HELD_BACK: usize = 2_000;

/// Flowers of one species; they come species by species.
const FLOWERS_OF_SPECIES: usize = 50;

const SINE_POINTS: usize = 100;

/// 10,000 handwritten digits: `image: u8[10000,1,28,28]`, `label: i32[10000]`, the classes mixed.
/// They are of the training part of MNIST, so MNIST's own test images may judge what is learnt from them.
///
/// ```
/// let digits = backfit_train::data::bundled::digits()?;
/// assert_eq!(digits.column("image")?.ty().to_string(), "u8[10000,1,28,28]");
/// # Ok::<(), backfit_ir::Error>(())
/// ```
///
/// # Errors
/// None, unless the crate was built from damaged files.
pub fn digits() -> Result<Dataset> {
    let images = Path::new("bundled digits/images.idx3.gz");
    let labels = Path::new("bundled digits/labels.idx1.gz");
    let set = idx::pair(
        (idx::decode(&include_bytes!("../../data/digits/images.idx3.gz")[..], images)?, images),
        (idx::decode(&include_bytes!("../../data/digits/labels.idx1.gz")[..], labels)?, labels),
    )?;
    Ok(set.with_class_names((0..10).map(|digit| digit.to_string())))
}

/// [`digits`] in two parts: 8,000 to learn from and the last 2,000 held back.
///
/// # Errors
/// As for [`digits`].
pub fn digits_split() -> Result<Split> {
    let all = digits()?;
    let train = all.len() - DIGITS_HELD_BACK;
    Ok(Split { train: all.range(0..train), test: all.range(train..all.len()) })
}

/// 150 iris flowers: `features: f32[150,4]` in centimetres (length and width of sepal and petal),
/// `label: i32[150]`, 50 of each species.
///
/// # Errors
/// None, unless the crate was built from damaged files.
pub fn iris() -> Result<Dataset> {
    let table = Table { label: Some("species".into()), ..Table::default() };
    table.decode(&include_bytes!("../../data/iris/iris.csv")[..], Path::new("bundled iris/iris.csv"))
}

/// [`iris`] in two parts: held back is every flower whose index within its species is divisible by
/// five, 30 of 150. Both parts are normalised with mean and deviation of the training part.
///
/// # Errors
/// As for [`iris`].
pub fn iris_split() -> Result<Split> {
    let all = iris()?;
    let held_back = |i: &usize| (i % FLOWERS_OF_SPECIES).is_multiple_of(5);
    let (test, train): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(held_back);
    let train = all.select(&train)?;
    let normalizer = Normalizer::fit(&train, "features")?;
    Ok(Split { test: normalizer.apply(&all.select(&test)?)?, train: normalizer.apply(&train)? })
}

/// A cubic to be fitted to the sine: 100 points x, evenly from −π to π, as `features: f32[100,3]` of
/// (x, x², x³) and `target: f32[100,1]` of sin x. The constant term is the bias of the model.
///
/// # Errors
/// None.
pub fn sine() -> Result<Dataset> {
    let features: Vec<f32> = sine_points().flat_map(|(powers, _)| powers).collect();
    let target: Vec<f32> = sine_points().map(|(_, sine)| sine).collect();
    Dataset::new([
        ("features", Literal::from_f32([SINE_POINTS, 3], &features)),
        ("target", Literal::from_f32([SINE_POINTS, 1], &target)),
    ])
}

/// The best that any training on [`sine`] can reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SineOptimum {
    /// Of 1, x, x² and x³.
    pub coefficients: [f64; 4],
    /// The sum of the squared errors over the 100 points.
    pub loss: f64,
}

/// The least-squares cubic of [`sine`], from the normal equations of its f32 values in f64.
///
/// ```
/// let best = backfit_train::data::bundled::sine_closed_form();
/// assert!((best.loss - 0.475_587_90).abs() < 1e-8);
/// ```
pub fn sine_closed_form() -> SineOptimum {
    let rows = || sine_points().map(|([x, x2, x3], sine)| ([1.0, x.into(), x2.into(), x3.into()], f64::from(sine)));
    let mut system = [[0.0; 5]; 4];
    for (row, sine) in rows() {
        for i in 0..4 {
            for j in 0..4 {
                system[i][j] += row[i] * row[j];
            }
            system[i][4] += row[i] * sine;
        }
    }
    let coefficients = solve(system);
    let value = |row: [f64; 4]| row.iter().zip(coefficients).map(|(v, c)| v * c).sum::<f64>();
    SineOptimum { coefficients, loss: rows().map(|(row, sine)| (value(row) - sine).powi(2)).sum() }
}

/// Powers of x, and the sine.
fn sine_points() -> impl Iterator<Item = ([f32; 3], f32)> {
    (0..SINE_POINTS).map(|i| {
        let x = 2.0 * PI * i as f32 / (SINE_POINTS - 1) as f32 - PI;
        ([x, x * x, x * x * x], f64::from(x).sin() as f32)
    })
}

/// Gauss–Jordan elimination of a positive definite system, which needs no pivoting.
fn solve(mut system: [[f64; 5]; 4]) -> [f64; 4] {
    for k in 0..4 {
        let pivot = system[k].map(|v| v / system[k][k]);
        for (i, row) in system.iter_mut().enumerate() {
            let factor = row[k];
            for (v, p) in row.iter_mut().zip(pivot) {
                *v = if i == k { p } else { *v - factor * p };
            }
        }
    }
    system.map(|row| row[4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_ten_thousand_of_mixed_classes() {
        let digits = digits().unwrap();
        digits.check_labels("label", 10).unwrap();
        let labels = digits.column("label").unwrap().to_i64();
        let of_class = [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978];
        for (class, n) in of_class.into_iter().enumerate() {
            assert_eq!(labels.iter().filter(|&&l| l == class as i64).count(), n, "class {class}");
            let held_back = labels[8000..].iter().filter(|&&l| l == class as i64).count();
            assert!((150..260).contains(&held_back), "{held_back} of class {class} held back");
        }
        let ink = digits.column("image").unwrap().bytes().iter().filter(|&&b| b > 127).count();
        assert_eq!(ink, 1_039_729);
    }

    #[test]
    fn digits_hold_back_the_last_two_thousand() {
        let (all, split) = (digits().unwrap(), digits_split().unwrap());
        assert_eq!((split.train.len(), split.test.len()), (8000, 2000));
        assert_eq!(split.test, all.range(8000..10_000));
    }

    #[test]
    fn iris_holds_back_ten_flowers_of_each_species() {
        let all = iris().unwrap();
        assert_eq!(all.class_names().unwrap(), ["setosa", "versicolor", "virginica"]);
        assert_eq!(all.column("features").unwrap().to_f32()[..4], [5.1, 3.5, 1.4, 0.2]);
        let split = iris_split().unwrap();
        assert_eq!((split.train.len(), split.test.len()), (120, 30));
        let expected: Vec<i64> = (0..30).map(|i| i / 10).collect();
        assert_eq!(split.test.column("label").unwrap().to_i64(), expected);
    }

    #[test]
    fn iris_is_normalised_by_its_training_part_alone() {
        let split = iris_split().unwrap();
        let of_train = Normalizer::fit(&split.train, "features").unwrap();
        assert!(of_train.mean().iter().all(|m| m.abs() < 1e-6));
        assert!(of_train.deviation().iter().all(|d| (d - 1.0).abs() < 1e-6));
        let of_test = Normalizer::fit(&split.test, "features").unwrap();
        assert!(of_test.mean().iter().any(|m| m.abs() > 1e-3));
    }

    #[test]
    fn the_best_cubic_is_the_published_one() {
        let best = sine_closed_form();
        let published = [0.0, 0.852_213_82, 0.0, -0.092_267_13];
        for (found, expected) in best.coefficients.iter().zip(published) {
            assert!((found - expected).abs() < 1e-8, "{best:?}");
        }
        assert!((best.loss - 0.475_587_90).abs() < 1e-8, "{best:?}");
    }

    #[test]
    fn sine_points_lie_evenly_from_minus_pi_to_pi() {
        let set = sine().unwrap();
        let features = set.column("features").unwrap().to_f32();
        assert_eq!((features[0], features[297]), (-PI, PI));
        assert_eq!(set.column("target").unwrap().ty().to_string(), "f32[100,1]");
    }
}
