//! Writing with a language model.

use super::Llama;
use crate::lora::is_factor;
use crate::nn::Past;
use backfit_compile::target::{Executable, Program, Target};
use backfit_ir::{DType, FuncId, Graph, Literal, Problem, Result, Role, Tensor};
use backfit_train::Trainer;
use backfit_train::checkpoint::Checkpoint;

/// The name of the compiled function.
const DECODE: &str = "decode";

/// A compiled model that takes one token after the other and tells what may follow. Keys and values of the tokens
/// before are in its resident store, so that a token costs the same wherever it stands.
///
/// ```
/// use backfit::models::{Decoder, Llama};
/// use backfit::prelude::*;
///
/// let model = Llama::new(65, 1, 16, 2);
/// let mut decoder = Decoder::new(&model, 8, &Cpu::default())?;
/// # let names: Vec<String> = decoder.weights().map(|p| p.name.clone()).collect();
/// # for name in names { let ty = decoder.weights().find(|p| p.name == name).unwrap().ty.clone(); decoder.set(&name, &Literal::from_f64(ty.clone(), &vec![0.5; ty.shape.elements()]))?; }
/// // The weights are those of a trainer: `decoder.load(&trainer)?`, or set one by one.
/// let logits = decoder.next(3)?;
/// assert_eq!(logits.len(), 65);
/// let text = decoder.continued(&[3, 1, 4], 12, |logits| backfit::models::sample(logits, 0.8, 0.5))?;
/// assert_eq!(text.len(), 12);
/// # Ok::<(), backfit::Error>(())
/// ```
pub struct Decoder {
    executable: Box<dyn Executable>,
    length: usize,
    vocabulary: usize,
    position: usize,
    logits: Vec<f32>,
}

impl Decoder {
    /// Compiles the model for one text of at most `length` tokens. All weights are zero.
    ///
    /// # Errors
    /// A model that cannot be built; a target that cannot carry out an operator.
    pub fn new(model: &Llama, length: usize, target: &dyn Target) -> Result<Self> {
        if length == 0 {
            return Err(Problem::new("a text of at most 0 tokens")
                .help("give the length of the model's context")
                .into());
        }
        let g = Graph::new();
        let token = g.input("token", DType::I32, [1, 1]);
        let position = g.hyper("position", DType::I32);
        let logits = model.decode(&g, &token, Past { position: &position, length });
        Decoder::of_graph(&g, &logits, length, model.vocabulary, target)
    }

    fn of_graph(g: &Graph, logits: &Tensor, length: usize, vocabulary: usize, target: &dyn Target) -> Result<Self> {
        g.result("logits", logits);
        let module = g.finish()?;
        let function = FuncId(module.functions.len() as u32 - 1);
        let executable = target.compile(&Program::new(module, vec![(DECODE.to_owned(), function)]))?;
        Ok(Decoder { executable, length, vocabulary, position: 0, logits: vec![0.0; vocabulary] })
    }

    /// The weights: names and types.
    pub fn weights(&self) -> impl Iterator<Item = &backfit_compile::target::Port> {
        self.executable.residents().iter().filter(|p| matches!(p.role, Role::Weight { .. }))
    }

    /// Takes over the weights of a trainer, as its prediction uses them ([`Trainer::weight`]), and begins a new text.
    /// Nothing changes where anything is wrong.
    ///
    /// # Errors
    /// The trainer lacks a weight, or has one of another shape, or low-rank factors, which the decoder does not have:
    /// merge them ([`Adapters::merged`](crate::Adapters::merged)) and call [`Decoder::load_weights`].
    pub fn load(&mut self, trainer: &Trainer) -> Result<()> {
        let weights = trainer.residents().iter().filter(|port| matches!(port.role, Role::Weight { .. }));
        self.take_over(weights.map(|port| port.name.as_str()), |name| trainer.weight(name))
    }

    /// Takes over the weights of a checkpoint, such as merged ones ([`Checkpoint::weight`]), and begins a new text.
    /// Nothing changes where anything is wrong.
    ///
    /// # Errors
    /// The checkpoint lacks a weight, or has one of another shape, or low-rank factors that are not merged.
    pub fn load_weights(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.take_over(checkpoint.tensors.keys().map(String::as_str), |name| checkpoint.weight(name))
    }

