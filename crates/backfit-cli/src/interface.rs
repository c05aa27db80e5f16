//! What a model must know of its samples: kept in checkpoints, so that predicting needs no data but the question.

use backfit::{Dataset, Normalizer, Problem, Result};
use serde::{Deserialize, Serialize};

/// What goes into a model and what comes out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// The column that goes in.
    pub input: String,
    /// The shape of one sample.
    pub shape: Vec<usize>,
    /// What comes out.
    pub output: Output,
    /// What is done to the input before.
    pub scaling: Scaling,
}

/// What comes out of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A logit for every class.
    Classes {
        /// How many.
        count: usize,
        /// Their names, where they have any.
        names: Vec<String>,
    },
    /// Numbers.
    Values {
        /// How many.
        width: usize,
        /// Their names, where they have any.
        names: Vec<String>,
    },
    /// A logit for every character that may follow each one of a text.
    Text {
        /// All characters, in the order of their tokens.
        characters: String,
    },
}

/// What is done to the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// It becomes f32.
    None,
    /// Nothing: it is tokens.
    Tokens,
    /// Bytes become numbers from 0 to 1.
    Unit,
    /// Every feature or channel is shifted and scaled.
    Standard {
        /// By so much.
        mean: Vec<f64>,
        /// And divided by this.
        deviation: Vec<f64>,
    },
}

impl Output {
    /// How many numbers a model returns per sample.
    pub fn width(&self) -> usize {
        match self {
            Output::Classes { count, .. } => *count,
            Output::Values { width, .. } => *width,
            Output::Text { characters } => characters.chars().count(),
        }
    }

    /// The name of the n-th class or value, where it has one.
    pub fn name(&self, n: usize) -> Option<&str> {
        match self {
            Output::Classes { names, .. } | Output::Values { names, .. } => names.get(n).map(String::as_str),
            Output::Text { .. } => None,
        }
    }
}

impl Scaling {
    /// The samples with this done to a column, which becomes f32.
    ///
    /// # Errors
    /// The column has another dtype or number of features than the one the scaling was made for.
    pub fn apply(&self, set: &Dataset, column: &str) -> Result<Dataset> {
        match self {
            Scaling::None => set.to_f32(column),
            Scaling::Tokens => Ok(set.clone()),
            Scaling::Unit => set.to_unit(column),
            Scaling::Standard { mean, deviation } => Normalizer::from_statistics(column, mean, deviation)?.apply(set),
        }
    }
}

impl Interface {
    /// Refuses samples that the model does not take.
    ///
    /// # Errors
    /// No such column, or samples of another shape.
    pub fn check(&self, column: &str, set: &Dataset) -> Result<()> {
        let found = &set.column(column)?.ty().shape[1..];
        if column == self.input && *found == self.shape[..] {
            return Ok(());
        }
        let what = format!("a sample is '{column}' {found:?}, and the model takes '{}' {:?}", self.input, self.shape);
        let problem = match set.file(column) {
            Some(file) => Problem::new(what).in_file(file),
            None => Problem::new(what),
        };
        Err(problem.help("give samples of the shape that the model was trained on").into())
    }

    /// The text form, for checkpoints.
    ///
    /// # Errors
    /// None in practice.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|e| Problem::new("the model's interface cannot be written").because(e.to_string()).into())
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// It is none.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|e| Problem::new("the model's interface cannot be read").because(e.to_string()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_keeps_every_bit() {
        let scaling = Scaling::Standard { mean: vec![0.1 + 0.2], deviation: vec![1.745_143_857_587_127_9] };
        let output = Output::Values { width: 1, names: vec!["height".to_owned()] };
        let interface = Interface { input: "features".to_owned(), shape: vec![1], output, scaling };
        assert_eq!(Interface::from_json(&interface.to_json().unwrap()).unwrap(), interface);
    }
}
