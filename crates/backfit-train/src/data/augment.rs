//! Images that look different every time they are seen.

use super::order::Draws;
use backfit_ir::{DType, Problem, Result, Type};

/// Random changes to the images of one column, f32 `[channels, height, width]`: what a sample becomes in an epoch is a
/// pure function of (seed, epoch, sample), so a resumed run sees what an uninterrupted one would.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::{Augment, Dataset};
/// let set = Dataset::new([("image", Literal::from_f32([1, 1, 1, 2], &[1.0, 2.0]))])?;
/// let batches = set.batches(1).epochs(20).augment(Augment::new("image").mirror());
/// let seen: Vec<_> = batches.map(|b| b?.literal("image")).collect::<Result<_, _>>()?;
/// assert!(seen.iter().any(|image| image.to_f32() == [1.0, 2.0]));
/// assert!(seen.iter().any(|image| image.to_f32() == [2.0, 1.0]));
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Augment {
    column: String,
    mirror: bool,
    shift: usize,
}

/// Keeps these draws apart from those of orders and splits, whose streams are epochs.
const STREAM: u64 = 1 << 62;

impl Augment {
    /// No change yet, of this column.
    pub fn new(column: &str) -> Self {
        Augment { column: column.to_owned(), mirror: false, shift: 0 }
    }

    /// Left and right change places in half of the cases.
    pub fn mirror(self) -> Self {
        Augment { mirror: true, ..self }
    }

    /// The image is moved by up to so many pixels up or down and left or right; what comes in from outside is 0.
    /// The same as a random crop of the image with so many zeros around it.
    pub fn shift(self, pixels: usize) -> Self {
        Augment { shift: pixels, ..self }
    }

    /// The column's name.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// What distinguishes it from others.
    pub(super) fn identity(&self) -> String {
        format!("augment={}:mirror={}:shift={}", self.column, self.mirror, self.shift)
    }

    /// Refuses samples that are no f32 images.
    pub(super) fn check(&self, columns: &[(String, Type)]) -> Result<()> {
        let Some((_, ty)) = columns.iter().find(|(name, _)| *name == self.column) else {
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
            let problem = Problem::new(format!("there is no column '{}' to augment", self.column));
            return Err(problem.help(format!("the columns are: {}", names.join(", "))).into());
        };
        if ty.dtype == DType::F32 && ty.shape.rank() == 3 {
            return Ok(());
        }
        let what = format!("column '{}' is {ty}; only images f32[channels, height, width] are augmented", self.column);
        Err(Problem::new(what).help("normalise it first, as with `to_unit`").into())
    }

    /// Writes the changed image into `out`; `image` is a sample of type `ty`, and `seed`, `epoch` and `sample` say which.
    pub(super) fn apply(&self, ty: &Type, image: &[u8], out: &mut [u8], [seed, epoch, sample]: [u64; 3]) {
        let &[channels, height, width] = ty.shape.dims() else { return };
        let draws = Draws::new(seed ^ STREAM, epoch);
        let draw = |n: u64, below: usize| draws.below(sample * 3 + n, below);
        let mirrored = self.mirror && draw(0, 2) == 1;
        let offset = |n| draw(n, 2 * self.shift + 1) as isize - self.shift as isize;
        let (down, right) = (offset(1), offset(2));
        let pixel = dtype_bytes(ty);
        for (row, line) in out.chunks_exact_mut(width * pixel).enumerate().take(channels * height) {
            let from = (row % height) as isize + down;
            let inside = (0..height as isize).contains(&from);
            let start = (row - row % height) as isize + from;
            for (x, value) in line.chunks_exact_mut(pixel).enumerate() {
                let x = if mirrored { width - 1 - x } else { x } as isize + right;
                if inside && (0..width as isize).contains(&x) {
                    let at = (start as usize * width + x as usize) * pixel;
                    value.copy_from_slice(&image[at..at + pixel]);
                } else {
                    value.fill(0);
                }
            }
        }
    }
}

fn dtype_bytes(ty: &Type) -> usize {
    ty.dtype.bytes(1)
}

#[cfg(test)]
mod tests {
    use super::super::{Batches, Dataset, Position};
    use super::*;
    use backfit_ir::Literal;

    const SIDE: usize = 5;

