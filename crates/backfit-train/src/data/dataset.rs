//! Columns of samples in memory.

use super::batches::{Batches, Source};
use super::order;
use backfit_ir::{DType, Literal, Problem, Result, Type};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The stream of draws that [`Dataset::split`] uses; epochs count up from zero and never reach it.
const SPLIT_STREAM: u64 = u64::MAX;

/// Named columns of equally many samples. Cloning shares the values.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::data::Dataset;
///
/// let points = Dataset::new([
///     ("x", Literal::from_f32([4, 2], &[0., 0., 0., 1., 1., 0., 1., 1.])),
///     ("label", Literal::from_i32([4], &[0, 1, 1, 0])),
/// ])?;
/// assert_eq!(points.len(), 4);
/// let parts = points.split(0.25, 7)?;
/// assert_eq!((parts.train.len(), parts.test.len()), (3, 1));
/// assert!(points.column("y").unwrap_err().to_string().contains("x, label"));
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    columns: Vec<Column>,
    samples: usize,
    class_names: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Column {
    name: String,
    values: Literal,
    file: Option<PathBuf>,
}

/// A data set in two parts: one to learn from, one to judge by.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// What the model learns from.
    pub train: Dataset,
    /// What was held back.
    pub test: Dataset,
}

impl Dataset {
    /// A data set from its columns; the first axis of each counts the samples.
    ///
    /// # Errors
    /// No columns, a scalar column, a packed dtype, a name used twice, columns of different lengths.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Literal)>) -> Result<Self> {
        let mut set = Dataset { columns: Vec::new(), samples: 0, class_names: None };
        for (name, values) in columns {
            set = set.with_column(name, values)?;
        }
        if set.columns.is_empty() {
            return Err(Problem::new("a data set needs at least one column").into());
        }
        Ok(set)
    }

    /// All samples of a source, in memory.
    ///
    /// ```
    /// use backfit_train::data::{Dataset, text::Corpus};
    /// let windows = Dataset::collect(&Corpus::of("to be or not").windows(4).every(4))?;
    /// assert_eq!(windows.column("x")?.ty().to_string(), "i32[2,4]");
    /// # Ok::<(), backfit_ir::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Dataset::new`].
    pub fn collect(source: &dyn Source) -> Result<Self> {
        let samples = source.len();
        let columns = source.columns().into_iter().enumerate().map(|(number, (name, ty))| {
            let width = ty.bytes();
            let mut bytes = vec![0; samples * width];
            (0..samples).for_each(|i| source.read(i, number, &mut bytes[i * width..(i + 1) * width]));
            let dims = [&[samples], ty.shape.dims()].concat();
            (name, Literal::from_bytes(ty.with_shape(dims), bytes).expect("every sample was read"))
        });
        Dataset::new(columns)
    }

    /// The same with one more column, or with another one in its place where the name is taken.
    ///
    /// # Errors
    /// As for [`Dataset::new`].
    pub fn with_column(mut self, name: impl Into<String>, values: Literal) -> Result<Self> {
        let name = name.into();
        let ty = values.ty().clone();
        let Some(&samples) = ty.shape.first() else {
            return Err(Problem::new(format!("column '{name}' is a scalar, {ty}"))
                .help("the first axis of a column counts the samples")
                .into());
        };
        if ty.dtype.is_packed() {
            let what = format!("column '{name}' has the packed dtype {}", ty.dtype);
            return Err(Problem::new(what).help("unpack it to u8 or i8").into());
        }
        let place = self.columns.iter().position(|c| c.name == name);
        let others = self.columns.len() - usize::from(place.is_some());
        if others > 0 && samples != self.samples {
            let other = self.columns.iter().find(|c| c.name != name).map_or("", |c| &c.name);
            let what = format!("column '{name}' has {samples} samples, but column '{other}' has {}", self.samples);
            return Err(Problem::new(what).into());
        }
        self.samples = samples;
        match place {
            Some(i) => self.columns[i].values = values,
            None => self.columns.push(Column { name, values, file: None }),
        }
        Ok(self)
    }

    /// The same with the file named from which the columns that have none yet came; errors name it.
    pub fn from_file(mut self, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        for column in self.columns.iter_mut().filter(|c| c.file.is_none()) {
            column.file = Some(file.clone());
        }
        self
    }

    /// The same with a name for every class.
    pub fn with_class_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.class_names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The values of a column.
    ///
    /// # Errors
    /// There is no such column; the error lists those there are.
    pub fn column(&self, name: &str) -> Result<&Literal> {
        let found = self.columns.iter().find(|c| c.name == name);
        found.map(|c| &c.values).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            let problem = Problem::new(format!("there is no column '{name}'"));
            let problem = match self.columns.iter().find_map(|c| c.file.as_ref()) {
                Some(file) => problem.in_file(file),
                None => problem,
            };
            problem.help(format!("the columns are: {}", names.join(", "))).into()
        })
    }

    /// Every column: name and values.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Literal)> {
        self.columns.iter().map(|c| (c.name.as_str(), &c.values))
    }

    /// The file a column came from, where that is known.
    pub fn file(&self, column: &str) -> Option<&Path> {
        self.columns.iter().find(|c| c.name == column)?.file.as_deref()
    }

    /// The names of the classes, in the order of the labels.
    pub fn class_names(&self) -> Option<&[String]> {
        self.class_names.as_deref()
    }

    /// The samples of these indices, in this order.
    ///
    /// # Errors
    /// An index beyond the end.
    pub fn select(&self, samples: &[usize]) -> Result<Self> {
        if let Some(i) = samples.iter().find(|&&i| i >= self.samples) {
            return Err(Problem::new(format!("there is no sample {i} among {}", self.samples)).into());
        }
        Ok(self.gather(samples))
    }

    /// The first `n` samples, or all where there are fewer.
    pub fn take(&self, n: usize) -> Self {
        self.range(0..n)
    }

    /// The samples of a range, cut to those there are.
    pub fn range(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.samples);
        let start = range.start.min(end);
        self.each_column(end - start, |bytes, width| bytes[start * width..end * width].to_vec())
    }

    /// Holds back a random part of the samples; both parts keep the order of the whole.
    ///
    /// # Errors
    /// A fraction outside (0, 1), or one that leaves a part empty.
    pub fn split(&self, held_back: f64, seed: u64) -> Result<Split> {
        let test = (self.samples as f64 * held_back).round();
        let within = held_back > 0.0 && held_back < 1.0;
        if !within || test < 1.0 || test >= self.samples as f64 {
            let what = format!("cannot hold back {held_back} of {} samples", self.samples);
            return Err(Problem::new(what)
                .because("each part needs at least one sample")
                .help("give a fraction between 0 and 1, such as 0.2")
                .into());
        }
        let mut order = vec![0; self.samples];
        order::shuffle(&mut order, seed, SPLIT_STREAM);
        let (test, train) = order.split_at_mut(test as usize);
        test.sort_unstable();
        train.sort_unstable();
        Ok(Split { train: self.gather(train), test: self.gather(test) })
    }

    /// Batches of `size` samples, one epoch unless told otherwise.
    pub fn batches(&self, size: usize) -> Batches<Dataset> {
        Batches::new(self.clone(), size)
    }

    fn gather(&self, samples: &[usize]) -> Self {
        self.each_column(samples.len(), |bytes, width| {
            let mut out = Vec::with_capacity(samples.len() * width);
            for &i in samples {
                out.extend_from_slice(&bytes[i * width..(i + 1) * width]);
            }
            out
        })
    }

    /// The set with `samples` samples whose bytes `take` picks from (all bytes, bytes of one sample).
    fn each_column(&self, samples: usize, take: impl Fn(&[u8], usize) -> Vec<u8>) -> Self {
        let columns = self.columns.iter().map(|column| {
            let mut dims = column.values.ty().shape.to_vec();
            dims[0] = samples;
            let ty = column.values.ty().with_shape(dims);
            let bytes = take(column.values.bytes(), sample_type(&column.values).bytes());
            let values = Literal::from_bytes(ty, bytes).expect("whole samples were taken");
            Column { values, ..column.clone() }
        });
        Dataset { columns: columns.collect(), samples, class_names: self.class_names.clone() }
    }
}

