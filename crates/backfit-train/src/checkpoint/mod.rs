//! Checkpoints: named tensors and metadata in one safetensors file, replaced atomically.

mod header;

use crate::atomic_file;
use crate::reading::read_exactly;
use backfit_compile::precision::compensation_of;
use backfit_ir::{DType, Error, Literal, Problem, Result, Type};
use header::Header;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use std::str::FromStr;

/// Names under which a training run keeps its state in the metadata.
pub mod key {
    /// Fingerprint of the model.
    pub const MODEL: &str = "model";
    /// Steps done.
    pub const STEP: &str = "step";
    /// Place of the next batch, a [`crate::data::Position`].
    pub const POSITION: &str = "position";
    /// What the order of the data depends on, a [`crate::data::Batches::identity`].
    pub const DATA: &str = "data";
    /// Seed of the run.
    pub const SEED: &str = "seed";
}

/// The version of the metadata that this crate writes. Kept in the file only.
const FORMAT: &str = "backfit.format";
const FORMAT_VERSION: u32 = 1;

/// Checksum of everything else in the file. Kept in the file only.
const SHA256: &str = "backfit.sha256";

/// Named tensors and metadata.
///
/// ```
/// use backfit_ir::Literal;
/// use backfit_train::checkpoint::{Checkpoint, key};
///
/// let file = std::env::temp_dir().join(format!("backfit-doc-{}.safetensors", std::process::id()));
/// let mut checkpoint = Checkpoint::default();
/// checkpoint.tensors.insert("fc1.weight".into(), Literal::from_f32([2], &[0.5, -1.0]));
/// checkpoint.set(key::STEP, 1200);
/// checkpoint.save(&file)?;
///
/// let loaded = Checkpoint::load(&file)?;
/// assert_eq!(loaded, checkpoint);
/// assert_eq!(loaded.get::<u64>(key::STEP)?, 1200);
/// # std::fs::remove_file(&file).unwrap();
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Weights, optimizer state, counters.
    pub tensors: BTreeMap<String, Literal>,
    /// Everything else; [`key`] has the names of what a run keeps.
    pub metadata: BTreeMap<String, String>,
}

/// Content.
impl Checkpoint {
    /// Sets a value of the metadata.
    pub fn set(&mut self, key: &str, value: impl Display) {
        self.metadata.insert(key.to_string(), value.to_string());
    }

    /// A value of the metadata.
    ///
    /// # Errors
    /// There is none of this name (the error lists those there are), or it is not a `T`.
    pub fn get<T: FromStr>(&self, key: &str) -> Result<T> {
        let Some(text) = self.metadata.get(key) else {
            let keys: Vec<&str> = self.metadata.keys().map(String::as_str).collect();
            let problem = Problem::new(format!("the checkpoint does not say '{key}'"));
            return Err(problem.help(format!("it says: {}", keys.join(", "))).into());
        };
        text.parse().map_err(|_| {
            let expected = std::any::type_name::<T>();
            Problem::new(format!("the '{key}' of the checkpoint is '{text}'"))
                .because(format!("expected is a {expected}"))
                .into()
        })
    }

    /// A weight as [`Trainer::weight`](crate::Trainer::weight) gives it, averages aside: with what bf16 storage keeps
    /// beside it, then in f32.
    ///
    /// # Errors
    /// There is none of this name; what is kept beside it is of another type.
    pub fn weight(&self, name: &str) -> Result<Literal> {
        let own = self.tensors.get(name).ok_or_else(|| Problem::new(format!("the checkpoint has no '{name}'")))?;
        let Some(rest) = self.beside(name) else { return Ok(own.clone()) };
        if rest.ty() != own.ty() {
            let what = format!("the tensor '{name}' is {}, what is kept beside it {}", own.ty(), rest.ty());
            return Err(Problem::new(what).help("give a file that a trainer has saved").into());
        }
        Ok(whole(own, rest))
    }

    /// What is kept beside a weight that is stored as bf16.
    pub(crate) fn beside(&self, name: &str) -> Option<&Literal> {
        let is_narrow = self.tensors.get(name).is_some_and(|values| values.ty().dtype == DType::BF16);
        self.tensors.get(&compensation_of(name)).filter(|_| is_narrow)
    }

    /// Compares the tensors with those a model needs.
    ///
    /// # Errors
    /// Every tensor that is missing, of another type, or not expected.
    pub fn check_against<N: AsRef<str>>(&self, expected: &[(N, Type)]) -> Result<()> {
        let mut problems = Vec::new();
        for (name, ty) in expected {
            let name = name.as_ref();
            match self.tensors.get(name) {
                None => problems.push(Problem::new(format!("the tensor '{name}: {ty}' is missing"))),
                Some(found) if found.ty() != ty => {
                    let what = format!("the tensor '{name}' is {}, expected is {ty}", found.ty());
                    problems.push(Problem::new(what));
                }
                Some(_) => {}
            }
        }
        let names: BTreeSet<&str> = expected.iter().map(|(name, _)| name.as_ref()).collect();
        for (name, values) in self.tensors.iter().filter(|(name, _)| !names.contains(name.as_str())) {
            problems.push(Problem::new(format!("the tensor '{name}: {}' is not expected", values.ty())));
        }
        let error = Error::from_problems(problems);
        error.map_or(Ok(()), |e| Err(e.because("the checkpoint is of another model or version")))
    }
}

