//! Samples in batches of one fixed size.

use super::Augment;
use super::order;
use backfit_ir::{DType, Literal, Problem, Result, Shape, Type};
use std::fmt;
use std::str::FromStr;

/// The name of the mask column that every batch carries.
const VALID: &str = "valid";

/// Where samples come from.
pub trait Source {
    /// Number of samples.
    fn len(&self) -> usize;

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name and type of every column of one sample.
    fn columns(&self) -> Vec<(String, Type)>;

    /// Writes one column of one sample into `out`, which has exactly its size.
    ///
    /// # Panics
    /// May panic where `sample`, `column` or the size of `out` is not one that this source has.
    fn read(&self, sample: usize, column: usize, out: &mut [u8]);
}

/// A place in a run over the data: the next batch is number `batch` of epoch `epoch`, both from zero.
/// Written as `epoch:batch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Epochs completed.
    pub epoch: u64,
    /// Batches of this epoch completed.
    pub batch: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.batch)
    }
}

impl FromStr for Position {
    type Err = backfit_ir::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text
            .split_once(':')
            .and_then(|(epoch, batch)| Some(Position { epoch: epoch.parse().ok()?, batch: batch.parse().ok()? }));
        parsed.ok_or_else(|| {
            Problem::new(format!("'{text}' is not a position in the data"))
                .help("a position is written epoch:batch, as in 3:17")
                .into()
        })
    }
}

/// One batch: every column with `size` rows, and the mask `valid[size]`, 1 for samples and 0 for padding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    columns: Vec<Buffer>,
    samples: usize,
    position: Position,
}

#[derive(Clone, Debug, PartialEq)]
struct Buffer {
    name: String,
    ty: Type,
    bytes: Vec<u8>,
}

impl Batch {
    /// Number of true samples; the rows after them are padding.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Which batch this is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Every column, the mask last: name, type, little-endian bytes.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Type, &[u8])> {
        self.columns.iter().map(|c| (c.name.as_str(), &c.ty, c.bytes.as_slice()))
    }

    /// Type and little-endian bytes of a column.
    ///
    /// # Errors
    /// There is no such column; the error lists those there are.
    pub fn column(&self, name: &str) -> Result<(&Type, &[u8])> {
        let found = self.columns.iter().find(|c| c.name == name);
        found.map(|c| (&c.ty, c.bytes.as_slice())).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            Problem::new(format!("the batch has no column '{name}'"))
                .help(format!("the columns are: {}", names.join(", ")))
                .into()
        })
    }

    /// A copy of a column.
    ///
    /// # Errors
    /// As [`Batch::column`].
    pub fn literal(&self, name: &str) -> Result<Literal> {
        let (ty, bytes) = self.column(name)?;
        Ok(Literal::from_bytes(ty.clone(), bytes).expect("a buffer has the size of its type"))
    }
}

/// Batches over a [`Source`]: an iterator, or [`Batches::next_into`] for a buffer used again and again.
///
/// Each epoch has its own order, a function of (seed, epoch) alone; see [`order`]. The last batch of an
/// epoch is filled up with copies of its first row unless [`Batches::drop_last`] is set.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::Dataset;
///
/// let set = Dataset::new([("x", Literal::from_i32([5], &[10, 11, 12, 13, 14]))])?;
/// let mut batches = set.batches(2).epochs(3).seed(7);
/// let first = batches.next().unwrap()?;
/// assert_eq!(first.literal("x")?.ty().to_string(), "i32[2]");
/// assert_eq!(first.literal("valid")?.to_f32(), [1.0, 1.0]);
///
/// // Stopped and resumed, the rest is the same.
/// let saved = batches.position().to_string();
/// let resumed = set.batches(2).epochs(3).seed(7).resume(saved.parse()?);
/// assert_eq!(batches.collect::<Result<Vec<_>, _>>()?, resumed.collect::<Result<Vec<_>, _>>()?);
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batches<S> {
    source: S,
    size: usize,
    epochs: u64,
    seed: u64,
    shuffled: bool,
    drop_last: bool,
    mask: DType,
    augment: Option<Augment>,
    position: Position,
    plan: Option<Plan>,
    ended: bool,
}

/// What is derived from the settings when the first batch is asked for.
#[derive(Clone, Debug)]
struct Plan {
    layout: Vec<(String, Type)>,
    order: Vec<usize>,
    order_is_of: Option<u64>,
    /// The column that is augmented, its type, and room for one sample of it.
    augmented: Option<(usize, Type, Vec<u8>)>,
}