    fn take_over<'n>(
        &mut self,
        mut given: impl Iterator<Item = &'n str>,
        value: impl Fn(&str) -> Result<Literal>,
    ) -> Result<()> {
        let of_training = |name: &str| name.starts_with("optimizer.");
        if let Some(factor) = given.find(|name| is_factor(name) && !of_training(name)) {
            let problem = Problem::new(format!("a decoder has no low-rank factors, such as '{factor}'"));
            return Err(problem.help("merge them: `decoder.load_weights(&adapters.merged(&trainer)?)`").into());
        }
        let mut weights = Vec::new();
        for port in self.weights() {
            let value = value(&port.name)?;
            if value.ty().shape != port.ty.shape {
                let what = format!("the weight '{}' is {}, the decoder's is {}", port.name, value.ty(), port.ty);
                return Err(Problem::new(what).help("compile the decoder for the model of these weights").into());
            }
            weights.push((port.name.clone(), Literal::from_f64(port.ty.clone(), &value.to_f64())));
        }
        weights.iter().try_for_each(|(name, value)| self.set(name, value))?;
        self.restart();
        Ok(())
    }

    /// Replaces a weight.
    ///
    /// # Errors
    /// There is none of this name, or it has another type.
    pub fn set(&mut self, name: &str, value: &Literal) -> Result<()> {
        self.executable.write(name, value)
    }

    /// Begins a new text.
    pub fn restart(&mut self) {
        self.position = 0;
    }

    /// Takes the next token of the text, and tells the logits of the one after it.
    ///
    /// # Errors
    /// A token outside the vocabulary; a text that is as long as it may be; a failure of the target.
    pub fn next(&mut self, token: i32) -> Result<&[f32]> {
        if !usize::try_from(token).is_ok_and(|t| t < self.vocabulary) {
            let problem = Problem::new(format!("the token {token} is not one of 0..{}", self.vocabulary));
            return Err(problem.help("encode the text with the vocabulary of the model").into());
        }
        if self.position == self.length {
            let problem = Problem::new(format!("the text has {} tokens already", self.length));
            return Err(problem.help("begin a new one with `restart`, or compile for longer texts").into());
        }
        self.feed("token", token);
        self.feed("position", self.position as i32);
        self.executable.run(0)?;
        self.position += 1;
        for (logit, bytes) in self.logits.iter_mut().zip(self.executable.output(0, 0).chunks_exact(4)) {
            *logit = f32::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        Ok(&self.logits)
    }

    fn feed(&mut self, name: &str, value: i32) {
        let port = self.executable.signatures()[0].inputs.iter().position(|p| p.name == name);
        if let Some(input) = port {
            self.executable.input(0, input).copy_from_slice(&value.to_le_bytes());
        }
    }

    /// So many tokens after these, each the choice of `choose` from the logits. A text that has become as long as it
    /// may be goes on with its last half as the beginning of a new one.
    ///
    /// # Errors
    /// As for [`Decoder::next`]; an empty start.
    pub fn continued(
        &mut self,
        start: &[i32],
        count: usize,
        mut choose: impl FnMut(&[f32]) -> i32,
    ) -> Result<Vec<i32>> {
        if start.is_empty() {
            return Err(Problem::new("there is no token to begin with").help("give at least one").into());
        }
        let mut text = start.to_vec();
        let mut read = text.len() - text.len().min(self.length);
        self.restart();
        while text.len() < start.len() + count {
            if self.position == self.length {
                self.restart();
                read = text.len() - (self.length / 2).max(1);
            }
            let token = text[read];
            read += 1;
            let last = read == text.len();
            let logits = self.next(token)?;
            if last {
                text.push(choose(logits));
            }
        }
        Ok(text.split_off(start.len()))
    }
}

/// A token drawn from softmax(logits / temperature): the first whose cumulated probability exceeds `uniform`, a number
/// from 0 to 1 (exclusive). At temperature 0, the first of the largest logits.
///
/// ```
/// use backfit::models::sample;
/// assert_eq!(sample(&[0.0, 2.0, 2.0], 0.0, 0.9), 1);
/// // Probabilities ½ and ½.
/// assert_eq!((sample(&[3.0, 3.0], 1.0, 0.49), sample(&[3.0, 3.0], 1.0, 0.51)), (0, 1));
/// ```
pub fn sample(logits: &[f32], temperature: f64, uniform: f64) -> i32 {
    let mut best = 0;
    for (i, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = i;
        }
    }
    if temperature <= 0.0 || logits.is_empty() {
        return best as i32;
    }
    let power = |logit: &f32| (f64::from(*logit - logits[best]) / temperature).exp();
    let mut left = uniform * logits.iter().map(power).sum::<f64>();
    for (i, logit) in logits.iter().enumerate() {
        left -= power(logit);
        if left < 0.0 {
            return i as i32;
        }
    }
    best as i32
}
