//! Names, types, attributes, constants, locations.

use super::super::literal::Written;
use super::super::words;
use super::{Parser, Token};
use crate::attributes::{Attr, Attributes};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{FuncId, Loc};
use crate::shape::Type;
use crate::taps::Taps;
use crate::verify::type_flaw;
use std::sync::Arc;

impl<'t> Parser<'t> {
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                let name = (*word).to_owned();
                self.at += 1;
                Ok(name)
            }
            Token::Text(_) => self.text(what),
            _ => Err(self.unexpected(what)),
        }
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let Token::Text(text) = self.peek() else { return Err(self.unexpected(what)) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    pub(super) fn taps(&mut self) -> Result<Taps> {
        if self.took_word("inputs") {
            return Ok(Taps::Inputs);
        }
        let named = self.took_word("named");
        if !named && !self.took_word("budget") {
            return Err(self.unexpected("'inputs', 'named' or 'budget'"));
        }
        self.mark('(')?;
        if named {
            return Ok(Taps::Named(self.list(')', |parser| parser.name("a scope's name"))?));
        }
        let bytes = self.number_as("a number of bytes", |number| number.parse().ok())?;
        self.mark(')')?;
        Ok(Taps::Budget(bytes))
    }

    /// A text that is shared with all others like it.
    fn shared_text(&mut self, what: &str) -> Result<Arc<str>> {
        let text = self.text(what)?;
        Ok(self.words.entry(text).or_insert_with_key(|text| text.as_str().into()).clone())
    }

    pub(super) fn value_label(&mut self) -> Result<u64> {
        let Token::Value(label) = *self.peek() else { return Err(self.unexpected("a value such as %3")) };
        self.at += 1;
        Ok(label)
    }

    fn number(&mut self, what: &str) -> Result<&'t str> {
        let Token::Number(number) = *self.peek() else { return Err(self.unexpected(what)) };
        self.at += 1;
        Ok(number)
    }

    /// A number that the reader takes.
    fn number_as<T>(&mut self, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<T> {
        let number = self.number(what)?;
        read(number).ok_or_else(|| self.taken_back(what))
    }

    /// The problem that the token just taken is not what is expected.
    fn taken_back(&self, expected: &str) -> Error {
        let at = self.at.saturating_sub(1);
        self.problem(at, format!("expected {expected}, found {}", self.tokens[at].0))
    }

    pub(super) fn blob_name(&mut self) -> Result<u64> {
        self.number_as("a blob's name such as 0x1f", |n| u64::from_str_radix(n.strip_prefix("0x")?, 16).ok())
    }

    pub(super) fn function_name(&mut self) -> Result<FuncId> {
        self.mark('@')?;
        let at = self.at;
        let name = self.name("a function's name")?;
        let found = self.functions.get(&name).copied();
        found.ok_or_else(|| self.problem(at, format!("there is no function '{name}' above")))
    }

    pub(super) fn ty(&mut self) -> Result<Type> {
        let at = self.at;
        let Token::Word(word) = *self.peek() else { return Err(self.unexpected("a type such as f32[2,3]")) };
        let dtype: DType = word.parse().map_err(|_| self.unexpected("a dtype such as f32"))?;
        self.at += 1;
        self.mark('[')?;
        let dims = self.list(']', |p| p.number_as("an extent", |n| n.parse().ok()))?;
        let ty = Type::new(dtype, dims);
        type_flaw(&ty).map_or(Ok(ty), |flaw| Err(self.problem(at, flaw)))
    }

    pub(super) fn attributes(&mut self) -> Result<Attributes> {
        self.mark('{')?;
        let all = self.list('}', |p| {
            let name = p.name("an attribute's name")?;
            p.mark('=')?;
            Ok((name, p.attribute()?))
        })?;
        Ok(all.into_iter().fold(Attributes::new(), |all, (name, value)| all.with(&name, value)))
    }

    fn attribute(&mut self) -> Result<Attr> {
        let what = "an attribute's value";
        if self.took('[') {
            return Ok(Attr::Ints(self.list(']', |p| p.number_as("an integer", |n| n.parse().ok()))?));
        }
        match self.next() {
            Token::Text(text) => Ok(Attr::Str(text)),
            Token::Word("true") => Ok(Attr::Bool(true)),
            Token::Word("false") => Ok(Attr::Bool(false)),
            Token::Word("inf") => Ok(Attr::Float(f64::INFINITY)),
            Token::Word(word) => word.parse().map(Attr::DType).map_err(|_| self.taken_back(what)),
            Token::Number(number) => attribute_number(number).ok_or_else(|| self.taken_back(what)),
            _ => Err(self.taken_back(what)),
        }
    }

    pub(super) fn float(&mut self) -> Result<f64> {
        let at = self.at;
        let word = self.element()?;
        words::bits(DType::F64, &word).map(f64::from_bits).map_err(|flaw| self.problem(at, flaw))
    }

    /// The word of a tensor's element.
    fn element(&mut self) -> Result<String> {
        let word = match self.peek() {
            Token::Number(word) | Token::Word(word @ ("true" | "false" | "inf")) => (*word).to_owned(),
            _ => return Err(self.unexpected("a number or truth value")),
        };
        self.at += 1;
        Ok(word)
    }

    pub(super) fn constant(&mut self) -> Result<Written> {
        if self.took('[') {
            return Ok(Written::List(self.list(']', Self::element)?));
        }
        if self.took_word("splat") {
            self.mark('(')?;
            let word = self.element()?;
            self.mark(')')?;
            return Ok(Written::Splat(word));
        }
        if self.took_word("blob") {
            let name = self.blob_name()?;
            return Ok(Written::Blob(self.blobs.get(&name).cloned(), name));
        }
        Ok(Written::Scalar(self.element()?))
    }

    /// `scope "…"`, where there is one.
    pub(super) fn scope(&mut self) -> Result<Arc<str>> {
        if self.took_word("scope") { self.shared_text("a scope in quotes") } else { Ok("".into()) }
    }

    /// `at "file":line`, where there is one.
    pub(super) fn location(&mut self) -> Result<Loc> {
        if !self.took_word("at") {
            return Ok(Loc { file: "".into(), line: 0 });
        }
        let file = self.shared_text("a file in quotes")?;
        self.mark(':')?;
        Ok(Loc { file, line: self.number_as("a line", |n| n.parse().ok())? })
    }
}

/// Digits alone are an integer, all else is a float.
fn attribute_number(number: &str) -> Option<Attr> {
    if number.trim_start_matches('-').chars().all(|c| c.is_ascii_digit()) {
        return number.parse().ok().map(Attr::Int);
    }
    words::bits(DType::F64, number).ok().map(|bits| Attr::Float(f64::from_bits(bits)))
}
