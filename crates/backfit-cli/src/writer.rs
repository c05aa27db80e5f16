//! What a language model writes.

use crate::interface::Interface;
use crate::interface::Output;
use crate::network::llama;
use crate::recipe::Loaded;
use crate::session;
use backfit::datasets::text::Vocabulary;
use backfit::models::{Decoder, sample};
use backfit::train::data::order::Draws;
use backfit::{Result, Trainer};

/// Below 1, likely characters become likelier.
const TEMPERATURE: f64 = 0.8;
/// Keeps these draws apart from those of orders, whose streams are epochs.
const STREAM: u64 = 1 << 61;

/// Continues texts with the weights of a training.
pub struct Writer {
    decoder: Decoder,
    vocabulary: Vocabulary,
    draws: Draws,
}

impl Writer {
    /// One for the model of a recipe; `None` where it is none of texts.
    ///
    /// # Errors
    /// The model cannot be compiled.
    pub fn new(loaded: &Loaded, interface: &Interface) -> Result<Option<Self>> {
        let Output::Text { characters } = &interface.output else { return Ok(None) };
        let model = llama(&loaded.recipe.model, interface.output.width());
        let context = interface.shape.first().copied().unwrap_or(1);
        let decoder = Decoder::new(&model, context, &session::cpu(loaded))?;
        let draws = Draws::new(loaded.recipe.seed, STREAM);
        Ok(Some(Writer { decoder, vocabulary: Vocabulary::of(characters), draws }))
    }

    /// So many characters after `start`, by the weights that the trainer has now. The same weights, start and seed
    /// give the same text.
    ///
    /// # Errors
    /// An empty start, or one with a character that the model does not know.
    pub fn write(&mut self, trainer: &Trainer, start: &str, characters: usize) -> Result<String> {
        self.decoder.load(trainer)?;
        let start = self.vocabulary.encode(start)?;
        let mut drawn = 0;
        let draws = self.draws;
        let tokens = self.decoder.continued(&start, characters, |logits| {
            drawn += 1;
            sample(logits, TEMPERATURE, draws.bits(drawn) as f64 / 2f64.powi(64))
        })?;
        self.vocabulary.decode(&tokens)
    }

    /// A text from nothing: after the character that ends a line, where there is one.
    ///
    /// # Errors
    /// As for [`Writer::write`].
    pub fn begin(&mut self, trainer: &Trainer, characters: usize) -> Result<String> {
        let known = self.vocabulary.characters();
        let first = known.iter().find(|c| **c == '\n').or(known.first()).copied().unwrap_or_default();
        self.write(trainer, &first.to_string(), characters)
    }
}