/// Settings.
impl<S: Source> Batches<S> {
    /// Batches of `size` samples: one epoch, shuffled with seed 0, the last batch padded.
    /// Settings that cannot be are told by the first batch.
    pub fn new(source: S, size: usize) -> Self {
        Batches {
            source,
            size,
            epochs: 1,
            seed: 0,
            shuffled: true,
            drop_last: false,
            mask: DType::F32,
            augment: None,
            position: Position::default(),
            plan: None,
            ended: false,
        }
    }

    /// How often every sample is seen.
    pub fn epochs(self, epochs: u64) -> Self {
        Batches { epochs, ..self }
    }

    /// The seed of the order.
    pub fn seed(self, seed: u64) -> Self {
        Batches { seed, plan: None, ..self }
    }

    /// Takes the samples in the order they have.
    pub fn in_order(self) -> Self {
        Batches { shuffled: false, plan: None, ..self }
    }

    /// Leaves out the samples that do not fill a batch (others in each epoch, where shuffled).
    pub fn drop_last(self) -> Self {
        Batches { drop_last: true, ..self }
    }

    /// The dtype of the mask: f32 unless set, or bool.
    pub fn mask(self, dtype: DType) -> Self {
        Batches { mask: dtype, plan: None, ..self }
    }

    /// Changes images at random; see [`Augment`].
    pub fn augment(self, augment: Augment) -> Self {
        Batches { augment: Some(augment), plan: None, ..self }
    }

    /// Goes on from a position that [`Batches::position`] gave.
    pub fn resume(self, position: Position) -> Self {
        Batches { position, ended: false, ..self }
    }

    /// The place of the next batch.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Batches in one epoch.
    pub fn per_epoch(&self) -> u64 {
        let size = self.size.max(1);
        let batches = if self.drop_last { self.source.len() / size } else { self.source.len().div_ceil(size) };
        batches as u64
    }

    /// Everything the order depends on. Two runs may exchange positions where these are equal.
    pub fn identity(&self) -> String {
        let Batches { size, seed, shuffled, drop_last, .. } = self;
        let samples = self.source.len();
        let order = format!("samples={samples} batch={size} seed={seed} shuffled={shuffled} drop_last={drop_last}");
        self.augment.iter().fold(order, |order, augment| format!("{order} {}", augment.identity()))
    }
}

/// Iteration.
impl<S: Source> Batches<S> {
    /// Writes the next batch into `batch`; `false` at the end of the last epoch. The buffers of `batch`
    /// are made at the first call and only overwritten from then on.
    ///
    /// # Errors
    /// Settings that cannot be: an empty source, a batch of 0, `drop_last` with fewer samples than one
    /// batch, a mask that is neither f32 nor bool, a column already named `valid`, a position beyond
    /// the batches of an epoch, a column to augment that holds no images.
    pub fn next_into(&mut self, batch: &mut Batch) -> Result<bool> {
        let mut plan = match self.plan.take() {
            Some(plan) => plan,
            None => self.prepare()?,
        };
        let Position { epoch, batch: number } = self.position;
        if number >= self.per_epoch() {
            return Err(self.beyond_the_epoch());
        }
        let more = epoch < self.epochs;
        if more {
            if plan.order_is_of != Some(epoch) {
                self.arrange(&mut plan, epoch);
            }
            shape_to(batch, &plan.layout);
            self.fill(batch, &mut plan);
            batch.position = self.position;
            let last = number + 1 == self.per_epoch();
            self.position = Position { epoch: epoch + u64::from(last), batch: if last { 0 } else { number + 1 } };
        }
        self.plan = Some(plan);
        Ok(more)
    }

    fn prepare(&self) -> Result<Plan> {
        let samples = self.source.len();
        let refuse = |what: String, help: &str| Err(Problem::new(what).help(help).into());
        if samples == 0 {
            return refuse("there are no samples to make batches of".into(), "check the path of the data");
        }
        if self.size == 0 {
            return refuse("a batch of 0 samples".into(), "give a batch size of at least 1");
        }
        if self.per_epoch() == 0 {
            let what = format!("{samples} samples do not fill one batch of {}", self.size);
            return refuse(what, "give a smaller batch size, or do not set drop_last");
        }
        if !matches!(self.mask, DType::F32 | DType::Bool) {
            return refuse(format!("a mask of dtype {}", self.mask), "a mask is f32 or bool");
        }
        let columns = self.source.columns();
        let augmented = self.augmented(&columns)?;
        let mut layout = Vec::new();
        for (name, ty) in columns {
            if name == VALID {
                let what = format!("the data has a column named '{VALID}'");
                return refuse(what, "rename it: this is the name of the mask of padding rows");
            }
            let mut dims = vec![self.size];
            dims.extend_from_slice(&ty.shape);
            let shape = Shape::from(dims);
            if shape.checked_elements().is_none() {
                let what = format!("a batch of {} samples of column '{name}' is beyond memory", self.size);
                return refuse(what, "give a smaller batch size");
            }
            layout.push((name, ty.with_shape(shape)));
        }
        layout.push((VALID.to_string(), Type::new(self.mask, [self.size])));
        Ok(Plan { layout, order: (0..samples).collect(), order_is_of: None, augmented })
    }

