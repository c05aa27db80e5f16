//! Text by characters: vocabulary, corpus, windows.

use super::batches::{Batches, Source};
use crate::reading::io_error;
use backfit_ir::{DType, Problem, Result, Type};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The characters of a text, sorted; the token of a character is its index.
///
/// ```
/// use backfit_train::data::text::Vocabulary;
/// let letters = Vocabulary::of("hello");
/// assert_eq!(letters.encode("hole")?, [1, 3, 2, 0]);
/// assert_eq!(letters.decode(&[1, 3, 2, 0])?, "hole");
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    characters: Vec<char>,
}

impl Vocabulary {
    /// The characters that occur in a text.
    pub fn of(text: &str) -> Self {
        let distinct: BTreeSet<char> = text.chars().collect();
        Vocabulary { characters: distinct.into_iter().collect() }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.characters.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.characters.is_empty()
    }

    /// The characters in the order of their tokens.
    pub fn characters(&self) -> &[char] {
        &self.characters
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// A character that is not in the vocabulary, with its line and column.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        let mut tokens = Vec::with_capacity(text.len());
        for (i, c) in text.char_indices() {
            let token = self.characters.binary_search(&c).map_err(|_| {
                let before = &text[..i];
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                Problem::new(format!("the character {c:?} is not in the vocabulary"))
                    .because(format!("it stands in line {line}, column {column} of the text"))
                    .help("use only characters that occur in the training text")
            })?;
            tokens.push(token as i32);
        }
        Ok(tokens)
    }

    /// The text of tokens.
    ///
    /// # Errors
    /// A token outside the vocabulary, with its index.
    pub fn decode(&self, tokens: &[i32]) -> Result<String> {
        let character = |(i, &token): (usize, &i32)| {
            let found = usize::try_from(token).ok().and_then(|t| self.characters.get(t));
            found.copied().ok_or_else(|| {
                Problem::new(format!("token {i} is {token}"))
                    .because(format!("the vocabulary has tokens 0..{}", self.len()))
                    .into()
            })
        };
        tokens.iter().enumerate().map(character).collect()
    }
}

/// A text as tokens. Cloning shares them.
///
/// ```
/// use backfit_train::data::text::Corpus;
/// let corpus = Corpus::of("to be or not to be");
/// let (train, validation) = corpus.split(0.3)?;
/// let batch = train.windows(4).batches(2).next().unwrap()?;
/// assert_eq!(batch.literal("x")?.ty().to_string(), "i32[2,4]");
/// assert_eq!(validation.vocabulary(), corpus.vocabulary());
/// # Ok::<(), backfit_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    tokens: Arc<[i32]>,
    vocabulary: Vocabulary,
}

impl Corpus {
    /// The corpus of a text with the vocabulary of the same.
    pub fn of(text: &str) -> Self {
        let vocabulary = Vocabulary::of(text);
        let tokens = vocabulary.encode(text).expect("its own characters");
        Corpus { tokens: tokens.into(), vocabulary }
    }

    /// Reads a UTF-8 text file.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or is not UTF-8 (named with the byte).
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).map_err(|e| io_error(file, "cannot read the text", &e))?;
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            Problem::new(format!("byte {} is not UTF-8 text", e.valid_up_to()))
                .in_file(file)
                .help("convert the file to UTF-8")
        })?;
        if text.is_empty() {
            return Err(Problem::new("the text is empty").in_file(file).into());
        }
        Ok(Corpus::of(text))
    }

    /// The tokens.
    pub fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The text without its last part, and that part; both with the vocabulary of the whole.
    ///
    /// # Errors
    /// A fraction outside (0, 1), or one that leaves a part empty.
    pub fn split(&self, held_back: f64) -> Result<(Corpus, Corpus)> {
        let n = self.tokens.len();
        let at = (n as f64 * (1.0 - held_back)) as usize;
        if !(held_back > 0.0 && held_back < 1.0) || at == 0 || at >= n {
            return Err(Problem::new(format!("cannot hold back {held_back} of {n} characters"))
                .help("give a fraction between 0 and 1, such as 0.1")
                .into());
        }
        let part = |tokens: &[i32]| Corpus { tokens: tokens.into(), vocabulary: self.vocabulary.clone() };
        Ok((part(&self.tokens[..at]), part(&self.tokens[at..])))
    }

    /// A window of `context` tokens from every token on.
    pub fn windows(&self, context: usize) -> Windows {
        Windows { tokens: self.tokens.clone(), context, stride: 1 }
    }
}

/// Windows over tokens as samples: `x: i32[context]`, and `y: i32[context]`, the same one token later.
/// Nothing is copied until a batch is filled.
#[derive(Clone, Debug)]
pub struct Windows {
    tokens: Arc<[i32]>,
    context: usize,
    stride: usize,
}

