//! The table `[data]`.

use super::Checks;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The table `[data]`: the name of a data set, or files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// `digits`, `iris` and `sine` need no files; other names are those of `backfit data list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the files of a named set lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// A table with a header line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csv: Option<PathBuf>,
    /// Arrays by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npz: Option<PathBuf>,
    /// A folder or `.tar.gz` with a folder of images for every class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Two files in IDX: images and labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idx: Option<[PathBuf; 2]>,
    /// A text in UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<PathBuf>,
    /// Characters that a model of a text sees at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<usize>,
    /// Characters from the start of one sample of a text to the next; as many as the context unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
    /// What is held back, in the same format: a path, or two for `idx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Paths>,
    /// Instead, the share of the samples that is held back; of a text its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<f64>,
    /// The array that goes into the model, of `npz`; `x` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The column of the class, of `csv` and `npz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The columns to be predicted as numbers, of `csv` and (one) `npz`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Columns to leave out, of `csv`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What stands between the cells of `csv`; a comma unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// Number of classes; told from the labels unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// What is done to the input.
    #[serde(default)]
    pub normalisation: Normalisation,
    /// Takes only so many samples to train on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<usize>,
    /// Mirrors images at random while training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<bool>,
    /// Moves images by up to so many pixels at random while training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<usize>,
}

/// One path or two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Paths {
    /// One.
    One(PathBuf),
    /// Images and labels.
    Two([PathBuf; 2]),
}

/// What is done to the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalisation {
    /// Nothing.
    #[default]
    None,
    /// Bytes become numbers from 0 to 1.
    Unit,
    /// Every feature or channel gets mean 0 and deviation 1, by the samples that are trained on.
    Standard,
}

impl Data {
    /// Makes all paths absolute; relative ones count from `folder`.
    pub fn resolve(&mut self, folder: &Path) {
        let resolve = |path: &mut PathBuf| {
            let joined = folder.join(&*path);
            *path = std::path::absolute(&joined).unwrap_or(joined);
        };
        let singles = [&mut self.dir, &mut self.csv, &mut self.npz, &mut self.images, &mut self.text];
        singles.into_iter().flatten().for_each(resolve);
        self.idx.iter_mut().flatten().for_each(resolve);
        match &mut self.test {
            Some(Paths::One(path)) => resolve(path),
            Some(Paths::Two(paths)) => paths.iter_mut().for_each(resolve),
            None => {}
        }
    }

    /// Checks every value, as far as no file is needed.
    pub fn check(&self, c: &mut Checks) {
        let paths = [&self.csv, &self.npz, &self.images, &self.text];
        let count =
            paths.into_iter().flatten().count() + usize::from(self.name.is_some()) + usize::from(self.idx.is_some());
        let help = "give exactly one of data.name, data.csv, data.npz, data.images, data.text and data.idx";
        c.require(count == 1, "data", format_args!("{count} sources of data"), help);
        if self.name.is_none() {
            c.unused(&self.dir, "data.dir", "files", "give the path of the files themselves");
        } else {
            c.unused(
                &self.test,
                "data.test",
                "a named data set",
                "it has its own held-back samples, or data.held_back",
            );
        }
        if self.csv.is_none() {
            c.unused(&self.delimiter, "data.delimiter", "this format", "remove it");
            let none = self.ignored.is_empty();
            c.require(none, "data.ignored", "it has no meaning for this format", "remove it");
        }
        if self.npz.is_none() {
            c.unused(&self.input, "data.input", "this format", "remove it");
        }
        self.check_aim(c);
        let share = self.held_back.is_none_or(|h| h > 0.0 && h < 1.0);
        c.require(share, "data.held_back", "the share must be between 0 and 1", "give a share such as 0.2");
        let once = self.test.is_none() || self.held_back.is_none();
        c.require(once, "data.held_back", "data.test holds samples back already", "remove one of the two");
        let two = matches!(self.test, Some(Paths::Two(_)));
        let fits = self.test.is_none() || two == self.idx.is_some();
        let paths = if self.idx.is_some() { "two paths: images and labels" } else { "one path" };
        c.require(fits, "data.test", "it needs as many paths as the data itself", &format!("give {paths}"));
        c.require(self.classes != Some(0), "data.classes", "0 classes", "give the number of classes, or leave it out");
        c.require(self.take != Some(0), "data.take", "0 samples", "give at least 1, or leave it out");
        c.require(self.context != Some(0), "data.context", "0 characters", "give a number such as 128");
        c.require(self.stride != Some(0), "data.stride", "0 characters", "give at least 1, or leave it out");
        let small = self.shift.is_none_or(|pixels| pixels <= 1024);
        c.require(small, "data.shift", "more than 1024 pixels", "give a number such as 4, or leave it out");
        let plain = self.delimiter.is_none_or(|d| d.is_ascii() && d != '\n' && d != '"');
        c.require(plain, "data.delimiter", "it must be one ASCII character", "give \",\" or \";\" or \"\\t\"");
    }

    /// What is to be predicted is named where the files do not say it.
    fn check_aim(&self, c: &mut Checks) {
        let named = usize::from(self.label.is_some()) + usize::from(!self.targets.is_empty());
        if self.csv.is_some() || self.npz.is_some() {
            let help = "give data.label, the column of the class, or data.targets, columns of numbers";
            c.require(named == 1, "data", "it does not say what is to be predicted", help);
            let one = self.npz.is_none() || self.targets.len() < 2;
            c.require(one, "data.targets", "of npz, one array holds all targets", "give one name");
        } else {
            c.require(named == 0, "data", "label and targets are for csv and npz", "remove them");
        }
    }
}