    fn augmented(&self, columns: &[(String, Type)]) -> Result<Option<(usize, Type, Vec<u8>)>> {
        let Some(augment) = &self.augment else { return Ok(None) };
        augment.check(columns)?;
        let found = columns.iter().enumerate().find(|(_, (name, _))| name == augment.column());
        Ok(found.map(|(number, (_, ty))| (number, ty.clone(), vec![0; ty.bytes()])))
    }

    fn beyond_the_epoch(&self) -> backfit_ir::Error {
        let what = format!("cannot resume at {}", self.position);
        Problem::new(what)
            .because(format!("an epoch has {} batches", self.per_epoch()))
            .help("resume with the data and the batch size of the run that was saved")
            .into()
    }

    fn arrange(&self, plan: &mut Plan, epoch: u64) {
        if self.shuffled {
            order::shuffle(&mut plan.order, self.seed, epoch);
        }
        plan.order_is_of = Some(epoch);
    }

    fn fill(&self, batch: &mut Batch, plan: &mut Plan) {
        let Plan { order, augmented, .. } = plan;
        let start = self.position.batch as usize * self.size;
        let rows = &order[start..order.len().min(start + self.size)];
        batch.samples = rows.len();
        let (mask, columns) = batch.columns.split_last_mut().expect("a layout has a mask");
        for (number, column) in columns.iter_mut().enumerate() {
            let width = column.bytes.len() / self.size;
            for row in 0..self.size {
                let out = &mut column.bytes[row * width..(row + 1) * width];
                let sample = *rows.get(row).unwrap_or(&rows[0]);
                match (&self.augment, &mut *augmented) {
                    (Some(augment), Some((column, ty, image))) if *column == number => {
                        self.source.read(sample, number, image);
                        augment.apply(ty, image, out, [self.seed, self.position.epoch, sample as u64]);
                    }
                    _ => self.source.read(sample, number, out),
                }
            }
        }
        write_mask(&mut mask.bytes, self.mask, rows.len());
    }
}

fn write_mask(mask: &mut [u8], dtype: DType, samples: usize) {
    mask.fill(0);
    if dtype == DType::Bool {
        mask[..samples].fill(1);
    } else {
        for one in mask.chunks_exact_mut(4).take(samples) {
            one.copy_from_slice(&1f32.to_le_bytes());
        }
    }
}

/// Gives the batch the buffers of a layout, unless it has them.
fn shape_to(batch: &mut Batch, layout: &[(String, Type)]) {
    let fits = batch.columns.len() == layout.len()
        && batch.columns.iter().zip(layout).all(|(c, (name, ty))| c.name == *name && c.ty == *ty);
    if !fits {
        let buffer =
            |(name, ty): &(String, Type)| Buffer { name: name.clone(), ty: ty.clone(), bytes: vec![0; ty.bytes()] };
        batch.columns = layout.iter().map(buffer).collect();
    }
}

impl<S: Source> Iterator for Batches<S> {
    type Item = Result<Batch>;

