//! Reading modules. The grammar has no nesting, so reading needs no recursion.

mod body;
mod pieces;

use super::lexer::{Token, problem_at, tokens};
use crate::error::{Error, Result};
use crate::graph::{Composite, FuncId, Function, Module};
use crate::verify::{Stage, verify};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

/// What an untrusted text may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of constants that take more memory than text: those written `splat(…)`, all together.
    pub splat_bytes: usize,
}

impl Default for Limits {
    /// One GiB of splats.
    fn default() -> Self {
        Limits { splat_bytes: 1 << 30 }
    }
}

/// Reads a module; see [`Module::parse`].
///
/// # Errors
/// The first thing in the text that is not as it should be, with line and column, or else everything that
/// the verifier finds.
pub fn parse(text: &[u8], limits: Limits) -> Result<Module> {
    let text = std::str::from_utf8(text)
        .map_err(|e| problem_at(text, e.valid_up_to(), "the text is not valid UTF-8 from here on"))?;
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        at: 0,
        module: Module::default(),
        functions: HashMap::new(),
        blobs: HashMap::new(),
        words: HashMap::new(),
        budget: limits.splat_bytes,
    };
    parser.module()?;
    verify(&parser.module, Stage::Built)?;
    Ok(parser.module)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, usize)>,
    at: usize,
    module: Module,
    functions: HashMap<String, FuncId>,
    blobs: HashMap<u64, Arc<[u8]>>,
    /// Scopes and files, which repeat.
    words: HashMap<String, Arc<str>>,
    budget: usize,
}

impl<'t> Parser<'t> {
    // ---- tokens ----

    fn peek(&self) -> &Token<'t> {
        &self.tokens[self.at].0
    }

    /// Takes a token; the end is never passed.
    fn next(&mut self) -> Token<'t> {
        let token = self.peek().clone();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    /// A problem at a token.
    fn problem(&self, token: usize, what: impl Display) -> Error {
        problem_at(self.text.as_bytes(), self.tokens[token].1, what)
    }

    /// The problem that the next token is not what is expected.
    fn unexpected(&self, expected: impl Display) -> Error {
        self.problem(self.at, format!("expected {expected}, found {}", self.peek()))
    }

    /// Takes a mark if it is the next token.
    fn took(&mut self, mark: char) -> bool {
        let took = *self.peek() == Token::Mark(mark);
        self.at += usize::from(took);
        took
    }

    fn mark(&mut self, mark: char) -> Result<()> {
        if self.took(mark) { Ok(()) } else { Err(self.unexpected(format!("'{mark}'"))) }
    }

    /// Takes a word if it is the next token.
    fn took_word(&mut self, word: &str) -> bool {
        let took = *self.peek() == Token::Word(word);
        self.at += usize::from(took);
        took
    }

    /// Items between an opening mark that was taken and its closing one, separated by commas.
    fn list<T>(&mut self, close: char, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.took(close) {
            if !items.is_empty() {
                self.mark(',')?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    // ---- the whole text ----

    fn module(&mut self) -> Result<()> {
        if let Some(start) = self.find_blobs() {
            self.at = start;
            self.read_blobs()?;
            if *self.peek() != Token::End {
                return Err(self.unexpected("nothing after the blobs"));
            }
            self.at = 0;
        }
        while *self.peek() != Token::End && *self.peek() != Token::Word("blobs") {
            self.function()?;
        }
        Ok(())
    }

    /// The token at which the section of blobs begins: the word after the end of a function's block.
    fn find_blobs(&self) -> Option<usize> {
        let mut depth = 0usize;
        for (at, (token, _)) in self.tokens.iter().enumerate() {
            match token {
                Token::Mark('{') => depth += 1,
                Token::Mark('}') => depth = depth.saturating_sub(1),
                Token::Word("blobs") if depth == 0 => {
                    let begins = at == 0 || self.tokens[at - 1].0 == Token::Mark('}');
                    if begins {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn read_blobs(&mut self) -> Result<()> {
        self.at += 1;
        self.mark('{')?;
        while !self.took('}') {
            let at = self.at;
            let name = self.blob_name()?;
            self.mark('=')?;
            let mut bytes = Vec::new();
            while let Token::Text(digits) = self.peek() {
                match unhex(digits) {
                    Some(part) => bytes.extend(part),
                    None => return Err(self.unexpected("pairs of hexadecimal digits")),
                }
                self.at += 1;
            }
            if self.blobs.insert(name, bytes.into()).is_some() {
                return Err(self.problem(at, format!("there are two blobs {name:#x}")));
            }
        }
        Ok(())
    }

    fn function(&mut self) -> Result<()> {
        if !self.took_word("func") {
            return Err(self.unexpected("'func'"));
        }
        self.mark('@')?;
        let at = self.at;
        let mut function = Function::new(self.name("the function's name")?);
        if self.functions.contains_key(&function.name) {
            return Err(self.problem(at, format!("there are two functions named '{}'", function.name)));
        }
        if self.took_word("composite") {
            let name = self.name("the composite's name")?;
            // The block of a composite without attributes may look like the beginning of attributes.
            let attributes = if self.has_attributes() { self.attributes()? } else { Default::default() };
            function.composite = Some(Composite { name, attributes });
        }
        if self.took_word("taps") {
            function.taps = self.taps()?;
        }
        self.mark('{')?;
        let function = self.body(function)?;
        let id = FuncId(self.module.functions.len() as u32);
        self.functions.insert(function.name.clone(), id);
        self.module.functions.push(function);
        Ok(())
    }

    /// Whether attributes stand here: `{name=`, or `{}` before a block.
    fn has_attributes(&self) -> bool {
        let token = |ahead: usize| self.tokens.get(self.at + ahead).map(|(token, _)| token);
        let named = matches!(token(1), Some(Token::Word(_) | Token::Text(_)));
        let empty = token(1) == Some(&Token::Mark('}')) && token(2) == Some(&Token::Mark('{'));
        token(0) == Some(&Token::Mark('{')) && (empty || named && token(2) == Some(&Token::Mark('=')))
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}
