//! Public data sets: where they are, what they must hash to, how they are read.

use super::cifar;
use super::dataset::Split;
pub use super::fetch::fetch;
use super::text::Corpus;
use super::{idx, images};
use backfit_ir::{Problem, Result};
use std::path::{Path, PathBuf};

/// A data set that can be had publicly.
#[derive(Debug)]
pub struct PublicSet {
    /// The name it is asked for by, and of its folder.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The forms in which it may lie in a folder, the preferred one first.
    pub forms: &'static [Form],
}

/// One form of a data set: its files and how they are read.
#[derive(Debug)]
pub struct Form {
    /// All of them are needed.
    pub files: &'static [PublicFile],
    read: fn(&[PathBuf]) -> Result<Loaded>,
}

/// A file of a data set.
#[derive(Debug)]
pub struct PublicFile {
    /// Its name.
    pub name: &'static str,
    /// Other names it goes by.
    pub also: &'static [&'static str],
    /// Where it can be downloaded, the preferred address first; none where it only can be copied.
    pub addresses: &'static [&'static str],
    /// What it must hash to.
    pub sha256: Sha256Of,
}

/// A SHA-256 in hexadecimal, and of what.
#[derive(Clone, Copy, Debug)]
pub enum Sha256Of {
    /// Of the file as it is.
    File(&'static str),
    /// Of what gzip has packed, since packing again gives other bytes of the same data.
    Content(&'static str),
}

/// A data set from files.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// Samples, to learn from and held back.
    Samples(Split),
    /// A text.
    Text(Corpus),
}

/// All data sets that [`fetch`] and [`load`] know.
pub fn catalog() -> &'static [PublicSet] {
    &CATALOG
}

/// The data set of a name.
///
/// # Errors
/// There is none of this name; the error lists all names.
pub fn find(name: &str) -> Result<&'static PublicSet> {
    CATALOG.iter().find(|set| set.name == name).ok_or_else(|| {
        let names: Vec<&str> = CATALOG.iter().map(|set| set.name).collect();
        let problem = Problem::new(format!("there is no public data set '{name}'"));
        problem.help(format!("the data sets are: {}", names.join(", "))).into()
    })
}

/// Loads a data set from `dir`, where its files lie in a folder of its name or directly.
///
/// # Errors
/// No such data set, files that are missing (the error names them), and the errors of their readers.
pub fn load(name: &str, dir: &Path) -> Result<Loaded> {
    let set = find(name)?;
    let (form, files) = set.locate(dir).ok_or_else(|| set.missing(dir))?;
    (form.read)(&files)
}

impl Form {
    /// A form for tests of fetching.
    #[cfg(test)]
    pub(crate) fn of_files(files: &'static [PublicFile], read: fn(&[PathBuf]) -> Result<Loaded>) -> Self {
        Form { files, read }
    }
}