    /// A batch of its own each time. After an error there are no more.
    fn next(&mut self) -> Option<Result<Batch>> {
        if self.ended {
            return None;
        }
        let mut batch = Batch::default();
        match self.next_into(&mut batch) {
            Ok(true) => Some(Ok(batch)),
            Ok(false) => None,
            Err(e) => {
                self.ended = true;
                Some(Err(e))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;

    fn numbers(n: usize) -> Dataset {
        let label: Vec<i32> = (0..n as i32).collect();
        let x: Vec<f32> = label.iter().flat_map(|&v| [v as f32, -v as f32]).collect();
        let columns = [("x", Literal::from_f32([n, 2], &x)), ("label", Literal::from_i32([n], &label))];
        Dataset::new(columns).unwrap()
    }

    fn labels(batches: Batches<Dataset>) -> Vec<Vec<i64>> {
        batches.map(|b| b.unwrap().literal("label").unwrap().to_i64()).collect()
    }

    #[test]
    fn every_sample_comes_once_an_epoch_and_rows_stay_together() {
        for batch in numbers(10).batches(5).epochs(2) {
            let batch = batch.unwrap();
            let x = batch.literal("x").unwrap().to_f32();
            for (row, label) in x.chunks(2).zip(batch.literal("label").unwrap().to_f32()) {
                assert_eq!(row, [label, -label]);
            }
        }
        let mut epoch: Vec<i64> = labels(numbers(10).batches(5).seed(3)).concat();
        epoch.sort_unstable();
        assert!(epoch.into_iter().eq(0..10));
    }

    #[test]
    fn the_last_batch_is_padded_with_its_first_row_and_masked() {
        for (dtype, ones) in [(DType::F32, [1., 1., 0., 0.]), (DType::Bool, [1., 1., 0., 0.])] {
            let last = numbers(6).batches(4).mask(dtype).in_order().last().unwrap().unwrap();
            assert_eq!(last.samples(), 2);
            assert_eq!(last.literal("label").unwrap().to_i64(), [4, 5, 4, 4]);
            assert_eq!(last.literal("valid").unwrap().to_f64(), ones);
        }
    }

    #[test]
    fn a_batch_larger_than_the_data_is_padded() {
        assert_eq!(labels(numbers(2).batches(4).in_order()), [[0, 1, 0, 0]]);
    }

    #[test]
    fn drop_last_leaves_out_what_does_not_fill_a_batch() {
        assert_eq!(labels(numbers(7).batches(3).in_order().drop_last()), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(numbers(6).batches(3).drop_last().count(), 2);
    }

    #[test]
    fn epochs_have_different_orders_and_seeds_too() {
        let of = |seed| labels(numbers(20).batches(20).epochs(2).seed(seed));
        assert_ne!(of(1)[0], of(1)[1]);
        assert_ne!(of(1)[0], of(2)[0]);
        assert_eq!(of(1), of(1));
    }

    #[test]
    fn resuming_at_any_position_gives_exactly_the_rest() {
        let all: Vec<Batch> = numbers(11).batches(4).epochs(3).seed(9).map(Result::unwrap).collect();
        let mut running = numbers(11).batches(4).epochs(3).seed(9);
        for done in 0..=all.len() {
            let position: Position = running.position().to_string().parse().unwrap();
            let rest = numbers(11).batches(4).epochs(3).seed(9).resume(position);
            assert!(rest.map(Result::unwrap).eq(all[done..].iter().cloned()), "after {done}");
            running.next();
        }
    }

    #[test]
    fn buffers_are_made_once() {
        let mut batches = numbers(10).batches(4).epochs(5);
        let mut batch = Batch::default();
        assert!(batches.next_into(&mut batch).unwrap());
        let places = |b: &Batch| b.columns().map(|(_, _, bytes)| bytes.as_ptr()).collect::<Vec<_>>();
        let first = places(&batch);
        let mut count = 1;
        while batches.next_into(&mut batch).unwrap() {
            assert_eq!(places(&batch), first);
            count += 1;
        }
        assert_eq!(count, 15);
        assert!(!batches.next_into(&mut batch).unwrap(), "the end stays the end");
    }

    #[test]
    fn settings_that_cannot_be_are_told_once() {
        let position = Position { epoch: 0, batch: 3 };
        let valid = Dataset::new([("valid", Literal::from_i32([1], &[1]))]).unwrap();
        let cases = [
            (numbers(0).batches(1), "no samples"),
            (numbers(1).batches(0), "batch of 0"),
            (numbers(3).batches(4).drop_last(), "3 samples do not fill one batch of 4"),
            (numbers(3).batches(1).mask(DType::I32), "i32"),
            (valid.batches(1), "valid"),
            (numbers(3).batches(1).resume(position), "3 batches"),
            (numbers(3).batches(usize::MAX), "beyond memory"),
        ];
        for (batches, part) in cases {
            let all: Vec<Result<Batch>> = batches.collect();
            assert_eq!(all.len(), 1, "{part}");
            let e = all[0].as_ref().unwrap_err().to_string();
            assert!(e.contains(part), "{part} missing in: {e}");
        }
    }

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let p = Position { epoch: 12, batch: 345 };
        assert_eq!(p.to_string(), "12:345");
        assert_eq!("12:345".parse::<Position>().unwrap(), p);
        for wrong in ["", "1", "1:", ":1", "1:-1", "a:b", "1:2:3"] {
            assert!(wrong.parse::<Position>().is_err(), "{wrong}");
        }
    }
}