    /// Two channels; a pixel's value tells where it is from: 100·channel + 10·row + column + 1.
    fn images(samples: usize) -> Dataset {
        let place = |i: usize| {
            let (c, y, x) = (i / (SIDE * SIDE) % 2, i / SIDE % SIDE, i % SIDE);
            (100 * c + 10 * y + x + 1) as f32
        };
        let values: Vec<f32> = (0..samples * 2 * SIDE * SIDE).map(place).collect();
        let label: Vec<i32> = (0..samples as i32).collect();
        let columns = [
            ("image", Literal::from_f32([samples, 2, SIDE, SIDE], &values)),
            ("label", Literal::from_i32([samples], &label)),
        ];
        Dataset::new(columns).unwrap()
    }

    /// The shift and mirroring that explain an image; panics where none does.
    fn explained(image: &[f32]) -> (bool, isize, isize) {
        let side = SIDE as isize;
        let at = |mirrored: bool, down: isize, right: isize, i: isize| {
            let (c, y, x) = (i / (side * side), i / side % side, i % side);
            let (y, x) = (y + down, (if mirrored { side - 1 - x } else { x }) + right);
            let inside = (0..side).contains(&y) && (0..side).contains(&x);
            if inside { (100 * c + 10 * y + x + 1) as f32 } else { 0.0 }
        };
        let all = [false, true].into_iter().flat_map(|m| (-2..=2).flat_map(move |d| (-2..=2).map(move |r| (m, d, r))));
        let fits =
            |&(m, d, r): &(bool, isize, isize)| image.iter().enumerate().all(|(i, v)| at(m, d, r, i as isize) == *v);
        all.into_iter().find(fits).expect("a shifted, perhaps mirrored image")
    }

    fn augmented(set: &Dataset) -> Batches<Dataset> {
        set.batches(4).epochs(40).seed(3).augment(Augment::new("image").mirror().shift(2))
    }

    #[test]
    fn images_are_shifted_and_mirrored_in_all_ways_and_nothing_else_happens() {
        let mut ways = std::collections::BTreeSet::new();
        for batch in augmented(&images(10)) {
            let batch = batch.unwrap();
            for image in batch.literal("image").unwrap().to_f32().chunks(2 * SIDE * SIDE) {
                ways.insert(explained(image));
            }
        }
        assert_eq!(ways.len(), 2 * 5 * 5);
    }

    #[test]
    fn an_image_depends_on_seed_epoch_and_sample_alone() {
        let set = images(10);
        let whole: Vec<_> = augmented(&set).map(Result::unwrap).collect();
        let resumed = augmented(&set).resume(Position { epoch: 17, batch: 1 });
        let resumed: Vec<_> = resumed.map(Result::unwrap).collect();
        assert_eq!(whole[17 * 3 + 1..], resumed[..]);
        // Another batch size: the same images in another order.
        let of_epoch = |batches: Batches<Dataset>| {
            let mut all = Vec::new();
            for batch in batches.epochs(1).map(Result::unwrap) {
                let (images, labels) = (batch.literal("image").unwrap().to_f32(), batch.literal("label").unwrap());
                let rows = images.chunks(2 * SIDE * SIDE).zip(labels.to_i64()).take(batch.samples());
                all.extend(rows.map(|(image, label)| (label, image.iter().map(|v| *v as i64).collect::<Vec<_>>())));
            }
            all.sort();
            all
        };
        let single = set.batches(1).seed(3).augment(Augment::new("image").mirror().shift(2));
        assert_eq!(of_epoch(augmented(&set)), of_epoch(single));
    }

    #[test]
    fn columns_that_are_no_images_are_refused() {
        for column in ["label", "picture"] {
            let error = images(2).batches(1).augment(Augment::new(column).mirror()).next().unwrap().unwrap_err();
            assert!(error.to_string().contains(column), "{error}");
        }
    }

    #[test]
    fn batches_with_other_changes_are_other_data() {
        let set = images(4);
        let plain = set.batches(2).identity();
        let mirrored = set.batches(2).augment(Augment::new("image").mirror()).identity();
        let shifted = set.batches(2).augment(Augment::new("image").shift(1)).identity();
        assert!(plain != mirrored && mirrored != shifted && shifted != plain);
    }
}