/// The type of one sample of a column.
fn sample_type(values: &Literal) -> Type {
    let ty = values.ty();
    Type::new(ty.dtype, ty.shape.get(1..).unwrap_or_default())
}

impl Source for Dataset {
    fn len(&self) -> usize {
        self.samples
    }

    fn columns(&self) -> Vec<(String, Type)> {
        self.columns.iter().map(|c| (c.name.clone(), sample_type(&c.values))).collect()
    }

    fn read(&self, sample: usize, column: usize, out: &mut [u8]) {
        let bytes = self.columns[column].values.bytes();
        out.copy_from_slice(&bytes[sample * out.len()..][..out.len()]);
    }
}

/// Dtype changes.
impl Dataset {
    /// The column as f32, one to one.
    ///
    /// # Errors
    /// No such column.
    pub fn to_f32(&self, column: &str) -> Result<Self> {
        let values = self.column(column)?;
        let shape = values.ty().shape.clone();
        let converted = match values.ty().dtype {
            DType::F32 => return Ok(self.clone()),
            DType::U8 => from_bytes_table(values, f32::from),
            _ => Literal::from_f32(shape, &values.to_f32()),
        };
        self.clone().with_column(column, converted)
    }

    /// A u8 column as f32 between 0 and 1: each value divided by 255.
    ///
    /// # Errors
    /// No such column, or its dtype is not u8.
    pub fn to_unit(&self, column: &str) -> Result<Self> {
        let values = self.column(column)?;
        if values.ty().dtype != DType::U8 {
            let what = format!("column '{column}' is {}, not u8", values.ty());
            return Err(Problem::new(what).help("only bytes have a range to divide by").into());
        }
        self.clone().with_column(column, from_bytes_table(values, |b| f32::from(b) / 255.0))
    }