impl Windows {
    /// A window of `context` tokens from every one of these tokens on.
    pub fn of(tokens: Vec<i32>, context: usize) -> Self {
        Windows { tokens: tokens.into(), context, stride: 1 }
    }

    /// The same with a window every `stride` tokens (at least 1); `context` gives windows side by side.
    pub fn every(self, stride: usize) -> Self {
        Windows { stride: stride.max(1), ..self }
    }

    /// Batches of `size` windows, one epoch unless told otherwise.
    pub fn batches(&self, size: usize) -> Batches<Windows> {
        Batches::new(self.clone(), size)
    }
}

impl Source for Windows {
    fn len(&self) -> usize {
        let starts = self.tokens.len().saturating_sub(self.context);
        if self.context == 0 { 0 } else { starts.div_ceil(self.stride) }
    }

    fn columns(&self) -> Vec<(String, Type)> {
        ["x", "y"].map(|name| (name.to_string(), Type::new(DType::I32, [self.context]))).to_vec()
    }

    fn read(&self, sample: usize, column: usize, out: &mut [u8]) {
        let start = sample * self.stride + column;
        let window = &self.tokens[start..start + self.context];
        for (bytes, token) in out.chunks_exact_mut(4).zip(window) {
            bytes.copy_from_slice(&token.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let text = "Übung macht\nden Meister — 7!";
        let corpus = Corpus::of(text);
        assert_eq!(corpus.vocabulary().decode(corpus.tokens()).unwrap(), text);
        assert!(corpus.vocabulary().characters().is_sorted());
    }

    #[test]
    fn a_foreign_character_is_named_with_line_and_column() {
        let e = Vocabulary::of("ab\n").encode("aé".replace('é', "b\nbx").as_str()).unwrap_err();
        assert!(e.to_string().contains("'x'") && e.to_string().contains("line 2, column 2"), "{e}");
    }

    #[test]
    fn a_token_outside_the_vocabulary_is_named_with_its_index() {
        for token in [-1, 2, i32::MAX] {
            let e = Vocabulary::of("ab").decode(&[0, token]).unwrap_err().to_string();
            assert!(e.contains(&format!("token 1 is {token}")) && e.contains("0..2"), "{e}");
        }
    }

    #[test]
    fn y_is_x_one_token_later_and_every_window_is_there() {
        let corpus = Corpus::of("abcdef");
        let windows = corpus.windows(3);
        assert_eq!(windows.len(), 3);
        let all: Vec<_> = windows.batches(1).in_order().map(Result::unwrap).collect();
        for (i, batch) in all.iter().enumerate() {
            let i = i as i64;
            assert_eq!(batch.literal("x").unwrap().to_i64(), [i, i + 1, i + 2]);
            assert_eq!(batch.literal("y").unwrap().to_i64(), [i + 1, i + 2, i + 3]);
        }
    }

    #[test]
    fn strides_reach_no_further_than_the_text() {
        for n in 0..12 {
            let corpus = Corpus::of(&"abcdefghijkl"[..n]);
            for context in 0..5 {
                for stride in 0..6 {
                    let windows = corpus.windows(context).every(stride);
                    let read = windows.batches(2).filter_map(Result::ok).map(|b| b.samples()).sum::<usize>();
                    assert_eq!(read, windows.len(), "{n} {context} {stride}");
                }
            }
        }
        assert_eq!(Corpus::of("abcdefg").windows(3).every(3).len(), 2);
    }

    #[test]
    fn a_split_is_of_the_tail_and_keeps_the_vocabulary() {
        let (train, test) = Corpus::of("abcdefghij").split(0.2).unwrap();
        assert_eq!((train.tokens().len(), test.tokens()), (8, [8, 9].as_slice()));
        assert_eq!(test.vocabulary().len(), 10);
        for fraction in [0.0, 1.0, f64::NAN, -0.5] {
            assert!(Corpus::of("abc").split(fraction).is_err());
        }
    }

    #[test]
    fn a_file_that_is_not_text_is_refused_with_the_byte() {
        let file = std::env::temp_dir().join(format!("backfit-text-{}", std::process::id()));
        std::fs::write(&file, b"abc\xff").unwrap();
        let e = Corpus::read(&file).unwrap_err().to_string();
        assert!(e.contains("byte 3"), "{e}");
        std::fs::write(&file, b"").unwrap();
        assert!(Corpus::read(&file).is_err());
        std::fs::remove_file(&file).unwrap();
        assert!(Corpus::read(&file).is_err());
    }
}