impl PublicSet {
    /// The first form all of whose files lie in `dir`, with their paths.
    pub(crate) fn locate(&self, dir: &Path) -> Option<(&'static Form, Vec<PathBuf>)>
    where
        Self: 'static,
    {
        let folders = [dir.join(self.name), dir.join("text"), dir.to_path_buf()];
        let path = |file: &PublicFile| {
            let names = || [file.name].into_iter().chain(file.also.iter().copied());
            let paths = folders.iter().flat_map(|folder| names().map(|name| folder.join(name)));
            paths.into_iter().find(|path| path.is_file())
        };
        let forms: &'static [Form] = self.forms;
        forms.iter().find_map(|form| Some((form, form.files.iter().map(path).collect::<Option<_>>()?)))
    }

    /// The error that names what `dir` lacks.
    pub(crate) fn missing(&self, dir: &Path) -> backfit_ir::Error {
        let mut problem = Problem::new(format!("the data set '{}' is not complete", self.name)).in_file(dir);
        for form in self.forms {
            let names: Vec<&str> = form.files.iter().map(|file| file.name).collect();
            problem = problem.because(format!("it needs {}", names.join(", ")));
        }
        problem.help(format!("fetch it, or copy the files into {}", dir.join(self.name).display())).into()
    }
}

macro_rules! mnist_file {
    ($name:literal, $unpacked:literal, $sha256:literal) => {
        PublicFile {
            name: concat!($name, ".gz"),
            also: &[$name, $unpacked],
            addresses: &[
                concat!("https://storage.googleapis.com/cvdf-datasets/mnist/", $name, ".gz"),
                concat!("https://ossci-datasets.s3.amazonaws.com/mnist/", $name, ".gz"),
            ],
            sha256: Sha256Of::Content($sha256),
        }
    };
}

static CATALOG: [PublicSet; 3] = [
    PublicSet {
        name: "mnist",
        about: "60,000 + 10,000 handwritten digits, 28×28 grey",
        forms: &[Form { files: &MNIST, read: read_mnist }],
    },
    PublicSet {
        name: "cifar10",
        about: "50,000 + 10,000 photographs of ten kinds, 32×32 RGB",
        forms: &[
            Form { files: &CIFAR10_BINARY, read: read_cifar10_binary },
            Form { files: &CIFAR10_FOLDERS, read: read_cifar10_folders },
        ],
    },
    PublicSet {
        name: "tinyshakespeare",
        about: "1,115,394 characters of Shakespeare's plays",
        forms: &[Form { files: &TINY_SHAKESPEARE, read: read_text }],
    },
];

static MNIST: [PublicFile; 4] = [
    mnist_file!(
        "train-images-idx3-ubyte",
        "train-images.idx3-ubyte",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    mnist_file!(
        "train-labels-idx1-ubyte",
        "train-labels.idx1-ubyte",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    mnist_file!(
        "t10k-images-idx3-ubyte",
        "t10k-images.idx3-ubyte",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    mnist_file!(
        "t10k-labels-idx1-ubyte",
        "t10k-labels.idx1-ubyte",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
];

static CIFAR10_BINARY: [PublicFile; 1] = [PublicFile {
    name: "cifar-10-binary.tar.gz",
    also: &[],
    addresses: &["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"],
    // The same file as the published MD5 c32a1d4ab5d03f1284b67883e8d87530.
    sha256: Sha256Of::File("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
}];

/// JPEG files by class; not bit-equal to the original.
static CIFAR10_FOLDERS: [PublicFile; 2] = [
    PublicFile {
        name: "train.tar.gz",
        also: &["cifar10-train.tar.gz"],
        addresses: &[],
        sha256: Sha256Of::File("a535d698b82754229fa7f3774ac711a607cb8936992fd7ca3d9ef1a55204f457"),
    },
    PublicFile {
        name: "test.tar.gz",
        also: &["cifar10-test.tar.gz"],
        addresses: &[],
        sha256: Sha256Of::File("6105939178564d665213b1d8a0be087359a13dfadc0e225b0f2dd3c6cc017178"),
    },
];

static TINY_SHAKESPEARE: [PublicFile; 1] = [PublicFile {
    name: "tinyshakespeare.txt",
    also: &["input.txt"],
    addresses: &["https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"],
    sha256: Sha256Of::File("86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
}];

fn read_mnist(files: &[PathBuf]) -> Result<Loaded> {
    let digits = || (0..10).map(|digit| digit.to_string());
    let train = idx::read_pair(&files[0], &files[1])?.with_class_names(digits());
    let test = idx::read_pair(&files[2], &files[3])?.with_class_names(digits());
    Ok(Loaded::Samples(Split { train, test }))
}

fn read_cifar10_binary(files: &[PathBuf]) -> Result<Loaded> {
    Ok(Loaded::Samples(cifar::read(&files[0])?))
}

fn read_cifar10_folders(files: &[PathBuf]) -> Result<Loaded> {
    let [train, test] = [images::read_archive(&files[0])?, images::read_archive(&files[1])?];
    Ok(Loaded::Samples(Split { train, test }))
}

fn read_text(files: &[PathBuf]) -> Result<Loaded> {
    Ok(Loaded::Text(Corpus::read(&files[0])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_set_is_answered_with_those_there_are() {
        let e = load("mnits", Path::new(".")).unwrap_err().to_string();
        assert!(e.contains("'mnits'") && e.contains("mnist, cifar10, tinyshakespeare"), "{e}");
    }

    #[test]
    fn an_incomplete_folder_is_answered_with_every_file_needed() {
        let e = load("cifar10", Path::new("no/such/folder")).unwrap_err().to_string();
        for part in ["no/such/folder", "cifar-10-binary.tar.gz", "train.tar.gz, test.tar.gz"] {
            assert!(e.contains(part), "{part} missing in: {e}");
        }
    }

    #[test]
    fn every_set_has_a_form_that_can_be_downloaded_and_whole_checksums() {
        for set in catalog() {
            let complete = |form: &&Form| form.files.iter().all(|f| !f.addresses.is_empty());
            assert!(set.forms.iter().any(|form| complete(&form)), "{}", set.name);
            for file in set.forms.iter().flat_map(|form| form.files) {
                let (Sha256Of::File(hex) | Sha256Of::Content(hex)) = file.sha256;
                assert!(hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{}", file.name);
                assert!(file.addresses.iter().all(|a| a.starts_with("https://")), "{}", file.name);
            }
        }
    }
}