/// Writing.
impl Checkpoint {
    /// Saves to a file, in place of an older one. Whatever fails, and whenever the process is killed, the
    /// file is the older or the new one; see [`atomic_file::replace`].
    ///
    /// # Errors
    /// A tensor of a packed dtype, and what the operating system says.
    pub fn save(&self, file: &Path) -> Result<()> {
        let header = self.header()?;
        atomic_file::replace(file, |out| self.write(&header, out))
            .map_err(|e| e.because("the checkpoint was not saved; an older one is untouched"))
    }

    /// Writes the content of the file to a stream.
    ///
    /// # Errors
    /// As for [`Checkpoint::save`].
    pub fn write_to(&self, out: &mut dyn Write) -> Result<()> {
        let written = self.write(&self.header()?, out);
        written.map_err(|e| Problem::new("cannot write the checkpoint").because(e.to_string()).into())
    }

    fn header(&self) -> Result<Header> {
        let mut metadata = self.metadata.clone();
        metadata.insert(FORMAT.into(), FORMAT_VERSION.to_string());
        metadata.insert(SHA256.into(), self.sha256());
        Header::new(metadata, &self.tensors)
    }

    fn write(&self, header: &Header, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(&header.encode()?)?;
        for (name, _) in header.tensors() {
            out.write_all(self.tensors[name].bytes())?;
        }
        Ok(())
    }

    /// The checksum of metadata and tensors but for what is kept in the file only.
    fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        let mut add = |part: &[u8]| {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        for (key, value) in self.metadata.iter().filter(|(key, _)| *key != FORMAT && *key != SHA256) {
            add(key.as_bytes());
            add(value.as_bytes());
        }
        for (name, values) in &self.tensors {
            add(name.as_bytes());
            add(values.ty().to_string().as_bytes());
            add(values.bytes());
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reading.
impl Checkpoint {
    /// Loads what [`Checkpoint::save`] has written.
    ///
    /// # Errors
    /// The file cannot be read, is cut off or damaged in any byte, or was not written by Backfit or by a
    /// newer version of it.
    pub fn load(file: &Path) -> Result<Self> {
        let mut checkpoint = Self::load_foreign(file)?;
        let version = checkpoint.metadata.remove(FORMAT);
        let sha256 = checkpoint.metadata.remove(SHA256);
        let refuse = |what: &str, why: String| Problem::new(what).in_file(file).because(why);
        let (Some(version), Some(sha256)) = (version, sha256) else {
            let problem =
                refuse("the file is no checkpoint of Backfit", format!("it does not say '{FORMAT}' and '{SHA256}'"));
            return Err(problem
                .help("weights of other origin can begin a run, but a run cannot be resumed from them")
                .into());
        };
        if version != FORMAT_VERSION.to_string() {
            let why = format!("it has format '{version}', known is {FORMAT_VERSION}");
            let problem = refuse("the checkpoint was written by another version", why);
            return Err(problem.help("update Backfit").into());
        }
        let found = checkpoint.sha256();
        if found != sha256 {
            let why = format!("its checksum is {found}, but it says {sha256}");
            let problem = refuse("the checkpoint is damaged", why);
            return Err(problem.help("go back to an older checkpoint").into());
        }
        Ok(checkpoint)
    }

    /// Loads any safetensors file, such as weights that another program has written.
    ///
    /// # Errors
    /// The file cannot be read, is no safetensors file, is cut off or has bytes too many, or has a dtype
    /// without a counterpart here.
    pub fn load_foreign(file: &Path) -> Result<Self> {
        let unreadable = |e: std::io::Error| {
            Error::from(Problem::new("cannot open the checkpoint").in_file(file).because(e.to_string()))
        };
        let opened = File::open(file).map_err(unreadable)?;
        let size = opened.metadata().map_err(unreadable)?.len();
        let mut reader = BufReader::with_capacity(1 << 20, opened);
        let header = Header::read(&mut reader, size, file)?;
        let mut tensors = BTreeMap::new();
        for (name, ty) in header.tensors() {
            let what = format!("the tensor '{name}: {ty}'");
            let bytes = read_exactly(&mut reader, ty.bytes(), &what, file)?;
            if ty.dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
                let problem = Problem::new(format!("{what} is neither 0 nor 1 everywhere"));
                return Err(problem.in_file(file).help("the file is damaged").into());
            }
            let values = Literal::from_bytes(ty.clone(), bytes).expect("exactly the bytes of the type");
            tensors.insert(name.to_string(), values);
        }
        Ok(Checkpoint { tensors, metadata: header.into_metadata() })
    }
}

/// A weight that is stored as two bf16 numbers, as f32.
pub(crate) fn whole(stored: &Literal, rest: &Literal) -> Literal {
    let whole: Vec<f64> = stored.to_f64().iter().zip(rest.to_f64()).map(|(a, b)| a + b).collect();
    Literal::from_f64(stored.ty().with_dtype(DType::F32), &whole)
}

#[cfg(test)]
mod tests;