    /// An integer column as i32.
    ///
    /// # Errors
    /// No such column, a float column, or a value that i32 cannot hold.
    pub fn to_i32(&self, column: &str) -> Result<Self> {
        let values = self.column(column)?;
        let ty = values.ty();
        let refuse = |what: String| {
            let problem = Problem::new(what);
            match self.file(column) {
                Some(file) => problem.in_file(file),
                None => problem,
            }
        };
        if ty.dtype.is_float() {
            return Err(refuse(format!("column '{column}' is {ty}, not integers")).into());
        }
        let mut converted = Vec::with_capacity(ty.shape.elements());
        for (i, value) in values.to_i64().into_iter().enumerate() {
            let value = i32::try_from(value)
                .map_err(|_| refuse(format!("element {i} of column '{column}' is {value}, beyond i32")))?;
            converted.push(value);
        }
        self.clone().with_column(column, Literal::from_i32(ty.shape.clone(), &converted))
    }
}

/// An f32 tensor made from the bytes of a u8 tensor, one value per byte.
fn from_bytes_table(values: &Literal, map: impl Fn(u8) -> f32) -> Literal {
    let table: Vec<[u8; 4]> = (0..=255).map(|b| map(b).to_le_bytes()).collect();
    let bytes: Vec<u8> = values.bytes().iter().flat_map(|&b| table[usize::from(b)]).collect();
    let ty = values.ty().with_dtype(DType::F32);
    Literal::from_bytes(ty, bytes).expect("four bytes per element")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten() -> Dataset {
        let x: Vec<f32> = (0..20).map(|v| v as f32).collect();
        let label: Vec<i32> = (0..10).collect();
        Dataset::new([("x", Literal::from_f32([10, 2], &x)), ("label", Literal::from_i32([10], &label))]).unwrap()
    }

    #[test]
    fn columns_of_different_lengths_are_refused_with_both_lengths() {
        let e = ten().with_column("y", Literal::from_f32([3], &[0.; 3])).unwrap_err().to_string();
        assert!(e.contains("'y' has 3 samples") && e.contains("'x' has 10"), "{e}");
    }

    #[test]
    fn a_scalar_column_and_no_columns_are_refused() {
        assert!(Dataset::new([("x", Literal::scalar(DType::F32, 1.0))]).is_err());
        assert!(Dataset::new::<String>([]).is_err());
        assert!(Dataset::new([("x", Literal::zeros(Type::new(DType::U4, [4])))]).is_err());
    }

    #[test]
    fn an_unknown_column_is_answered_with_those_there_are() {
        let e = ten().from_file("ten.csv").column("y").unwrap_err().to_string();
        assert!(e.contains("'y'") && e.contains("x, label") && e.contains("ten.csv"), "{e}");
    }

    #[test]
    fn split_parts_are_disjoint_complete_and_repeatable() {
        let parts = ten().split(0.3, 5).unwrap();
        assert_eq!((parts.train.len(), parts.test.len()), (7, 3));
        let mut all = parts.train.column("label").unwrap().to_i64();
        all.extend(parts.test.column("label").unwrap().to_i64());
        all.sort_unstable();
        assert!(all.into_iter().eq(0..10));
        assert_eq!(parts, ten().split(0.3, 5).unwrap());
        assert_ne!(parts, ten().split(0.3, 6).unwrap());
    }

    #[test]
    fn split_keeps_rows_together() {
        let train = ten().split(0.5, 1).unwrap().train;
        let x = train.column("x").unwrap().to_f32();
        for (row, label) in x.chunks(2).zip(train.column("label").unwrap().to_f32()) {
            assert_eq!(row, [2. * label, 2. * label + 1.]);
        }
    }

    #[test]
    fn splits_that_leave_a_part_empty_are_refused() {
        for fraction in [0.0, 1.0, -1.0, 2.0, f64::NAN, 0.01, 0.99] {
            assert!(ten().split(fraction, 0).is_err(), "{fraction}");
        }
    }

    #[test]
    fn take_and_range_stop_at_the_end() {
        assert_eq!(ten().take(3).len(), 3);
        assert_eq!(ten().take(99), ten());
        assert_eq!(ten().range(8..99).column("label").unwrap().to_i64(), [8, 9]);
        #[allow(clippy::reversed_empty_ranges)]
        let none = ten().range(9..2);
        assert!(none.is_empty());
    }

    #[test]
    fn selecting_beyond_the_end_is_refused() {
        assert_eq!(ten().select(&[9, 0]).unwrap().column("label").unwrap().to_i64(), [9, 0]);
        assert!(ten().select(&[10]).is_err());
    }

    #[test]
    fn bytes_become_the_correctly_rounded_fraction_of_255() {
        let bytes = Literal::from_bytes(Type::new(DType::U8, [256]), (0..=255).collect::<Vec<u8>>());
        let set = Dataset::new([("image", bytes.unwrap())]).unwrap();
        let unit = set.to_unit("image").unwrap();
        for (i, v) in unit.column("image").unwrap().to_f32().into_iter().enumerate() {
            assert_eq!(v, i as f32 / 255.0);
        }
        assert!(unit.to_unit("image").is_err());
        assert_eq!(set.to_f32("image").unwrap().column("image").unwrap().to_f32()[255], 255.0);
    }

    #[test]
    fn integers_beyond_i32_are_refused_with_their_index() {
        let wide = Literal::from_i64(Type::new(DType::I64, [2]), &[1, 1 << 40]);
        let set = Dataset::new([("label", wide)]).unwrap();
        let e = set.to_i32("label").unwrap_err().to_string();
        assert!(e.contains("element 1") && e.contains("1099511627776"), "{e}");
    }
}
